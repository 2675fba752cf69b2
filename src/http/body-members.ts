import type { JsonObject } from "../domain/json.ts";
import type { Refusal } from "./sending/acceptance.ts";

const QUOTED_CHARS_MAX = 100;

/** A body's members without those that are null: an optional member that is null counts as absent. */
export function presentMembers(body: JsonObject): JsonObject {
  if (!Object.values(body).includes(null)) return body;
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
}

/** The refusal of a body that has a member which the endpoint does not know, or null. None is dropped in silence. */
export function unknownMember(body: JsonObject, known: readonly string[]): Refusal | null {
  const unknown = Object.keys(body).find((name) => !known.includes(name));
  if (unknown === undefined) return null;
  const name = unknown.slice(0, QUOTED_CHARS_MAX);
  return { status: 400, message: `${name} is not a member of this request: known are ${known.join(", ")}` };
}
