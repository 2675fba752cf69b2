import type { Endpoint } from "./endpoint.ts";

/** Returns the first parts of the names that a call's body, query and path can have. */
export function memberNames({ params = {}, query = {}, documentedBody }: Endpoint): ReadonlySet<string> {
  return new Set([...Object.keys(params), ...Object.keys(query), ...membersIn(documentedBody?.schema)]);
}

/** Returns the members of an object that the schema allows, in any of its alternatives. */
export function membersIn(schema: unknown): readonly string[] {
  if (typeof schema !== "object" || schema === null) return [];
  const properties: unknown = Reflect.get(schema, "properties");
  const own = typeof properties === "object" && properties !== null ? Object.keys(properties) : [];
  const alternatives = ["anyOf", "oneOf", "allOf"].flatMap((name): unknown => Reflect.get(schema, name) ?? []);
  return [...own, ...alternatives.flatMap(membersIn)];
}
