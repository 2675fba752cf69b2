import type { JsonObject } from "../core/json.ts";

const QUOTED_CHARS_MAX = 100;

/** A body's members without those that are null: an optional member that is null counts as absent. */
export function presentMembers(body: JsonObject): JsonObject {
  const members = Object.entries(body);
  const present = members.filter(([, value]) => value !== null);
  return present.length === members.length ? body : Object.fromEntries(present);
}

/** What is wrong with a body that has a member which the endpoint does not know; null: nothing. None is dropped in silence. */
export function complaintAboutMembers(body: JsonObject, known: readonly string[]): string | null {
  const unknown = Object.keys(body).find((name) => !known.includes(name));
  if (unknown === undefined) return null;
  return `${unknown.slice(0, QUOTED_CHARS_MAX)} is not a member of this request: known are ${known.join(", ")}`;
}
