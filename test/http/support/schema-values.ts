import fc from "fast-check";
import { isJsonObject, type Json, type JsonObject } from "../../../src/domain/texts/json.ts";
import type { DocumentSchemas } from "./document-schemas.ts";
import type { Schema } from "./documented.ts";

/** A value that differs from an accepted one, and the difference. */
export interface Broken {
  readonly how: string;
  readonly value: Json;
}

/** Values of a schema: accepted ones, and refused ones. The same seed gives the same values. */
export class SchemaValues {
  constructor(
    private readonly schemas: DocumentSchemas,
    private readonly seed: number,
  ) {}

  /** Values that the schema accepts. */
  good(schema: Schema, count: number): readonly Json[] {
    const takes = this.schemas.request(schema);
    const values = this.generateValue(schema).filter((value) => takes(value) === null);
    return fc.sample(values, { seed: this.seed, numRuns: count });
  }

  /** Whether a query may contain this text for a value of the schema. */
  takesText(schema: Schema, text: string): boolean {
    const isNumber = schema.type === "integer" || schema.type === "number";
    return this.schemas.request(schema)(isNumber ? numberOfText(text) : text) === null;
  }

  /** Values that the schema refuses, each of which differs in one position from an accepted one. */
  bad(schema: Schema, good: Json): readonly Broken[] {
    const takes = this.schemas.request(schema);
    return [...this.broken(schema, good)].filter(({ value }) => takes(value) !== null);
  }

  /**
   * The value with an unknown member: once in each object whose members the schema names, at every depth but inside the
   * members of these names. Members that the value lacks are generated on the way there.
   */
  *strange(schema: Schema, value: Json, others: readonly string[]): Generator<Json> {
    for (const one of this.schemas.alternatives(schema)) {
      if (Array.isArray(value)) {
        for (const inner of this.strangeInside(one.items, value[0], others)) yield [inner];
      } else if (isJsonObject(value) && isOfKind(one, value)) {
        if (isClosed(one)) yield { ...value, unknown_member: 1 };
        for (const [name, member] of Object.entries(one.properties ?? {})) {
          if (others.includes(name)) continue;
          for (const inner of this.strangeInside(member, value[name], others)) yield { ...value, [name]: inner };
        }
      }
    }
  }

  /**
   * The value with null for each optional member that it lacks, at every depth but inside the members of these names.
   */
  nulled(schema: Schema, value: Json, others: readonly string[]): Json {
    return this.schemas.alternatives(schema).reduce<Json>((filled, one) => {
      if (Array.isArray(filled)) return filled.map((item) => this.nulled(one.items ?? {}, item, others));
      if (!isJsonObject(filled) || !isOfKind(one, filled)) return filled;
      const { properties = {}, required = [] } = one;
      const absent = Object.keys(properties).filter((name) => filled[name] === undefined && !required.includes(name));
      const given = Object.entries(filled).map(([name, inner]) => {
        const member = others.includes(name) ? undefined : properties[name];
        return [name, member === undefined ? inner : this.nulled(member, inner, others)] as const;
      });
      return Object.fromEntries<Json>([...given, ...absent.map((name) => [name, null] as const)]);
    }, value);
  }

  /** The positions at which objects may have members that the schema does not name, as paths of names. */
  *open(schema: Schema, path = ""): Generator<string> {
    for (const { type, properties = {}, items, ...one } of this.schemas.alternatives(schema)) {
      if (type === "object" && !isClosed({ ...one, properties })) yield path;
      for (const [name, member] of Object.entries(properties)) yield* this.open(member, `${path}.${name}`);
      if (items !== undefined) yield* this.open(items, `${path}[]`);
    }
  }

  private *strangeInside(
    schema: Schema | undefined,
    given: Json | undefined,
    others: readonly string[],
  ): Generator<Json> {
    if (schema === undefined) return;
    if (given !== undefined) return yield* this.strange(schema, given, others);
    for (const one of this.schemas.alternatives(schema)) {
      if (one.type !== "object" && one.type !== "array") continue;
      const least = one.type === "array" ? { ...one, minItems: 1 } : one;
      const [value] = fc.sample(this.plainValue(least), { seed: this.seed, numRuns: 1 });
      if (value !== undefined) yield* this.strange(one, value, others);
    }
  }

  private generateValue(schema: Schema): fc.Arbitrary<Json> {
    const [first, ...rest] = this.schemas.alternatives(schema).map((one) => this.plainValue(one));
    return first === undefined ? fc.constant(null) : fc.oneof(first, ...rest);
  }

  private plainValue(schema: Schema): fc.Arbitrary<Json> {
    if (schema.const !== undefined) return fc.constant(schema.const);
    if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
    const types = [schema.type ?? ANY].flat();
    return fc.oneof(...types.map((type) => this.typedValue(type, schema)));
  }

  private typedValue(type: string, schema: Schema): fc.Arbitrary<Json> {
    switch (type) {
      case "object":
        return this.generateObject(schema);
      case "array":
        return this.generateArray(schema);
      case "string":
        return generateString(schema);
      case "integer":
        return fc.integer({ min: schema.minimum ?? -1_000_000, max: schema.maximum ?? 1_000_000 });
      case "number":
        return generateNumber(schema);
      case "boolean":
        return fc.boolean();
      case "null":
        return fc.constant(null);
      default:
        throw new Error(`a schema has the type ${type}`);
    }
  }

  private generateObject({ properties = {}, required = [], ...schema }: Schema): fc.Arbitrary<Json> {
    const members = Object.entries(properties).map(([name, member]) => [name, this.generateValue(member)] as const);
    const named = fc.record(Object.fromEntries(members), {
      requiredKeys: required.filter((name) => name in properties),
    });
    const isOpen = schema.patternProperties !== undefined || typeof schema.additionalProperties === "object";
    if (!isOpen) return named;
    const others = fc.dictionary(
      fc.stringMatching(/^[a-z]{1,8}$/),
      fc.oneof(...ANY.map((type) => this.typedValue(type, {}))),
      { maxKeys: 3 },
    );
    return fc.tuple(others, named).map(([one, other]) => ({ ...one, ...other }));
  }

  private generateArray({
    items = {},
    minItems = 0,
    maxItems = ELEMENTS_MAX,
    uniqueItems,
  }: Schema): fc.Arbitrary<Json> {
    const bounds = { minLength: minItems, maxLength: Math.max(minItems, Math.min(maxItems, ELEMENTS_MAX)) };
    const element = this.generateValue(items);
    return uniqueItems === true ? fc.uniqueArray(element, bounds) : fc.array(element, bounds);
  }

  private *broken(schema: Schema, value: Json): Generator<Broken> {
    for (const other of OTHERS) yield { how: `is ${JSON.stringify(other)}`, value: other };
    for (const one of this.schemas.alternatives(schema)) {
      if (typeof value === "string") yield* brokenString(one, value);
      if (typeof value === "number") yield* brokenNumber(one);
      if (Array.isArray(value)) yield* this.brokenArray(one, value);
      if (isJsonObject(value)) yield* this.brokenObject(one, value);
    }
  }

  private *brokenArray({ items = {}, maxItems }: Schema, value: readonly Json[]): Generator<Broken> {
    const [first] = value;
    if (first === undefined) return;
    yield { how: "has an element twice", value: [first, first] };
    if (maxItems !== undefined) yield { how: "is too long", value: Array.from({ length: maxItems + 1 }, () => first) };
    for (const { how, value: other } of this.broken(items, first)) yield { how: `[0] ${how}`, value: [other] };
  }

  private *brokenObject({ properties = {} }: Schema, value: JsonObject): Generator<Broken> {
    yield { how: "has an unknown member", value: { ...value, unknown_member: 1 } };
    for (const [name, member] of Object.entries(properties)) {
      const { [name]: given, ...without } = value;
      if (given === undefined) continue;
      yield { how: `.${name} is missing`, value: without };
      for (const { how, value: other } of this.broken(member, given)) {
        yield { how: `.${name} ${how}`, value: { ...value, [name]: other } };
      }
    }
  }
}

/** Whether the schema names the members of an object, and allows no others. */
function isClosed({ properties, patternProperties, additionalProperties = false }: Schema): boolean {
  return Object.keys(properties ?? {}).length > 0 && patternProperties === undefined && additionalProperties === false;
}

/** Whether the members that distinguish alternatives have this one's values. */
function isOfKind({ properties = {} }: Schema, value: JsonObject): boolean {
  return Object.entries(properties).every(
    ([name, { const: only }]) => only === undefined || value[name] === undefined || value[name] === only,
  );
}

const ANY = ["string", "integer", "boolean", "null"];
const ELEMENTS_MAX = 3;
const CHARS_MAX = 20;
/** One value of each type. */
const OTHERS: readonly Json[] = [null, true, 5, "no-such-value", [], {}];

function generateString({
  pattern,
  format,
  minLength = 0,
  maxLength = Number.MAX_SAFE_INTEGER,
}: Schema): fc.Arbitrary<string> {
  if (format === "date") return generateDate().map((date) => date.toISOString().slice(0, 10));
  if (format === "date-time") return generateDate().map((date) => date.toISOString());
  if (format === "uuid") return fc.uuid({ version: 7 });
  if (format === "uri") return fc.webUrl();
  const bounds = { minLength, maxLength: Math.min(maxLength, Math.max(minLength, CHARS_MAX)) };
  if (pattern === undefined) return fc.oneof(fc.string(bounds), fc.string({ ...bounds, unit: "grapheme" }));
  return fc.stringMatching(new RegExp(pattern)).filter(({ length }) => length >= minLength && length <= maxLength);
}

function generateDate(): fc.Arbitrary<Date> {
  return fc.date({ min: new Date("2020-01-01"), max: new Date("2030-01-01"), noInvalidDate: true });
}

function generateNumber({ minimum, exclusiveMinimum, maximum = 1_000_000 }: Schema): fc.Arbitrary<number> {
  const min = minimum ?? exclusiveMinimum ?? -1_000_000;
  return fc.double({ min, max: maximum, minExcluded: minimum === undefined, noNaN: true, noDefaultInfinity: true });
}

function* brokenString({ minLength, maxLength }: Schema, value: string): Generator<Broken> {
  if (minLength !== undefined && minLength > 0) yield { how: "is too short", value: value.slice(0, minLength - 1) };
  if (maxLength !== undefined) yield { how: "is too long", value: value.padEnd(maxLength + 1, "x") };
  yield { how: "is empty", value: "" };
  yield { how: "has a control character", value: `${value}\u0007` };
}

function* brokenNumber({ minimum, maximum, exclusiveMinimum }: Schema): Generator<Broken> {
  yield { how: "is a fraction", value: 1.5 };
  if (minimum !== undefined) yield { how: "is too small", value: minimum - 1 };
  if (maximum !== undefined) yield { how: "is too large", value: maximum + 1 };
  if (exclusiveMinimum !== undefined) yield { how: "is too small", value: exclusiveMinimum };
}

/** Converts digits to a number; leaves any other text as it is. */
function numberOfText(text: string): number | string {
  return /^-?\d+(?:\.\d+)?$/.test(text) ? Number(text) : text;
}
