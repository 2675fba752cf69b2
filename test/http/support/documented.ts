import type { Json, JsonObject } from "../../../src/domain/texts/json.ts";
import { fetchOperations, type Operation } from "../../security/support/operations.ts";
import { json, probe } from "../../security/support/probe.ts";

/** A schema of the document. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: Json;
  readonly enum?: readonly Json[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly required?: readonly string[];
  readonly minProperties?: number;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly format?: string;
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly examples?: readonly Json[];
}

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required: boolean;
  readonly schema: Schema;
}

interface MediaType {
  readonly schema: Schema;
  readonly example?: Json;
  readonly examples?: Readonly<Record<string, { readonly value: Json }>>;
}

export interface DocumentedAnswer {
  readonly headers: Readonly<Record<string, Schema>>;
  /** By media type; empty: it has no body. */
  readonly content: Readonly<Record<string, MediaType>>;
}

/** An operation with its whole description in the document; references to answers and headers are followed. */
export interface Documented extends Operation {
  readonly parameters: readonly Parameter[];
  readonly description: string;
  /** By media type; empty: it takes no body. */
  readonly bodies: Readonly<Record<string, MediaType>>;
  readonly answers: Readonly<Record<string, DocumentedAnswer>>;
}

export interface ApiDocument {
  /** In the order of `CALLS`: operations that remove objects are last. */
  readonly operations: readonly Documented[];
  readonly schemas: Readonly<Record<string, Schema>>;
}

/** The document that the server serves. */
export async function readDocument(url: string): Promise<ApiDocument> {
  const document = json(await probe(url, { method: "GET", path: "/openapi.json" }));
  const follow = (node: JsonObject) => followed(document, node);
  const operations = (await fetchOperations(url)).map((operation): Documented => {
    const described = document.paths[operation.path][operation.method.toLowerCase()];
    return {
      ...operation,
      description: described.description ?? "",
      parameters: described.parameters ?? [],
      bodies: described.requestBody?.content ?? {},
      answers: mapValues(described.responses, (answer) => toAnswer(follow(answer), follow)),
    };
  });
  return { operations, schemas: document.components.schemas };
}

// oxlint-disable-next-line typescript/no-explicit-any
function toAnswer({ headers = {}, content = {} }: any, follow: (node: JsonObject) => any): DocumentedAnswer {
  return { headers: mapValues(headers, (header) => follow(header).schema), content };
}

// oxlint-disable-next-line typescript/no-explicit-any
function followed(document: any, node: JsonObject): any {
  const { $ref: reference } = node;
  if (typeof reference !== "string") return node;
  return reference
    .slice(2)
    .split("/")
    .reduce((at, name) => at[name], document);
}

function mapValues<T>(all: Readonly<Record<string, JsonObject>>, change: (value: JsonObject) => T): Record<string, T> {
  return Object.fromEntries(Object.entries(all).map(([name, value]) => [name, change(value)]));
}
