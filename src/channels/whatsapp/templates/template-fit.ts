import type { MessageButton } from "./buttons.ts";
import type { MessageHeader } from "./header.ts";
import { isList, type MessageParams } from "./params.ts";
import type { TemplateVersion } from "./template-list.ts";

/** A message's use of its template. */
export interface SentTemplate {
  /** The provider's name of the template. */
  readonly name: string;
  readonly language: string;
  readonly params: MessageParams;
  readonly header: MessageHeader | null;
  readonly buttons: readonly MessageButton[];
}

/**
 * States in which messages are refused. The provider judges all others: its vocabulary grows, and a template under
 * review may be sent in its previous version.
 */
const BARRED: readonly string[] = ["REJECTED", "PAUSED", "DISABLED", "DELETED"];
const SHOWN_MAX = 20;

/** Returns a sentence that says why the provider would refuse the message, or null. `versions`: its template's versions. */
export function complaintAboutTemplate(sent: SentTemplate, versions: readonly TemplateVersion[]): string | null {
  const { name, language } = sent;
  if (versions.length === 0) return `template_id: WhatsApp has no template ${quoted(name)} in your account`;
  const version = versions.find((one) => one.language === language);
  if (version === undefined) {
    const languages = versions.slice(0, SHOWN_MAX).map((one) => one.language);
    return `language_code: WhatsApp has the template ${quoted(name)} in ${languages.join(", ")}, not in ${language}`;
  }
  if (BARRED.includes(version.status)) {
    return `template_id: WhatsApp says that the template ${quoted(name)} in ${language} is ${version.status}`;
  }
  return complaintAboutBody(sent, version) ?? complaintAboutHead(sent, version) ?? complaintAboutButtons(sent, version);
}

function complaintAboutBody({ name, params }: SentTemplate, { body_params, parameter_format }: TemplateVersion) {
  if (body_params === null) return null;
  const takes = `the body of the template ${quoted(name)} takes ${counted(body_params.length)}`;
  if (isList(params)) {
    if (params.length !== body_params.length) return `params: ${takes}, and ${params.length} are given`;
    const isNamed = parameter_format?.toUpperCase() === "NAMED" && params.length > 0;
    return isNamed ? `params: ${takes} by name: ${body_params.slice(0, SHOWN_MAX).join(", ")}` : null;
  }
  const given = Object.keys(params);
  const missing = body_params.find((one) => !given.includes(one));
  if (missing !== undefined) return `params: ${takes}, and ${missing} is not given`;
  const other = given.find((one) => !body_params.includes(one));
  return other === undefined ? null : `params.${other}: ${takes}, none of which is ${other}`;
}

/** The type of value for each kind of header; the provider judges other kinds. */
const HEADERS: Readonly<Record<string, string>> = {
  IMAGE: "image",
  VIDEO: "video",
  DOCUMENT: "document",
  LOCATION: "location",
};

function complaintAboutHead({ name, header }: SentTemplate, { header_format: format, header_params }: TemplateVersion) {
  const of = `the template ${quoted(name)}`;
  if (format === null) return header === null ? null : `header: ${of} has none`;
  if (format === "TEXT") {
    if (header_params.length === 0) return header === null ? null : `header: the header of ${of} takes no value`;
    return header?.type === "text" ? null : `header: the header of ${of} takes a text`;
  }
  const type = Object.hasOwn(HEADERS, format) ? HEADERS[format] : undefined;
  return type === undefined || header?.type === type
    ? null
    : `header: the header of ${of} takes a value of the type ${type}`;
}

function complaintAboutButtons({ name, buttons }: SentTemplate, { filled_buttons }: TemplateVersion) {
  const missing = filled_buttons.find((at) => !buttons.some(({ index }) => index === at));
  if (missing === undefined) return null;
  return `buttons: the button ${missing} of the template ${quoted(name)} takes a value, and none is given`;
}

function counted(values: number): string {
  return values === 1 ? "1 value" : `${values} values`;
}

function quoted(name: string): string {
  return JSON.stringify(name.slice(0, 100));
}
