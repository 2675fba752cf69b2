import { isJsonObject, type Json } from "../../../src/domain/texts/json.ts";
import type { Arguments } from "../../security/support/endpoint-calls.ts";
import { buildRequest } from "../../security/support/operations.ts";
import type { Request } from "../../security/support/probe.ts";
import type { Documented, Parameter, Schema } from "./documented.ts";
import type { SchemaValues } from "./schema-values.ts";

/** A request to one operation, without credentials, and a description of the case. */
export interface Case {
  readonly operation: Documented;
  readonly how: string;
  readonly request: Request;
}

const JSON_TYPE = "application/json";
const NO_JSON = ["", "{", '"', "{'a': 1}", "\u0000"];
const TOO_LARGE = JSON.stringify("x".repeat(10 * 1024 * 1024));
/** The name of the case with it. */
export const LARGE_BODY = "its body is too large";
const WRONG_TYPES = ["text/plain", "application/xml", ""];
/** Among so many generated bodies, the longest has nearly all members. */
const SAMPLES = 30;
/** Query texts, some of which violate any schema with a rule. */
const QUERY_TEXTS = ["", "no-such-value", "0", "-1", "1.5", "1e3", "2026-02-30", "null"];

/** Requests to an operation, built from the document and from one valid call. */
export class DocumentedRequests {
  /**
   * `call`: makes a valid call, with new names for the objects that it creates. `fixed`: members and parameters whose
   * rules no schema can express; they keep the values of that call.
   */
  constructor(
    private readonly values: SchemaValues,
    private readonly operation: Documented,
    private readonly call: () => Arguments,
    private readonly fixed: readonly string[],
  ) {}

  /** The valid call, the document's examples, and values that its schemas accept. */
  good(count: number): readonly Case[] {
    const bodies = [...this.examples(), ...this.generatedBodies(count)];
    return [
      this.case("as it is called", {}),
      ...bodies.map((body) => this.case(`with ${JSON.stringify(body)}`, { body: JSON.stringify(body) })),
      ...this.queries(count).map((query) => this.case(`?${new URLSearchParams(query).toString()}`, { query })),
    ];
  }

  /** Requests that the document forbids. */
  bad(): readonly Case[] {
    return [...this.badBodies(), ...this.badTypes(), ...this.badQueries(), ...this.badHeaders()];
  }

  /** Calls with unknown names in the path; `made`: the names that the call itself creates. */
  unknown(others: Arguments, made: readonly string[]): readonly Case[] {
    const { path = {} } = this.call();
    return Object.entries(path).flatMap(([name, value]) => {
      const given = others.path?.[name];
      const other = given === undefined || given === value ? `unknown-${value}` : given;
      const unknown = this.case(`an unknown ${name}`, { path: { ...path, [name]: other } });
      const broken = this.case(`a ${name} that is no text`, { path: { ...path, [name]: "%FF" } });
      return made.includes(name) ? [broken] : [unknown, broken];
    });
  }

  /**
   * Calls with an unknown member in each object whose members the document names, in the call that works and in the
   * examples, but not inside the members of these names.
   */
  unknownMembers(others: readonly string[]): readonly Case[] {
    const { schema } = this;
    const { body } = this.call();
    if (schema === null) return [];
    const bodies = [...(body === undefined ? [] : [JSON.parse(JSON.stringify(body))]), ...this.examples()];
    const strange = bodies.flatMap((good) => [...this.values.strange(schema, good, others)]);
    const texts = new Set(strange.map((value) => JSON.stringify(value)));
    return [...texts].map((text) => this.case(`with ${text}`, { body: text }));
  }

  /** The valid call, with null for each optional member, but not inside the members of these names. */
  nulls(others: readonly string[]): readonly Case[] {
    const { schema } = this;
    const { body } = this.call();
    if (schema === null || body === undefined) return [];
    const text = JSON.stringify(this.values.nulled(schema, JSON.parse(JSON.stringify(body)), others));
    return [this.case(`with ${text}`, { body: text })];
  }

  /** The positions at which objects of its body may have members that the document does not name. */
  openObjects(): readonly string[] {
    return this.schema === null ? [] : [...new Set(this.values.open(this.schema))].sort();
  }

  /** With a parameter that no operation has. */
  unknownParameter(): Case {
    return this.case("an unknown parameter", { query: { ...this.call().query, unknown_parameter: "1" } });
  }

  get hasQuery(): boolean {
    return this.parameters("query").length > 0;
  }

  case(how: string, changes: Arguments): Case {
    const request = buildRequest(this.operation, { ...this.call(), ...changes });
    // An invalid percent-encoding must stay so.
    return { operation: this.operation, how, request: { ...request, path: request.path.replaceAll("%25FF", "%FF") } };
  }

  private get schema(): Schema | null {
    return this.operation.bodies[JSON_TYPE]?.schema ?? null;
  }

  private examples(): readonly Json[] {
    const { example, examples = {}, schema } = this.operation.bodies[JSON_TYPE] ?? {};
    const named = Object.values(examples).map(({ value }) => value);
    const all = [...named, ...(example === undefined ? [] : [example]), ...(schema?.examples ?? [])];
    // A schema's example is shown beside it, too.
    const different = new Map(all.map((body) => [JSON.stringify(body), body])).values();
    // No document shows a whole private key.
    return Array.from(different).map((body) => (JSON.stringify(body).includes("…") ? this.withFixed(body) : body));
  }

  private generatedBodies(count: number): readonly Json[] {
    if (this.schema === null) return [];
    return this.values.good(this.schema, count).map((body) => this.withFixed(without(body, this.fixed)));
  }

  /** With the fixed members of the valid call. */
  private withFixed(body: Json): Json {
    const { body: own } = this.call();
    if (!isJsonObject(body) || !isJsonObject(own)) return body;
    return { ...body, ...Object.fromEntries(Object.entries(own).filter(([name]) => this.fixed.includes(name))) };
  }

  /** Without each optional parameter of the valid call, and with values of each that is not fixed. */
  private queries(count: number): readonly Readonly<Record<string, string>>[] {
    const { query = {} } = this.call();
    const optional = this.parameters("query").filter(({ required }) => !required);
    const absent = optional.filter(({ name }) => name in query).map(({ name }) => omit(query, name));
    const free = this.parameters("query").filter(({ name }) => !this.fixed.includes(name));
    const given = free.flatMap(({ name, schema }) =>
      this.values.good(schema, count).map((value) => ({ ...query, [name]: String(value) })),
    );
    return [...absent, ...given];
  }

  private badBodies(): readonly Case[] {
    const { body } = this.call();
    const { schema } = this;
    if (schema === null || body === undefined) return [];
    const full = this.generatedBodies(SAMPLES).toSorted(byLength).slice(-1);
    const broken = [JSON.parse(JSON.stringify(body)), ...full].flatMap((good) => this.values.bad(schema, good));
    // The alternatives of a schema, and the two good bodies, share many of them. Cases are left out or excused by
    // `how`.
    const texts = broken.map(({ how, value }) => ({ how, text: JSON.stringify(value) }));
    const different = new Map(texts.map((one) => [`${one.how} ${one.text}`, one])).values();
    return [
      ...Array.from(different, ({ how, text }) => this.case(`its body ${how}`, { body: text })),
      ...NO_JSON.map((text) => this.case(`its body is the text ${JSON.stringify(text)}`, { body: text })),
    ];
  }

  private badTypes(): readonly Case[] {
    const { body } = this.call();
    if (body === undefined) return [];
    const wrong = WRONG_TYPES.map((contentType) => this.case(`its body's type is "${contentType}"`, { contentType }));
    return [...wrong, this.case(LARGE_BODY, { body: TOO_LARGE })];
  }

  private badQueries(): readonly Case[] {
    const { query = {} } = this.call();
    const parameters = this.parameters("query");
    const required = parameters.filter((parameter) => parameter.required);
    const missing = required.map(({ name }) => this.case(`without ${name}`, { query: omit(query, name) }));
    const wrong = parameters.flatMap(({ name, schema }) =>
      QUERY_TEXTS.filter((text) => !this.values.takesText(schema, text)).map((text) =>
        this.case(`${name} is "${text}"`, { query: { ...query, [name]: text } }),
      ),
    );
    return [...(this.hasQuery ? [this.unknownParameter()] : []), ...missing, ...wrong];
  }

  private badHeaders(): readonly Case[] {
    return this.parameters("header").flatMap(({ name, schema: { maxLength } }) =>
      maxLength === undefined
        ? []
        : [this.case(`${name} is too long`, { headers: { [name]: "x".repeat(maxLength + 1) } })],
    );
  }

  private parameters(where: Parameter["in"]): readonly Parameter[] {
    return this.operation.parameters.filter((parameter) => parameter.in === where);
  }
}

function byLength(one: Json, other: Json): number {
  return JSON.stringify(one).length - JSON.stringify(other).length;
}

function omit<T>(all: Readonly<Record<string, T>>, name: string): Readonly<Record<string, T>> {
  return Object.fromEntries(Object.entries(all).filter(([other]) => other !== name));
}

function without(body: Json, names: readonly string[]): Json {
  if (!isJsonObject(body)) return body;
  return names.reduce<Readonly<Record<string, Json>>>(omit, body);
}
