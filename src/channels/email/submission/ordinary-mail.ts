import type { JsonObject } from "../../../domain/texts/json.ts";
import { CONTENT_ID, FILENAME_CHARS_MAX, parseContentType, UNNAMEABLE } from "../attachments.ts";
import { checkHtml, VISIBLE } from "../content/html-rules.ts";
import { emailLimits } from "../limits.ts";
import type { Entity } from "./mime-tree.ts";
import { decodeContent, type PartText, textIn } from "./part-content.ts";

/** The parts of a message that the API has members for. */
export interface OrdinaryParts {
  readonly text: Entity | null;
  readonly html: Entity | null;
  /** Files that the HTML displays. */
  readonly shown: readonly Entity[];
  readonly attached: readonly Entity[];
}

/** Finds the ordinary parts; null if the message has other parts or another structure. */
export function ordinaryParts(root: Entity): OrdinaryParts | null {
  const [first, ...others] = root.type.value === "multipart/mixed" && !root.hasEpilogue ? root.children : [root];
  if (first === undefined || !others.every(isFile)) return null;
  const body = findBody(first);
  if (body !== null) return { ...body, attached: others };
  return isFile(first) ? { text: null, html: null, shown: [], attached: [first, ...others] } : null;
}

type Body = Omit<OrdinaryParts, "attached">;

function findBody(entity: Entity): Body | null {
  if (isText(entity, "plain")) return { text: entity, html: null, shown: [] };
  if (isText(entity, "html")) return { text: null, html: entity, shown: [] };
  const [first, second, ...others] = entity.children;
  if (first === undefined || entity.hasEpilogue) return null;
  switch (entity.type.value) {
    case "multipart/alternative": {
      if (second === undefined) return findBody(first);
      const richer = isText(first, "plain") && others.length === 0 ? findBody(second) : null;
      return richer?.html && richer.text === null ? { ...richer, text: first } : null;
    }
    case "multipart/related": {
      const body = entity.type.params.has("start") ? null : findBody(first);
      const shown = entity.children.slice(1);
      return body?.html && body.shown.length === 0 && shown.every(isFile) ? { ...body, shown } : null;
    }
    default:
      return null;
  }
}

function isText({ type, disposition, children }: Entity, kind: "plain" | "html"): boolean {
  const isShown = disposition === null || (disposition.value === "inline" && !disposition.params.has("filename"));
  return type.value === `text/${kind}` && isShown && !type.params.has("name") && children.length === 0;
}

function isFile(entity: Entity): boolean {
  const isPart = /^(?:multipart|message)\//.test(entity.type.value) || entity.children.length > 0;
  return !isPart && !isText(entity, "plain") && !isText(entity, "html");
}

/** Returns the texts of ordinary parts; null if the API would refuse or change them. */
export function exactTexts({ text, html }: OrdinaryParts): { readonly text?: string; readonly html?: string } | null {
  const parts = [text, html].filter((part) => part !== null);
  if (parts.length === 0 || !parts.every(isPlainText)) return null;
  if (parts.some(({ bodyStart, end }) => end - bodyStart > ENCODED_BYTES_MAX)) return null;
  const [plain, rich] = [text && textIn(text), html && textIn(html)];
  if (!isExact(plain) || !isExact(rich)) return null;
  if (rich !== null && checkHtml(rich.text).length > 0) return null;
  if (rich === null && !VISIBLE.test(plain?.text ?? "")) return null;
  return textMembers(plain?.text ?? null, rich?.text ?? null);
}

/** Returns the texts even if the API would change them. */
export function looseTexts({ text, html }: OrdinaryParts): { readonly text?: string; readonly html?: string } {
  return textMembers(text && textIn(text).text, html && textIn(html).text);
}

function textMembers(text: string | null, html: string | null) {
  const hasText = text !== null && (html === null || text.trim() !== "");
  return { ...(html !== null && { html: normalizeLineEnds(html) }), ...(hasText && { text: normalizeLineEnds(text) }) };
}

function normalizeLineEnds(text: string): string {
  return text.replaceAll("\r\n", "\n").trimEnd();
}

function isExact(part: PartText | null): boolean {
  if (part === null) return true;
  return part.isSound && Buffer.byteLength(part.text) <= TEXT_BYTES_MAX && !part.text.includes("\0");
}

/** Less than the API's limit, because braces are written in more characters. */
const TEXT_BYTES_MAX = emailLimits.inlineHtmlBytesMax - 16 * 1024;
/** In quoted-printable, a byte takes three. */
const ENCODED_BYTES_MAX = 4 * TEXT_BYTES_MAX;
const PART_FIELDS: ReadonlySet<string> = new Set([
  "content-type",
  "content-transfer-encoding",
  "content-disposition",
  "content-id",
]);

/** Whether the text has no parameter beside its character set. */
function isPlainText({ type, fields }: Entity): boolean {
  const names = [...type.params.keys()].filter((name) => name !== "charset" && name !== "boundary");
  const isKnown = names.every((name) => name === "format" && type.params.get(name)?.toLowerCase() === "fixed");
  return isKnown && type.isClean && !fields.some(({ key }) => OTHER_FIELD.test(key) && !PART_FIELDS.has(key));
}

const OTHER_FIELD = /^content-(?!id|language$|length$)/;

/** Returns the files of ordinary parts in the API's form; null if that would lose information. */
export function exactFiles({ shown, attached }: OrdinaryParts): readonly JsonObject[] | null {
  const all = [...shown, ...attached];
  if (all.length > emailLimits.attachmentsMax) return null;
  if (!shown.every((file) => isExactFile(file, true)) || !attached.every((file) => isExactFile(file, false)))
    return null;
  const contents = all.map((file) => decodeContent(file));
  const bytes = contents.reduce((sum, content) => sum + content.bytes.length, 0);
  if (bytes > emailLimits.attachmentBytesMax || !contents.every(({ isSound }) => isSound)) return null;
  const ids = shown.map(readContentId);
  return new Set(ids).size < ids.length ? null : looseFiles({ shown, attached });
}

export function looseFiles({ shown, attached }: Pick<OrdinaryParts, "shown" | "attached">): readonly JsonObject[] {
  return [...shown, ...attached].map((file, at) => {
    const id = readContentId(file);
    const type = contentType(file);
    return {
      filename: fileName(readFilename(file)) || `attachment-${at + 1}`,
      content: decodeContent(file).bytes.toString("base64"),
      content_type: parseContentType(type) ?? file.type.value,
      ...(id !== "" && { content_id: id }),
    };
  });
}

function isExactFile(file: Entity, isShown: boolean): boolean {
  const { fields, disposition, type } = file;
  const id = readContentId(file);
  if (!fields.every(({ key }) => PART_FIELDS.has(key) || key === "mime-version" || key === "x-attachment-id"))
    return false;
  if (!type.isClean || parseContentType(contentType(file)) === null || fileName(readFilename(file)) === "")
    return false;
  if (disposition !== null && [...disposition.params.keys()].some((name) => name !== "filename" && name !== "size"))
    return false;
  const isImage = type.value.startsWith("image/");
  const written = isShown && isImage ? "inline" : "attachment";
  if ((disposition?.value ?? (isShown && isImage ? "inline" : "")) !== written) return false;
  return isShown ? CONTENT_ID.test(id) : id === "";
}

function contentType({ type: { value, params } }: Entity): string {
  const written = [...params].filter(([name]) => name !== "name" && name !== "boundary");
  return [
    value,
    ...written.map(([name, text]) => `${name}=${/^[\w.+-]+$/.test(text) ? text : JSON.stringify(text)}`),
  ].join("; ");
}

function readContentId({ fields }: Entity): string {
  const value = fields.find(({ key }) => key === "content-id")?.value ?? "";
  return value.replace(/^<(.*)>$/, "$1");
}

export function readFilename({ disposition, type }: Entity): string {
  return disposition?.params.get("filename") || type.params.get("name") || "";
}

const NOT_IN_NAMES = new RegExp(`[${UNNAMEABLE}]+`, "gu");

/** Returns the last part of a path, as some systems use paths for file names. */
function fileName(given: string): string {
  const last = given.replace(NOT_IN_NAMES, " ").split(/[/\\]/).at(-1) ?? "";
  return last.trim().slice(-FILENAME_CHARS_MAX);
}
