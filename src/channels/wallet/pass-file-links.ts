import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";

/** The passes whose file a link leads to. */
export interface LinkedPasses {
  readonly tenantId: string;
  /** UUIDs, at least one and at most 255. */
  readonly passIds: readonly string[];
}

/** Public links to the files of Apple passes, which messages carry. */
export interface FileLinks {
  /** Creates the link, which is always the same for the same passes in the same order. */
  createLink(tenantId: string, passIds: LinkedPasses["passIds"]): { readonly url: string; readonly token: string };
  /** Returns the passes that the token was signed for; null if it was altered or is not ours. */
  read(token: string): LinkedPasses | null;
}

const KEY_BYTES = 32;
/** 128 bits of HMAC-SHA-256, as in other links. */
const TAG_BYTES = 16;
const ID_BYTES = 16;
/** Replaces the id of a single pass in a token for several. No pass has it, so a former release finds none. */
const SEVERAL = Buffer.alloc(ID_BYTES);
const TOKEN = /^[A-Za-z0-9_-]{44,512}$/;

/**
 * `<address>/p/<token>`: the token is base64url of a tag, the pass's id and its tenant's; for several passes, a nil
 * UUID, their number in one byte and their ids replace the id. The tag is HMAC-SHA-256 (RFC 2104) over the rest, with a
 * dedicated key derived from a master key by HKDF-SHA-256 (RFC 5869). The link gives access to the pass, like the
 * message that contains it.
 */
export class PassFileLinks implements FileLinks {
  private readonly keys: readonly Uint8Array[];

  /**
   * @param masterKeys The first one signs; all of them verify.
   * @param publicUrl The API's public address; read when a link is made, because the port may only be known by then.
   */
  constructor(
    masterKeys: readonly Uint8Array[],
    private readonly publicUrl: () => string,
  ) {
    this.keys = masterKeys.map(
      (master) => new Uint8Array(hkdfSync("sha256", master, "", "waybill pass file v1", KEY_BYTES)),
    );
  }

  createLink(tenantId: string, passIds: LinkedPasses["passIds"]): { readonly url: string; readonly token: string } {
    const [key] = this.keys;
    if (key === undefined) throw new Error("there is no key to sign links with");
    const ids = passIds.map((passId) => Buffer.from(passId.replaceAll("-", ""), "hex"));
    const head = ids.length === 1 ? [] : [SEVERAL, Buffer.of(ids.length)];
    const content = Buffer.concat([...head, ...ids, Buffer.from(tenantId)]);
    const token = Buffer.concat([computeTag(key, content), content]).toString("base64url");
    return { url: `${this.publicUrl()}/p/${token}`, token };
  }

  read(token: string): LinkedPasses | null {
    if (!TOKEN.test(token)) return null;
    const bytes = Buffer.from(token, "base64url");
    // The last character can contain unused bits: only the spelling that `createLink` produces is valid.
    if (bytes.length <= TAG_BYTES + ID_BYTES || bytes.toString("base64url") !== token) return null;
    const [tag, content] = [bytes.subarray(0, TAG_BYTES), bytes.subarray(TAG_BYTES)];
    if (!this.keys.some((key) => timingSafeEqual(tag, computeTag(key, content)))) return null;
    const isOne = !content.subarray(0, ID_BYTES).equals(SEVERAL);
    const [count, start] = isOne ? [1, 0] : [content[ID_BYTES] ?? 0, ID_BYTES + 1];
    const end = start + count * ID_BYTES;
    const passIds = Array.from({ length: count }, (_, i) => uuidAt(content, start + i * ID_BYTES));
    return { passIds, tenantId: content.toString("utf8", end) };
  }
}

function uuidAt(content: Buffer, at: number): string {
  const hex = content.toString("hex", at, at + ID_BYTES);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

function computeTag(key: Uint8Array, content: Uint8Array): Buffer {
  return createHmac("sha256", key).update(content).digest().subarray(0, TAG_BYTES);
}
