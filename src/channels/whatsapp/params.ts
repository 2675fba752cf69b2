import { Type } from "@sinclair/typebox";
import { isJsonObject, type Json, type JsonObject, writtenOut } from "../../domain/json.ts";
import { chatLimits } from "./limits.ts";
import { complaintAbout, TemplateValue } from "./value-rules.ts";

/** The name of a template's placeholder. */
export const PARAMETER_NAME = /^[a-z_][a-z0-9_]{0,99}$/;
export const PARAMETER_NAME_RULE =
  "1 to 100 of a-z, 0-9 and underscore, and begin with no digit: the name of the template's placeholder";

/** Values of a template's body: of `{{1}}`, `{{2}}`, … in order, or by the names of its placeholders. */
export type MessageParams = readonly string[] | Readonly<Record<string, string>>;

/** The member `params` of a chat send. */
export const MessageParamsSchema = Type.Union(
  [
    Type.Array(TemplateValue, { maxItems: chatLimits.chatParamsMax }),
    Type.Record(Type.String({ pattern: PARAMETER_NAME.source }), TemplateValue, {
      maxProperties: chatLimits.chatParamsMax,
    }),
  ],
  {
    description:
      "Values of `{{1}}`, `{{2}}`, … in order, or an object of values by name for a template whose placeholders have " +
      "names. Numbers, digit by digit as they are sent, and booleans become text. Not empty, without line breaks, tabs or other " +
      "control characters, and with at most four blanks in a row: the provider takes no others.",
  },
);

/** What is wrong with a request's `params`, in a sentence; null: nothing. */
export function complaintAboutParams(params: Json | undefined): string | null {
  if (params === undefined) return null;
  if (Array.isArray(params)) return complaintAboutList(params);
  if (!isJsonObject(params)) {
    return "params must be an array of strings, numbers and booleans, or an object of them by name";
  }
  const named = Object.entries(params);
  if (named.length > chatLimits.chatParamsMax) return TOO_MANY;
  for (const [name, value] of named) {
    if (!PARAMETER_NAME.test(name)) return `params has the name ${quoted(name)}: a name must be ${PARAMETER_NAME_RULE}`;
    const complaint = complaintAbout(value, chatLimits.chatParamCharsMax);
    if (complaint !== null) return `params.${name} ${complaint}`;
  }
  return null;
}

const TOO_MANY = `params must not hold more than ${chatLimits.chatParamsMax} values`;

function complaintAboutList(params: readonly Json[]): string | null {
  if (params.length > chatLimits.chatParamsMax) return TOO_MANY;
  for (const [index, value] of params.entries()) {
    const complaint = complaintAbout(value, chatLimits.chatParamCharsMax);
    if (complaint !== null) return `params[${index}] ${complaint}`;
  }
  return null;
}

function quoted(name: string): string {
  return JSON.stringify(name.slice(0, 100));
}

/** The values that a checked request gives. */
export function paramsOf(params: Json | undefined): MessageParams {
  if (Array.isArray(params)) return params.map(writtenOut);
  return isJsonObject(params) && Object.keys(params).length > 0 ? textsByName(params, writtenOut) : [];
}

/** The values that were queued; null: they are in no known form. */
export function queuedParams(value: unknown): MessageParams | null {
  if (Array.isArray(value)) return value.every((one): one is string => typeof one === "string") ? value : null;
  if (!isJsonObject(value) || !Object.values(value).every((one) => typeof one === "string")) return null;
  return textsByName(value, String);
}

function textsByName(params: JsonObject, text: (value: Json) => string): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(params).map(([name, value]) => [name, text(value)]));
}

/** Parameters of a template's body (WhatsApp Cloud API, "Template components"). */
export function bodyParameters(params: MessageParams): readonly JsonObject[] {
  if (isList(params)) return params.map((text) => ({ type: "text", text }));
  return Object.entries(params).map(([parameter_name, text]) => ({ type: "text", parameter_name, text }));
}

/** Whether the values are in order, not by name. */
export function isList(params: MessageParams): params is readonly string[] {
  return Array.isArray(params);
}
