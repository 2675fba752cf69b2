import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import type { JobAddress } from "../../../domain/jobs/queue.ts";

/** A chat message that was handed over, and the number that sent it. */
interface SentMessage extends JobAddress {
  readonly phoneNumberId: string;
}

/** Creates the text that the chat provider repeats in every status of a message, and identifies the message by it. */
export interface CallbackSigner {
  /** Creates the text, which is always the same for a message. */
  sign(message: SentMessage): string;
}

export interface CallbackReader {
  /** Returns the signed message; null if this service did not sign the text. */
  read(text: string): SentMessage | null;
}

const KEY_BYTES = 32;
/** 128 bits of HMAC-SHA-256, as in the links. */
const TAG_BYTES = 16;
/** Well below the 512 that the provider returns. */
const TEXT_CHARS_MAX = 200;

/**
 * `<tenant>/<job id>/<phone number id>/<tag>`: the tag is HMAC-SHA-256 (RFC 2104) over the part before it, with a dedicated key
 * derived from a master key by HKDF-SHA-256 (RFC 5869).
 *
 * A tenant with its own number can have the provider sign statuses with any callback data it likes. The tag makes that useless:
 * valid callback data stands for a message that we sent from the number it names, and therefore for a chat job.
 */
export class CallbackData implements CallbackSigner, CallbackReader {
  private readonly keys: readonly Uint8Array[];

  /** @param masterKeys The first one signs; all of them verify. */
  constructor(masterKeys: readonly Uint8Array[]) {
    this.keys = masterKeys.map(
      (master) => new Uint8Array(hkdfSync("sha256", master, "", "waybill chat callback v1", KEY_BYTES)),
    );
  }

  sign({ tenantId, jobId, phoneNumberId }: SentMessage): string {
    const [key] = this.keys;
    if (key === undefined) throw new Error("there is no key to sign callback data with");
    const content = `${tenantId}/${jobId}/${phoneNumberId}`;
    return `${content}/${computeTag(key, content)}`;
  }

  read(text: string): SentMessage | null {
    if (text.length > TEXT_CHARS_MAX) return null;
    const end = text.lastIndexOf("/");
    const [content, tag] = [text.slice(0, Math.max(end, 0)), Buffer.from(text.slice(end + 1))];
    const isSigned = this.keys.some((key) => {
      const expected = Buffer.from(computeTag(key, content));
      return tag.length === expected.length && timingSafeEqual(tag, expected);
    });
    if (!isSigned) return null;
    // The tag proves that `sign` wrote it.
    const [tenantId = "", jobId = "", phoneNumberId = ""] = content.split("/");
    return { tenantId, jobId, phoneNumberId };
  }
}

function computeTag(key: Uint8Array, content: string): string {
  return createHmac("sha256", key).update(content).digest().subarray(0, TAG_BYTES).toString("base64url");
}
