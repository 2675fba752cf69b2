import type { JsonObject } from "../domain/json.ts";
import type { Refusal } from "./sending/acceptance.ts";

const QUOTED_CHARS_MAX = 100;

/** Drops the members of a body that are null: an optional member that is null counts as absent. */
export function presentMembers(body: JsonObject): JsonObject {
  if (!Object.values(body).includes(null)) return body;
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
}

/** Refuses a body with a member that the endpoint does not know; null if there is none. No member is silently ignored. */
export function unknownMember(body: JsonObject, known: readonly string[]): Refusal | null {
  const unknown = Object.keys(body).find((name) => !known.includes(name));
  if (unknown === undefined) return null;
  const name = unknown.slice(0, QUOTED_CHARS_MAX);
  return { status: 400, message: `${name} is not a member of this request: known are ${known.join(", ")}` };
}
