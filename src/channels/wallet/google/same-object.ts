import {
  isJsonArray,
  isJsonObject,
  type Json,
  type JsonObject,
  toNumber,
  writtenOut,
} from "../../../domain/texts/json.ts";

/**
 * Whether the object stored by Google is the one that was sent: it has every member sent, and no others except those
 * that Google adds by itself. Another object with the same id must not be treated as ours.
 */
export function isSameObject(sent: JsonObject, held: JsonObject): boolean {
  return isSame(sent, held);
}

/** Lists members of the stored object that were neither sent nor added by Google. */
export function leftovers(sent: JsonObject, held: JsonObject): readonly string[] {
  return Object.keys(held).filter((name) => !Object.hasOwn(sent, name) && !isGooglesOwn(name, held[name] ?? null));
}

/** Members that Google adds to an object, and `messages`, which a separate call adds. */
const GOOGLES_OWN = new Set(["kind", "version", "hasUsers", "hasLinkedDevice", "classReference", "messages"]);

/** Members that apply to the call itself, and that Google need not store. */
const OF_THE_CALL = new Set(["notifyPreference"]);

function isGooglesOwn(name: string, value: Json): boolean {
  return GOOGLES_OWN.has(name) || isEmpty(value);
}

/** Whether the value is an explicit default. */
function isEmpty(value: Json): boolean {
  if (value === null || value === false || value === "" || toNumber(value) === 0) return true;
  if (Array.isArray(value)) return value.length === 0;
  return isJsonObject(value) && Object.keys(value).length === 0;
}

function isSame(sent: Json, held: Json): boolean {
  if (isJsonObject(sent)) return isJsonObject(held) && areSameMembers(sent, held);
  if (isJsonArray(sent)) {
    return isJsonArray(held) && sent.length === held.length && sent.every((item, at) => isSame(item, held[at] ?? null));
  }
  if (typeof sent === "string" && typeof held === "string") return sent === held || isSameEnum(sent, held);
  // 64-bit numbers come back as strings.
  const number = toNumber(sent);
  if (number !== null && number === toNumber(held)) return true;
  return sent === held || (isScalar(sent) && isScalar(held) && writtenOut(sent) === writtenOut(held));
}

function areSameMembers(sent: JsonObject, held: JsonObject): boolean {
  const sentAll = Object.entries(sent).every(([name, value]) =>
    Object.hasOwn(held, name) ? isSame(value, held[name] ?? null) : isEmpty(value) || OF_THE_CALL.has(name),
  );
  return sentAll && leftovers(sent, held).length === 0;
}

/** Whether two enumeration values are equal: Google returns some under their former names, `QR_CODE` as `qrCode`. */
function isSameEnum(sent: string, held: string): boolean {
  return /^[A-Z][A-Z0-9_]*$/.test(sent) && sent.replaceAll("_", "").toLowerCase() === held.toLowerCase();
}

function isScalar(value: Json): boolean {
  return typeof value === "string" || toNumber(value) !== null;
}
