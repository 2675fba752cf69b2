import type { TrackingChoice } from "../../domain/channels/email.ts";
import type { StoredContent } from "../../domain/content-store.ts";
import { isJsonObject, type Json, type JsonObject, parseJsonObject, parseWritten } from "../../domain/texts/json.ts";

/** The queued form of an e-mail. */
export interface EmailPayload {
  readonly to: string;
  readonly toName?: string;
  /** Overrides the template's subject. */
  readonly subject?: string;
  readonly html?: string;
  /** Beside HTML: the text alternative; alone: the whole message. */
  readonly text?: string;
  /** Slug of a registered template; without it, the message is made from `html`, `text` or both. */
  readonly template?: string;
  readonly data?: JsonObject;
  readonly cc?: readonly Addressee[];
  readonly bcc?: readonly Addressee[];
  readonly replyTo?: readonly Addressee[];
  /** Further headers, with the names and values of the request. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly attachments?: readonly AttachedFile[];
  /** Overrides the choices of the template and the tenant. */
  readonly tracking?: TrackingChoice;
  /** The original message, which is sent; the other members are the parts that people see. */
  readonly kept?: KeptFile;
}

/** A message in the content store. */
export interface KeptFile extends StoredContent {
  /** Whether its body has bytes beyond ASCII, because it is signed and must not be encoded. */
  readonly isEightBit: boolean;
}

export interface Addressee {
  readonly address: string;
  readonly name?: string;
}

/** An attachment, whose content is in the content store. */
export interface AttachedFile extends StoredContent {
  readonly filename: string;
  /** Default: determined by the filename's ending. */
  readonly contentType?: string;
  /** The HTML displays the file as `cid:<contentId>`; without an id it is an ordinary attachment. */
  readonly contentId?: string;
}

/** Serialises the payload for its job, without undefined members. */
export function encodePayload(payload: { readonly [K in keyof EmailPayload]: EmailPayload[K] | undefined }): string {
  return JSON.stringify(payload);
}

/** Parses the output of `encodePayload`; null for any other text. */
export function parsePayload(text: string): EmailPayload | null {
  // Only `data` has the caller's numbers, and its name cannot occur within a text without a backslash before its
  // quotes.
  const dataAt = text.indexOf('"data":{');
  const parsed = parseJsonObject(text, dataAt === -1 ? JSON.parse : () => parseWritten(text, dataAt));
  if (parsed === null || typeof parsed["to"] !== "string") return null;
  const { to, toName, subject, html, text: plain, template, data } = parsed;
  return {
    to,
    ...(typeof toName === "string" ? { toName } : {}),
    ...(typeof subject === "string" ? { subject } : {}),
    ...(typeof html === "string" ? { html } : {}),
    ...(typeof plain === "string" ? { text: plain } : {}),
    ...(typeof template === "string" ? { template } : {}),
    ...(isJsonObject(data) ? { data } : {}),
    ...parseFurtherMembers(parsed),
  };
}

/** Parses members that few messages have. */
function parseFurtherMembers({
  cc,
  bcc,
  replyTo,
  headers,
  attachments,
  tracking,
  kept,
}: JsonObject): Partial<EmailPayload> {
  return {
    ...(Array.isArray(cc) && { cc: cc.flatMap(addressee) }),
    ...(Array.isArray(bcc) && { bcc: bcc.flatMap(addressee) }),
    ...(Array.isArray(replyTo) && { replyTo: replyTo.flatMap(addressee) }),
    // Written by `encodePayload`, whose caller has checked every value.
    ...(isJsonObject(headers) && { headers: headers as Readonly<Record<string, string>> }),
    ...(Array.isArray(attachments) && { attachments: attachments.flatMap(attachedFile) }),
    ...keptFile(kept),
    ...(isJsonObject(tracking) && { tracking: trackingChoice(tracking) }),
  };
}

/** Reads the boolean members. */
export function trackingChoice({ opens, clicks }: JsonObject): TrackingChoice {
  return {
    ...(typeof opens === "boolean" && { opens }),
    ...(typeof clicks === "boolean" && { clicks }),
  };
}

function keptFile(value: Json | undefined): Pick<EmailPayload, "kept"> {
  if (!isJsonObject(value)) return {};
  const { sha256, bytes, isEightBit } = value;
  if (typeof sha256 !== "string" || typeof bytes !== "number") return {};
  return { kept: { sha256, bytes, isEightBit: isEightBit === true } };
}

function addressee(value: Json): readonly Addressee[] {
  if (!isJsonObject(value) || typeof value["address"] !== "string") return [];
  const { address, name } = value;
  return [{ address, ...(typeof name === "string" && { name }) }];
}

function attachedFile(value: Json): readonly AttachedFile[] {
  if (!isJsonObject(value)) return [];
  const { filename, contentType, contentId, sha256, bytes } = value;
  if (typeof filename !== "string" || typeof sha256 !== "string" || typeof bytes !== "number") return [];
  return [
    {
      filename,
      ...(typeof contentType === "string" && { contentType }),
      ...(typeof contentId === "string" && { contentId }),
      sha256,
      bytes,
    },
  ];
}
