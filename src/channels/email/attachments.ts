import { Type } from "@sinclair/typebox";
import type { Content } from "../../domain/content-store.ts";
import { isJsonObject, type Json, type JsonObject } from "../../domain/texts/json.ts";
import { NOT_BLANK, optional } from "../../http/schemas.ts";
import { complaintAboutMembers } from "../../http/sending/acceptance.ts";
import { emailLimits } from "./limits.ts";
import type { AttachedFile } from "./payload.ts";

export const FILENAME_CHARS_MAX = 255;
export const CONTENT_ID = /^[A-Za-z0-9._@+-]{1,128}$/;
const MIB = 1024 * 1024;
const TYPE_AND_SUBTYPE = "[\\w!#$&^.+-]{1,64}/[\\w!#$&^.+-]{1,64}";

export const Attachments = optional(
  Type.Array(
    Type.Object(
      {
        filename: Type.String({
          minLength: 1,
          maxLength: FILENAME_CHARS_MAX,
          pattern: "^[^\\u0000-\\u001f\\u007f-\\u009f/\\\\]+$",
          ...NOT_BLANK,
          description: "Without slashes and control characters.",
        }),
        content: Type.String({
          pattern: "^[A-Za-z0-9+/=\\s]*$",
          description: "The file in base64.",
          contentEncoding: "base64",
        }),
        content_type: optional(
          Type.String({
            pattern: `^\\s*${TYPE_AND_SUBTYPE}`,
            description:
              "With its parameters. By default what the filename's ending says, else application/octet-stream. A message/rfc822 in " +
              "ASCII is attached as a message, any other as a file.",
          }),
        ),
        content_id: optional(
          Type.String({
            pattern: CONTENT_ID.source,
            description: "The HTML shows the file as `cid:<content_id>`. One file each.",
          }),
        ),
      },
      { additionalProperties: false },
    ),
    {
      maxItems: emailLimits.attachmentsMax,
      description: `At most ${emailLimits.attachmentBytesMax / MIB} MiB in all, decoded.`,
    },
  ),
);

/** The attachments of a message, and the files that they name. */
export interface ReadAttachments {
  readonly attachments: readonly AttachedFile[];
  readonly contents: readonly Content[];
}

/** Returns the attachments, or a sentence that says why they are invalid. Takes time proportional to their length. */
export function readAttachments(given: Json): ReadAttachments | string {
  if (!Array.isArray(given)) return "attachments must be an array of files";
  if (given.length > emailLimits.attachmentsMax) {
    return `attachments must not hold more than ${emailLimits.attachmentsMax} files`;
  }
  const attachments: AttachedFile[] = [];
  const contents = new Map<string, Content>();
  const contentIds = new Set<string>();
  let bytes = 0;
  for (const [at, value] of given.entries()) {
    const where = `attachments[${at}]`;
    const named = isJsonObject(value) ? readName(where, value) : `${where} must be an object with filename and content`;
    if (typeof named === "string") return named;
    const { contentId } = named;
    if (contentId !== undefined && contentIds.size === contentIds.add(contentId).size) {
      return `${where}.content_id is another attachment's: each names one file`;
    }
    const body = isJsonObject(value) ? decoded(value["content"]) : null;
    if (body === null) return `${where}.content must be a file in base64`;
    bytes += body.length;
    if (bytes > emailLimits.attachmentBytesMax) {
      return `attachments must not have more than ${emailLimits.attachmentBytesMax / MIB} MiB together, decoded`;
    }
    const sha256 = new Bun.CryptoHasher("sha256").update(body).digest("hex");
    attachments.push({ ...named, sha256, bytes: body.length });
    contents.set(sha256, { sha256, body });
  }
  return { attachments, contents: [...contents.values()] };
}

const MEMBERS = ["filename", "content", "content_type", "content_id"];
/**
 * Neither a path, nor controls, nor characters that turn the direction of those behind them, which disguise a file's ending.
 * Joiners, marks and tags are part of words and emoji.
 */
export const UNNAMEABLE = String.raw`\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069`;
const FILENAME = new RegExp(String.raw`^[^${UNNAMEABLE}/\\]+$`, "u");
const VISIBLE = /[^\p{Default_Ignorable_Code_Point}\p{Z}]/u;
/** Types whose bodies are parts, which must not be encoded (RFC 2046, 5.1), or differ from a file's content. */
const STRUCTURED = /^(?:multipart|message)\/(?!rfc822\b)/i;
const CONTENT_TYPE_CHARS_MAX = 500;
const MEDIA_TYPE = new RegExp(`^${TYPE_AND_SUBTYPE}(?=[ \\t]*(?:;|$))`);
/** RFC 2045, 5.1: a token, or a quoted string. An empty one between two semicolons is ignored. */
const PARAMETER =
  /[ \t]*;[ \t]*(?:([\w!#$%&'*+.^`{|}~-]+)[ \t]*=[ \t]*(?:([\w!#$%&'*+.^`{|}~-]+)|"((?:[ !#-[\]-~]|\\[ -~])*)"))?/y;

/**
 * Normalises a media type with its parameters: lower case except for values, which are quoted if necessary. Null if the
 * text is no media type.
 */
export function parseContentType(given: string): string | null {
  const text = given.trim();
  const [type] = MEDIA_TYPE.exec(text) ?? [];
  if (type === undefined || text.length > CONTENT_TYPE_CHARS_MAX || STRUCTURED.test(type)) return null;
  const parameters = new Map<string, string>();
  PARAMETER.lastIndex = type.length;
  for (let at = type.length; at < text.length; at = PARAMETER.lastIndex) {
    const read = PARAMETER.exec(text);
    if (read === null) return null;
    const [, name = "", token, quoted = ""] = read;
    if (name === "") continue;
    const key = name.toLowerCase();
    if (parameters.has(key)) return null;
    parameters.set(key, token ?? quoted.replace(/\\(.)/g, "$1"));
  }
  const written = [...parameters].map(
    ([name, value]) => `; ${name}=${/^[\w.+-]+$/.test(value) ? value : quotedText(value)}`,
  );
  return `${type.toLowerCase()}${written.join("")}`;
}

function quotedText(value: string): string {
  return `"${value.replace(/["\\]/g, "\\$&")}"`;
}

function readName(where: string, value: JsonObject): Omit<AttachedFile, "sha256" | "bytes"> | string {
  const unknown = complaintAboutMembers(value, MEMBERS, where);
  if (unknown !== null) return unknown;
  const { filename, content_type, content_id } = value;
  if (
    typeof filename !== "string" ||
    filename.length > FILENAME_CHARS_MAX ||
    !FILENAME.test(filename) ||
    !VISIBLE.test(filename)
  ) {
    return `${where}.filename must be 1 to ${FILENAME_CHARS_MAX} characters without slashes and control characters`;
  }
  const given = content_type ?? undefined;
  const type = typeof given === "string" ? parseContentType(given) : null;
  if (given !== undefined && type === null) {
    return `${where}.content_type must be a media type such as application/pdf or text/calendar; method=REQUEST, not multipart or message (but message/rfc822)`;
  }
  const id = content_id ?? undefined;
  if (id !== undefined && (typeof id !== "string" || !CONTENT_ID.test(id))) {
    return `${where}.content_id must be 1 to 128 of A-Z a-z 0-9 . _ @ + -`;
  }
  return { filename, ...(type !== null && { contentType: type }), ...(id !== undefined && { contentId: id }) };
}

function decoded(content: Json | undefined): Uint8Array | null {
  if (typeof content !== "string") return null;
  try {
    return Uint8Array.fromBase64(content);
  } catch {
    return null;
  }
}
