import Ajv2020, { type ValidateFunction } from "ajv/dist/2020";
import type { Schema } from "./documented.ts";

/** Returns why a value violates a schema, or null. */
export type Check = (value: unknown) => string | null;

/** Checks values by the document's schemas. An unknown keyword or format in them is an error. */
export class DocumentSchemas {
  private readonly told = new Ajv2020({ strictTypes: false, strictRequired: false, formats: FORMATS });
  private readonly asked = new Ajv2020({
    strictTypes: false,
    strictRequired: false,
    formats: { ...FORMATS, "date-time": isRfc3339 },
  });
  private readonly requests = new Map<Schema, Check>();
  private readonly answers = new Map<Schema, Check>();

  constructor(private readonly components: Readonly<Record<string, Schema>>) {
    this.told.addVocabulary(["example"]);
    this.asked.addVocabulary(["example"]);
  }

  /** Checks a request's value: callers may send further members. */
  request(schema: Schema): Check {
    return remembered(this.requests, schema, () => this.compiled(this.asked, schema, this.components));
  }

  /** What callers send that know no member but those that the document names. */
  named(schema: Schema): Check {
    const components = mapValues(this.components, (one) => this.closedInside(one));
    return this.compiled(this.asked, this.closed(schema), components);
  }

  /** Checks an answer's value: where the document names an object's members, it has no others. */
  answer(schema: Schema): Check {
    return remembered(this.answers, schema, () => {
      const components = mapValues(this.components, (one) => this.closedInside(one));
      return this.compiled(this.told, this.closed(schema), components);
    });
  }

  /** Resolves a reference to its schema. */
  private resolved(schema: Schema): Schema {
    if (schema.$ref === undefined) return schema;
    const found = this.components[schema.$ref.slice(PREFIX.length)];
    if (found === undefined) throw new Error(`the document has no ${schema.$ref}`);
    return found;
  }

  /** The alternatives that a schema consists of, each without references, `anyOf`, `oneOf` and `allOf`. */
  alternatives(schema: Schema): readonly Schema[] {
    const { anyOf, oneOf, allOf, ...rest } = this.resolved(schema);
    const all = (allOf ?? []).reduce<readonly Schema[]>((merged, part) => this.combined(merged, [part]), [rest]);
    const choices = anyOf ?? oneOf;
    return choices === undefined ? all : this.combined(all, choices);
  }

  private combined(all: readonly Schema[], choices: readonly Schema[]): readonly Schema[] {
    const others = choices.flatMap((choice) => this.alternatives(choice));
    return all.flatMap((one) => others.map((other) => both(one, other)));
  }

  private compiled(ajv: Ajv2020, schema: object, components: object): Check {
    const text = JSON.stringify({ ...schema, $defs: components }).replaceAll(`"${PREFIX}`, '"#/$defs/');
    const validate = ajv.compile(JSON.parse(text));
    return (value) => (validate(value) ? null : said(ajv, validate));
  }

  private closed(schema: Schema): object {
    const inside = this.closedInside(schema);
    const parts = this.alternatives(schema).filter(
      ({ type }) => type === undefined || [type].flat().includes("object"),
    );
    const isTold = parts.length > 0 && parts.every(({ properties }) => Object.keys(properties ?? {}).length > 0);
    return isTold ? { ...inside, unevaluatedProperties: false } : inside;
  }

  /** The values of the schema's members are closed, but not the schema itself: other schemas extend it. */
  private closedInside(schema: Schema): object {
    const { properties, items, additionalProperties, anyOf, oneOf, allOf } = schema;
    const parts = (list: readonly Schema[]) => list.map((part) => this.closedInside(part));
    return {
      ...schema,
      ...(properties && { properties: mapValues(properties, (member) => this.closed(member)) }),
      ...(items && { items: this.closed(items) }),
      ...(typeof additionalProperties === "object" && { additionalProperties: this.closed(additionalProperties) }),
      ...(anyOf && { anyOf: parts(anyOf) }),
      ...(oneOf && { oneOf: parts(oneOf) }),
      ...(allOf && { allOf: parts(allOf) }),
    };
  }
}

function said(ajv: Ajv2020, { errors }: ValidateFunction): string {
  const [first] = errors ?? [];
  return `${ajv.errorsText(errors, { dataVar: "" })} ${JSON.stringify(first?.params)}`;
}

const PREFIX = "#/components/schemas/";

function remembered(checks: Map<Schema, Check>, schema: Schema, make: () => Check): Check {
  const check = checks.get(schema) ?? make();
  checks.set(schema, check);
  return check;
}

/** A schema that combines both. */
function both(one: Schema, other: Schema): Schema {
  return {
    ...one,
    ...other,
    ...((one.properties ?? other.properties) && { properties: bothMembers(one.properties, other.properties) }),
    ...((one.required ?? other.required) && { required: [...(one.required ?? []), ...(other.required ?? [])] }),
  };
}

/** A member that both name has to satisfy both: values of one alone would hardly ever fit the other. */
function bothMembers(
  ones: Readonly<Record<string, Schema>> = {},
  others: Readonly<Record<string, Schema>> = {},
): Readonly<Record<string, Schema>> {
  const shared = Object.entries(others).map(([name, other]) => [name, { ...ones[name], ...other }] as const);
  return { ...ones, ...Object.fromEntries(shared) };
}

function mapValues<T>(all: Readonly<Record<string, T>>, change: (value: T) => object): object {
  return Object.fromEntries(Object.entries(all).map(([name, value]) => [name, change(value)]));
}

const DATE = /^\d{4}-\d{2}-\d{2}$/;
const DATE_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?Z$/;

/** As strict as the service's output: times are in UTC, UUIDs in lower case. */
const FORMATS = {
  date: (text: string) => DATE.test(text) && isDay(text),
  "date-time": (text: string) => DATE_TIME.test(text) && isDay(text.slice(0, 10)) && !Number.isNaN(Date.parse(text)),
  uuid: /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  uri: (text: string) => URL.canParse(text),
  int64: { type: "number" as const, validate: (value: number) => Number.isSafeInteger(value) },
  binary: true as const,
};

const RFC_3339 =
  /^(\d{4}-\d{2}-\d{2})T(?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/i;

/** What callers write: with any offset. */
function isRfc3339(text: string): boolean {
  const [, day] = RFC_3339.exec(text) ?? [];
  return day !== undefined && isDay(day);
}

/** The calendar has it: 2026-02-30 becomes another day. */
function isDay(text: string): boolean {
  const day = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text);
}
