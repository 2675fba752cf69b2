import { Type } from "@sinclair/typebox";
import type { Json, JsonObject } from "../../domain/texts/json.ts";
import { chatLimits } from "./limits.ts";

/** An object of the provider's own vocabulary, which grows: it is handed on unchanged. */
export function AnyObject(description?: string) {
  return Type.Unsafe<JsonObject>({
    type: "object",
    additionalProperties: true,
    ...(description === undefined ? null : { description }),
  });
}

/** What is wrong with a value that is handed on, in a sentence; null: nothing. */
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
