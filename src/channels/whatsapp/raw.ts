import { Type } from "@sinclair/typebox";
import type { Json, JsonObject } from "../../domain/texts/json.ts";
import { chatLimits } from "./limits.ts";

/** Returns the schema of an object in the provider's own vocabulary, which grows: it is passed on unchanged. */
export function AnyObject(description?: string) {
  return Type.Unsafe<JsonObject>({
    type: "object",
    additionalProperties: true,
    ...(description === undefined ? null : { description }),
  });
}

/** Returns a sentence that says why a value cannot be passed on, or null. */
export function complaintAboutRaw(value: Json, where: string): string | null {
  const text = JSON.stringify(value);
  if (Buffer.byteLength(text) > chatLimits.chatRawBytesMax) {
    return `${where} must not be larger than ${chatLimits.chatRawBytesMax} bytes`;
  }
  // A lone half of a pair is an escape here, which the provider's parser may refuse with the whole message.
  return HALF_PAIR.test(text) ? `${where} must not contain half of a character` : null;
}

/** As `JSON.stringify` writes one (ECMA-262, "well-formed JSON.stringify"). */
const HALF_PAIR = /(?<!\\)(?:\\\\)*\\ud[89a-f]/;
