import type { TrackingChoice } from "../../domain/channels/email.ts";
import type { StoredContent } from "../../domain/content-store.ts";
import { isJsonObject, type Json, type JsonObject, parseJsonObject, parseWritten } from "../../domain/texts/json.ts";

/** What is queued of an e-mail. */
export interface EmailPayload {
  readonly to: string;
  readonly toName?: string;
  /** Overrides the template's subject. */
  readonly subject?: string;
  readonly html?: string;
  /** Beside HTML: the text alternative; alone: the whole message. */
  readonly text?: string;
  /** Slug of a registered template; absent: the message is made from `html`, `text` or both. */
  readonly template?: string;
  readonly data?: JsonObject;
  readonly cc?: readonly Addressee[];
  readonly bcc?: readonly Addressee[];
  readonly replyTo?: readonly Addressee[];
  /** Further headers: names and values as they were given. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly attachments?: readonly AttachedFile[];
  /** Before what its template and its tenant say. */
  readonly tracking?: TrackingChoice;
  /** The message as it came, which is sent; the other members are what people see of it. */
  readonly kept?: KeptFile;
}

/** A message in the content store. */
export interface KeptFile extends StoredContent {
  /** Whether its body has bytes beyond ASCII: it is signed as it is. */
  readonly isEightBit: boolean;
}

export interface Addressee {
  readonly address: string;
  readonly name?: string;
}

/** An attachment, whose content is in the content store. */
export interface AttachedFile extends StoredContent {
  readonly filename: string;
  /** Absent: by the filename's ending. */
  readonly contentType?: string;
  /** The HTML shows it as `cid:<contentId>`; absent: it stands beside the message. */
  readonly contentId?: string;
}

/** The payload in the form of its job. Undefined members are left out. */
export function encodePayload(payload: { readonly [K in keyof EmailPayload]: EmailPayload[K] | undefined }): string {
  return JSON.stringify(payload);
}

/** Parses what `encodePayload` wrote; null: it did not write this. */
export function parsePayload(text: string): EmailPayload | null {
  // Numbers are the caller's in `data` alone, whose name cannot stand in a text without a backslash before its quotes.
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

/** Members that few messages have. */
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

/** What of it is a choice. */
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
