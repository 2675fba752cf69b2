import { Type } from "@sinclair/typebox";
import { isJsonObject } from "../../../../src/domain/texts/json.ts";
import type { Acceptance } from "../../../../src/http/sending/acceptance.ts";

const NAME = /^[a-z0-9][a-z0-9_-]{0,63}$/;
const TEXT_CHARS_MAX = 10_000;

/** The example in the API document. */
export const FileSend = Type.Object(
  {
    name: Type.String({ pattern: NAME.source, description: "Of the file." }),
    text: Type.String({ minLength: 1, maxLength: TEXT_CHARS_MAX, description: "What is added to it, as a line." }),
  },
  { $id: "FileSend" },
);

/** Turns the body into the queued payload, or into the first reason against it. */
export function acceptFile(_tenant: unknown, body: unknown): Acceptance {
  if (!isJsonObject(body)) return refused("the body must be a JSON object");
  const { name, text } = body;
  if (typeof name !== "string" || !NAME.test(name)) {
    return refused("name must be 1 to 64 lower-case letters, digits, - and _, and begin with a letter or digit");
  }
  if (typeof text !== "string" || text.length === 0 || text.length > TEXT_CHARS_MAX) {
    return refused(`text must be 1 to ${TEXT_CHARS_MAX} characters`);
  }
  return { ok: true, job: { recipient: name, payload: JSON.stringify({ text }) } };
}

function refused(message: string): Acceptance {
  return { ok: false, refusal: { status: 400, message } };
}
