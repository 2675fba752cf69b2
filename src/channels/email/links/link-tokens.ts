import { hkdfSync, timingSafeEqual } from "node:crypto";
import { readSuppressionName, suppressionName } from "../../../domain/tenants/suppressions.ts";
import { LinkKey } from "./link-key.ts";

/**
 * The purpose and data of a link in a message. Its token carries all of it: following a link needs no lookup, and only
 * tokens that this service signed are trusted.
 */
export type Link =
  | { readonly purpose: "open"; readonly tenantId: string; readonly jobId: string }
  /** `url` is where the click leads: absolute, http or https. */
  | { readonly purpose: "click"; readonly tenantId: string; readonly jobId: string; readonly url: string }
  /** `recipient` is the normalised address: a job forgets it once it has ended. */
  | { readonly purpose: "unsubscribe"; readonly tenantId: string; readonly jobId: string; readonly recipient: string }
  /**
   * The same for messages on one topic. It has a separate purpose, so that a former release refuses such a token
   * instead of reading the topic as part of the address.
   */
  | {
      readonly purpose: "unsubscribe topic";
      readonly tenantId: string;
      readonly jobId: string;
      readonly recipient: string;
      readonly topic: string;
    };

export type LinkPurpose = Link["purpose"];
export type LinkOf<P extends LinkPurpose> = Extract<Link, { purpose: P }>;

export interface LinkSigner {
  /** Returns the link's token: letters, digits, `-` and `_`. The same link always has the same token. */
  sign(link: Link): string;
}

export interface LinkReader {
  /** Returns the signed link; null for a token that is altered, of another purpose, or not ours. */
  read<P extends LinkPurpose>(purpose: P, token: string): LinkOf<P> | null;
}

const MASTER_KEY_BYTES = 32;
const KEY_BYTES = 32;
/** 128 bits of HMAC-SHA-256: impossible to guess, and links stay short. */
const TAG_BYTES = 16;
const JOB_BYTES = 16;
const TOKEN_CHARS_MAX = 8_192;
const TOKEN = /^[A-Za-z0-9_-]+$/;
const PURPOSES = ["open", "click", "unsubscribe", "unsubscribe topic"] as const satisfies readonly LinkPurpose[];

/**
 * The tokens in tracking and unsubscribe links: base64url of a tag and the link's encrypted content.
 *
 * The tag is HMAC-SHA-256 over the content (RFC 2104), and AES-256-CTR with the tag as its initial counter encrypts the
 * content: the construction of RFC 5297 with HMAC as its function. Only a holder of the key can therefore create or
 * alter a token, or read its content, above all the recipient's address, in the logs of servers that a link passes.
 *
 * The keys are derived from a master key by HKDF-SHA-256 (RFC 5869), two per purpose: a token for one purpose is
 * invalid for all others, and no other use of the master key shares these keys.
 */
export class LinkTokens implements LinkSigner, LinkReader {
  private readonly keys: Readonly<Record<LinkPurpose, readonly LinkKey[]>>;

  /**
   * @param masterKeys 32 bytes each. The first one signs; all of them verify.
   * @throws TypeError if there is none or one has another length.
   */
  constructor(masterKeys: readonly Uint8Array[]) {
    if (masterKeys.length === 0 || masterKeys.some((key) => key.length !== MASTER_KEY_BYTES)) {
      throw new TypeError(`link tokens need master keys of ${MASTER_KEY_BYTES} bytes`);
    }
    const of = (purpose: LinkPurpose) => masterKeys.map((master) => deriveKey(master, purpose));
    const [open = [], click = [], unsubscribe = [], ofTopic = []] = PURPOSES.map(of);
    this.keys = { open, click, unsubscribe, "unsubscribe topic": ofTopic };
  }

  sign(link: Link): string {
    const [key] = this.keys[link.purpose];
    if (key === undefined) throw new Error("there is no key to sign links with");
    const token = encode(link);
    const tag = key.hmac(token.subarray(TAG_BYTES));
    tag.copy(token, 0, 0, TAG_BYTES);
    key.hide(token, TAG_BYTES, token.subarray(0, TAG_BYTES));
    return token.toString("base64url");
  }

  read<P extends LinkPurpose>(purpose: P, token: string): LinkOf<P> | null {
    if (token.length > TOKEN_CHARS_MAX || !TOKEN.test(token)) return null;
    const bytes = Buffer.from(token, "base64url");
    // The last character can contain unused bits: only the spelling that `sign` produces is valid.
    if (bytes.length <= TAG_BYTES + JOB_BYTES || bytes.toString("base64url") !== token) return null;
    const tag = bytes.subarray(0, TAG_BYTES);
    for (const key of this.keys[purpose]) {
      const content = Buffer.from(bytes.subarray(TAG_BYTES));
      key.hide(content, 0, tag);
      if (timingSafeEqual(tag, key.hmac(content).subarray(0, TAG_BYTES))) return decode(purpose, content);
    }
    return null;
  }
}

/** An unsubscribe link, with or without a topic. */
export type UnsubscribeLink = LinkOf<"unsubscribe"> | LinkOf<"unsubscribe topic">;

export function readUnsubscribeLink(links: LinkReader, token: string): UnsubscribeLink | null {
  return links.read("unsubscribe", token) ?? links.read("unsubscribe topic", token);
}

function deriveKey(master: Uint8Array, purpose: LinkPurpose): LinkKey {
  const bytes = new Uint8Array(hkdfSync("sha256", master, "", `waybill link v1 ${purpose}`, 2 * KEY_BYTES));
  return new LinkKey(bytes.subarray(0, KEY_BYTES), bytes.subarray(KEY_BYTES));
}

/**
 * Encodes a link: space for the tag, the job id's 16 bytes, the length of the tenant's id, the id, and the purpose's
 * other data.
 */
function encode(link: Link): Buffer {
  const rest = encodeRest(link);
  const { tenantId } = link;
  const tenantStart = TAG_BYTES + JOB_BYTES + 1;
  const restStart = tenantStart + tenantId.length;
  const bytes = Buffer.allocUnsafe(restStart + Buffer.byteLength(rest, "utf8"));
  const jobBytes = bytes.write(link.jobId.replaceAll("-", ""), TAG_BYTES, "hex");
  if (jobBytes !== JOB_BYTES) throw new TypeError("a link needs a job id");
  bytes[tenantStart - 1] = tenantId.length;
  bytes.write(tenantId, tenantStart, "latin1");
  bytes.write(rest, restStart, "utf8");
  return bytes;
}

function encodeRest(link: Link): string {
  switch (link.purpose) {
    case "open":
      return "";
    case "click":
      return link.url;
    case "unsubscribe":
      return link.recipient;
    case "unsubscribe topic":
      return suppressionName(link.recipient, link.topic);
  }
}

/** Decodes the output of `encode`, once the tag is verified. */
function decode<P extends LinkPurpose>(purpose: P, content: Buffer): LinkOf<P> | null {
  const hex = content.toString("hex", 0, JOB_BYTES);
  const jobId = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
  const tenantStart = JOB_BYTES + 1;
  const tenantEnd = tenantStart + (content[JOB_BYTES] ?? 0);
  if (tenantEnd > content.length) return null;
  const tenantId = content.toString("latin1", tenantStart, tenantEnd);
  const rest = content.toString("utf8", tenantEnd);
  const { address: recipient, topic = "" } = readSuppressionName(rest);
  const links: { readonly [Q in LinkPurpose]: LinkOf<Q> } = {
    open: { purpose: "open", tenantId, jobId },
    click: { purpose: "click", tenantId, jobId, url: rest },
    unsubscribe: { purpose: "unsubscribe", tenantId, jobId, recipient: rest },
    "unsubscribe topic": { purpose: "unsubscribe topic", tenantId, jobId, recipient, topic },
  };
  return links[purpose];
}
