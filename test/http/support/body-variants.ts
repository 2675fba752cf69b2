import fc from "fast-check";
import { isJsonObject, type Json, type JsonObject } from "../../../src/domain/texts/json.ts";
import type { Schema } from "./documented.ts";

/** A body that differs from a good one in one place. */
export interface Variant {
  /** The place, with `[]` for any item of a list. */
  readonly at: string;
  readonly how: string;
  readonly body: Json;
}

/**
 * Bodies that differ from the given one in one place each: without a member, with one that nobody knows, with one that it lacks, with
 * another value. Values are what the schema of the place takes, up to its bounds and just beyond, and what hardly any place takes.
 */
export function* listBodyVariants(schema: Schema, body: Json, at = ""): Generator<Variant> {
  const alternatives = listAlternatives(schema);
  const values = [...HOSTILE, ...alternatives.flatMap((one) => drawSamples(one, 0))];
  for (const value of distinct(values)) yield { at, how: `is ${shown(value)}`, body: value };
  if (Array.isArray(body)) yield* listVariants(alternatives, { list: body, at });
  if (isJsonObject(body)) yield* objectVariants(alternatives, { object: body, at });
}

/** The alternatives of a place. Rules beside an object's members, such as that one of two must be there, make none. */
function listAlternatives(schema: Schema): readonly Schema[] {
  const { anyOf, oneOf } = schema;
  if (schema.properties !== undefined) return [schema];
  return (anyOf ?? oneOf)?.flatMap((one) => listAlternatives(one)) ?? [schema];
}

interface List {
  readonly list: readonly Json[];
  readonly at: string;
}

function* listVariants(alternatives: readonly Schema[], { list, at }: List) {
  const [first, ...rest] = list;
  if (first === undefined) return;
  yield { at, how: "has an item twice", body: [first, ...list] };
  for (const { items, maxItems } of alternatives) {
    if (maxItems !== undefined) {
      yield { at, how: "is too long", body: Array.from({ length: maxItems + 1 }, (_, i) => numbered(first, i)) };
    }
    if (items === undefined) continue;
    for (const one of listBodyVariants(items, first, `${at}[]`)) yield { ...one, body: [one.body, ...rest] };
  }
}

interface Members {
  readonly object: JsonObject;
  readonly at: string;
}

function* objectVariants(alternatives: readonly Schema[], { object, at }: Members) {
  yield { at, how: "has an unknown member", body: { ...object, unknown_member: 1 } };
  for (const name of Object.keys(object)) {
    const { [name]: _, ...others } = object;
    yield { at, how: `lacks ${name}`, body: others };
  }
  for (const { properties = {}, required = [], additionalProperties } of alternatives) {
    if (!isOfKind(properties, object) || !required.every((name) => name in object)) continue;
    const kind = Object.values(properties).flatMap(({ const: only }) =>
      typeof only === "string" ? [`<${only}>`] : [],
    );
    for (const [name, member] of Object.entries(withoutMoreOfTheSame(properties, object))) {
      const inner = `${at}${kind.join("")}${at === "" && kind.length === 0 ? "" : "."}${name}`;
      for (const one of listBodyVariants(member, object[name] ?? null, inner)) {
        yield { ...one, body: { ...object, [name]: one.body } };
      }
    }
    if (typeof additionalProperties !== "object") continue;
    for (const [name, given] of Object.entries(object)) {
      if (Object.hasOwn(properties, name)) continue;
      for (const one of listBodyVariants(additionalProperties, given, `${at}.*`)) {
        yield { ...one, body: { ...object, [name]: one.body } };
      }
    }
  }
}

/** The members, but of those that the object lacks and that have equal schemas only the first two. */
function withoutMoreOfTheSame(properties: Readonly<Record<string, Schema>>, object: JsonObject) {
  const count = new Map<string, number>();
  return Object.fromEntries(
    Object.entries(properties).filter(([name, schema]) => {
      if (name in object) return true;
      const text = JSON.stringify({ ...schema, description: undefined });
      count.set(text, (count.get(text) ?? 0) + 1);
      return (count.get(text) ?? 0) <= 2;
    }),
  );
}

/** Whether the members that tell alternatives from one another have the values that this one needs. */
function isOfKind(properties: Readonly<Record<string, Schema>>, value: JsonObject): boolean {
  return Object.entries(properties).every(
    ([name, { const: only }]) => only === undefined || value[name] === undefined || value[name] === only,
  );
}

const LONG = "x".repeat(70_000);
/** Of each type, and of each kind that some reader treats in its own way. */
// biome-ignore format: a list of values
const HOSTILE: readonly Json[] = [
  null, true, false, 0, 1, -1, 5, 1.5, 9_007_199_254_740_992, 1e300, "", " ", "x", "7", "no such value", "a\tb", "a\nb", "a\u0007b", "a\u0085b",
  "a\u2028b", "\ud800", "é", "😀", "a     b", LONG, [], [null], ["x"], [1], {}, { unknown_member: 1 }, { x: "y" },
  // Of no calendar, in no zone, and in both usual forms.
  "2026-02-30T10:00:00Z", "2026-12-31T23:59:59", "2026-12-31T23:59:59+01:00", "2026-12-31t23:59:59z", "2026-12-31T23:59Z", "2026-12-31T24:00:00Z",
  "2026-12-31T23:59:60Z", "2026-12-31T23:59:59.1234567890Z", "2026-12-31T23:59:59,5Z", "2026-12-31T23:59:59+0100", "2026-12-31T23:59:59+15:00",
  "#0b1f3a", "#0BF", "#0B1F3", "rgb(1,2,3)", "RGB( 255 , 0 , 7 )", "rgb(1,2,256)", "EUR", "eur", "EURO", " EUR",
  "http://example.com/a", "https://example.com/a b", "https://example.com/é", "mailto:a@example.com", "//example.com", "https://", "HTTPS://EXAMPLE.COM",
  "a@example.com", "Ada <a@example.com>", "a@b@example.com", "33.c", "34.c", "33.", "33.c/d", "iVBORw0KGgo=", "====",
];

/** What the schema takes, and what is just beyond it. */
function drawSamples(schema: Schema, depth: number): readonly Json[] {
  if (schema.const !== undefined) return [schema.const];
  if (schema.enum !== undefined) return schema.enum;
  return [schema.type ?? []].flat().flatMap((type) => typedSamples(type, schema, depth));
}

function typedSamples(type: string, schema: Schema, depth: number): readonly Json[] {
  switch (type) {
    case "string":
      return textSamples(schema);
    case "integer":
    case "number":
      return [schema.minimum, schema.maximum].flatMap((bound) =>
        bound === undefined ? [] : [bound, bound - 1, bound + 1, bound + 0.5, bound - 0.5],
      );
    case "array":
      if (depth > 2) return [];
      return listAlternatives(schema.items ?? {})
        .flatMap((item) => drawSamples(item, depth + 1).slice(0, 6))
        .map((item) => Array.from({ length: Math.max(1, schema.minItems ?? 1) }, (_, i) => numbered(item, i)));
    case "object":
      return depth > 2 ? [] : objectSamples(schema, depth);
    default:
      return [];
  }
}

/** With its required members alone, in as many ways as one of them has values; then with each other member. */
function objectSamples(schema: Schema, depth: number): readonly Json[] {
  const { properties = {}, required = [], allOf: _ } = schema;
  const pickFirst = (name: string) => ownSample(properties[name] ?? {}, depth + 1);
  const least = Object.fromEntries(required.map((name) => [name, pickFirst(name)] as const));
  return [least, ...Object.keys(properties).map((name) => ({ ...least, [name]: pickFirst(name) }))];
}

/** One that it takes. */
function ownSample(schema: Schema, depth: number): Json {
  const [one = {}] = listAlternatives(schema);
  if (one.format === "uri") return "https://example.com";
  if (one.format === "date-time") return "2026-12-31T23:59:00Z";
  if (one.type === "boolean") return true;
  if (one.type === "integer" || one.type === "number") return one.minimum ?? 1;
  const [sample = null] = drawSamples(one, depth).filter((value) => value !== "");
  return sample;
}

const matchingOnes = new Map<string, readonly string[]>();

function textSamples({ pattern, minLength = 0, maxLength }: Schema): readonly string[] {
  const bounds = [minLength, minLength - 1, ...(maxLength === undefined ? [] : [maxLength, maxLength + 1])];
  const filled = bounds
    .filter((length) => length >= 0 && length <= 70_000)
    .flatMap((n) => ["x".repeat(n), "7".repeat(n)]);
  const emoji = maxLength === undefined || maxLength > 70_000 ? [] : ["😀".repeat(maxLength)];
  if (pattern === undefined) return [...filled, ...emoji];
  const matching =
    matchingOnes.get(pattern) ?? fc.sample(fc.stringMatching(new RegExp(pattern)), { seed: 7, numRuns: 6 });
  matchingOnes.set(pattern, matching);
  return [
    ...matching,
    ...matching.flatMap((text) => [`${text}\n`, ` ${text}`, `${text}x`, text.toLowerCase()]),
    ...filled,
  ];
}

/** The same with another name or number, where it has one. */
function numbered(value: Json, i: number): Json {
  if (!isJsonObject(value)) return value;
  const own = Object.entries(value).find(
    ([name, one]) => /^(?:id|key|identifier|name)$/.test(name) && typeof one === "string",
  );
  const other = own === undefined ? value : { ...value, [own[0]]: `${String(own[1])}${i}` };
  return typeof value["index"] === "number" ? { ...other, index: i } : other;
}

function shown(value: Json): string {
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 40)}… (${text.length})` : text;
}

function distinct(values: readonly Json[]): Iterable<Json> {
  return new Map(values.map((value) => [JSON.stringify(value), value])).values();
}
