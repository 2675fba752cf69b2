import { Type } from "@sinclair/typebox";
import { isJsonObject, type Json, type JsonObject, toNumber, writtenOut } from "../../../domain/texts/json.ts";
import { complaintAboutMembers, presentMembers } from "../../../http/sending/acceptance.ts";
import { chatLimits } from "../limits.ts";
import { complaintAbout, filling, TemplateValue } from "./value-rules.ts";

/** The name of a template's placeholder. */
export const PARAMETER_NAME = /^[a-z_][a-z0-9_]{0,99}$/;
export const PARAMETER_NAME_RULE =
  "1 to 100 of a-z, 0-9 and underscore, and begin with no digit: the name of the template's placeholder";

/** An amount of money, which a phone may format for its own locale. */
export interface CurrencyValue {
  readonly type: "currency";
  /** The text that is displayed if the phone does not localise the amount. */
  readonly fallback_value: string;
  /** ISO 4217. */
  readonly code: string;
  /** The amount times 1,000. */
  readonly amount_1000: number;
}

/** A time as text, which the provider displays unchanged (WhatsApp Cloud API, "Messages", `date_time`). */
export interface TimeValue {
  readonly type: "date_time";
  readonly fallback_value: string;
}

export type ParamValue = string | CurrencyValue | TimeValue;

/** Values of a template's body: those of `{{1}}`, `{{2}}`, … in order, or by placeholder name. */
export type MessageParams = readonly ParamValue[] | Readonly<Record<string, ParamValue>>;

const CURRENCY = /^[A-Z]{3}$/;
const FallbackValue = filling(
  chatLimits.chatParamCharsMax,
  "How it is written where the phone has no form of its own.",
);

const MessageParam = Type.Union([
  TemplateValue,
  Type.Object(
    {
      type: Type.Literal("currency"),
      fallback_value: FallbackValue,
      code: Type.String({ pattern: CURRENCY.source, description: "ISO 4217." }),
      amount_1000: Type.Integer({
        minimum: Number.MIN_SAFE_INTEGER,
        maximum: Number.MAX_SAFE_INTEGER,
        description: "The amount times 1,000: 12500 is 12.50.",
      }),
    },
    { additionalProperties: false },
  ),
  Type.Object({ type: Type.Literal("date_time"), fallback_value: FallbackValue }, { additionalProperties: false }),
]);

/** The member `params` of a chat send. */
export const MessageParamsSchema = Type.Union(
  [
    Type.Array(MessageParam, { maxItems: chatLimits.chatParamsMax }),
    Type.Record(Type.String({ pattern: PARAMETER_NAME.source }), MessageParam, {
      maxProperties: chatLimits.chatParamsMax,
    }),
  ],
  {
    $id: "ChatParams",
    description:
      "Values of `{{1}}`, `{{2}}`, … in order, or an object of values by name for a template whose placeholders have " +
      "names. Numbers, digit by digit as they are sent, and booleans become text. Not empty, without line breaks, tabs or other " +
      "control characters, and with at most four blanks in a row: the provider takes no others. An object is an amount of money " +
      "or a time.",
  },
);

/** Returns a sentence that says why the `params` of a request are invalid; null if they are valid or absent. */
export function complaintAboutParams(params: Json | undefined, where = "params"): string | null {
  if (params === undefined) return null;
  const isList = Array.isArray(params);
  if (!isList && !isJsonObject(params)) {
    return `${where} must be an array of strings, numbers and booleans, or an object of them by name`;
  }
  const values = Object.entries<Json>(params);
  if (values.length > chatLimits.chatParamsMax) {
    return `${where} must not hold more than ${chatLimits.chatParamsMax} values`;
  }
  for (const [name, value] of values) {
    if (!isList && !PARAMETER_NAME.test(name)) {
      return `${where} has the name ${quoted(name)}: a name must be ${PARAMETER_NAME_RULE}`;
    }
    const complaint = complaintAboutValue(value, isList ? `${where}[${name}]` : `${where}.${name}`);
    if (complaint !== null) return complaint;
  }
  return null;
}

function complaintAboutValue(value: Json, where: string): string | null {
  if (isJsonObject(value) && value["type"] !== undefined) return complaintAboutTyped(presentMembers(value), where);
  const complaint = complaintAbout(value, chatLimits.chatParamCharsMax);
  return complaint === null ? null : `${where} ${complaint}`;
}

const MEMBERS: Readonly<Record<"currency" | "date_time", readonly string[]>> = {
  currency: ["type", "fallback_value", "code", "amount_1000"],
  date_time: ["type", "fallback_value"],
};

function complaintAboutTyped(value: JsonObject, where: string): string | null {
  const { type, fallback_value: fallback, code, amount_1000: amount } = value;
  if (type !== "currency" && type !== "date_time") return `${where}.type must be one of currency, date_time`;
  const unknown = complaintAboutMembers(value, MEMBERS[type], `a value of the type ${type}`, `${where}.`);
  if (unknown !== null) return unknown;
  if (fallback === undefined) return `${where}.fallback_value is required`;
  if (typeof fallback !== "string") return `${where}.fallback_value must be a string`;
  const complaint = complaintAbout(fallback, chatLimits.chatParamCharsMax);
  if (complaint !== null) return `${where}.fallback_value ${complaint}`;
  if (type === "date_time") return null;
  if (typeof code !== "string" || !CURRENCY.test(code)) {
    return `${where}.code must be a currency's code of three letters, such as EUR`;
  }
  return Number.isSafeInteger(toNumber(amount))
    ? null
    : `${where}.amount_1000 must be a whole number: the amount times 1,000`;
}

function quoted(name: string): string {
  return JSON.stringify(name.slice(0, 100));
}

/** Reads the values of a checked request. */
export function readParams(params: Json | undefined): MessageParams {
  if (Array.isArray(params)) return params.map(readParam);
  return isJsonObject(params) && Object.keys(params).length > 0 ? byName(params, readParam) : [];
}

function readParam(value: Json): ParamValue {
  return isJsonObject(value) ? (readTyped(value) ?? "") : writtenOut(value);
}

function readTyped(value: JsonObject): CurrencyValue | TimeValue | null {
  const { type, fallback_value, code, amount_1000 } = value;
  if (typeof fallback_value !== "string") return null;
  if (type === "date_time") return { type, fallback_value };
  const amount = toNumber(amount_1000);
  return type === "currency" && typeof code === "string" && amount !== null
    ? { type, fallback_value, code, amount_1000: amount }
    : null;
}

/** Reads queued values; null if their form is unknown. */
export function queuedParams(value: unknown): MessageParams | null {
  const isList = Array.isArray(value);
  if (!isList && !isJsonObject(value)) return null;
  const read = Object.entries<unknown>(value).map(([name, one]) => [name, queuedParam(one)] as const);
  const known = read.flatMap(([name, one]) => (one === null ? [] : [[name, one] as const]));
  if (known.length < read.length) return null;
  return isList ? known.map(([, one]) => one) : Object.fromEntries(known);
}

function queuedParam(value: unknown): ParamValue | null {
  if (isJsonObject(value)) return readTyped(value);
  return typeof value === "string" ? value : null;
}

function byName(params: JsonObject, read: (value: Json) => ParamValue): Readonly<Record<string, ParamValue>> {
  return Object.fromEntries(Object.entries(params).map(([name, value]) => [name, read(value)]));
}

/** Builds the parameters of a template's body (WhatsApp Cloud API, "Template components"). */
export function bodyParameters(params: MessageParams): readonly JsonObject[] {
  if (isList(params)) return params.map((value) => bodyParameter(value));
  return Object.entries(params).map(([name, value]) => bodyParameter(value, name));
}

function bodyParameter(value: ParamValue, name?: string): JsonObject {
  const named = name === undefined ? {} : { parameter_name: name };
  if (typeof value === "string") return { type: "text", ...named, text: value };
  const { type, ...members } = value;
  return { type, ...named, [type]: members };
}

/** Whether the values are in order, not by name. */
export function isList(params: MessageParams): params is readonly ParamValue[] {
  return Array.isArray(params);
}
