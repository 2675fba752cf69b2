import type { Seen } from "../../security/support/probe.ts";
import type { DocumentSchemas } from "./document-schemas.ts";
import type { Documented, DocumentedAnswer, Schema } from "./documented.ts";

/** Headers that every answer may carry without being documented. */
const OF_TRANSPORT = new Set([
  "cache-control",
  "connection",
  "content-language",
  "content-length",
  "content-type",
  "content-security-policy",
  "date",
  "expires",
  "pragma",
  "referrer-policy",
  "strict-transport-security",
  "transfer-encoding",
  "vary",
  "x-content-type-options",
  "x-frame-options",
  "x-robots-tag",
]);

/** Declared headers that are not in each answer. */
const SOMETIMES = new Set(["idempotency-replayed"]);
/** The same with this status. */
const SOMETIMES_WITH: Readonly<Record<number, string>> = { 401: "retry-after" };

/** Returns how an answer differs from the document's description of its operation. */
export function differences(schemas: DocumentSchemas, operation: Documented, seen: Seen): readonly string[] {
  const answer = operation.answers[seen.status];
  if (answer === undefined) return [`the status ${seen.status} is not declared`];
  const failed = seen.status === 500 ? ["it failed"] : [];
  return [...failed, ...bodyDifferences(schemas, answer, seen), ...headerDifferences(schemas, answer, seen)].map(
    (difference) => `${seen.status}: ${difference}`,
  );
}

function bodyDifferences(schemas: DocumentSchemas, { content }: DocumentedAnswer, { headers, text }: Seen): string[] {
  const type = headers.get("content-type");
  const declared = Object.keys(content);
  if (declared.length === 0) {
    return text === "" && type === null ? [] : [`it has a body of the type ${type}, and none is declared`];
  }
  const found = declared.find((one) => one === type || one === extractMediaType(type));
  if (found === undefined) return [`its type is ${type}, and declared is ${declared.join(", ")}`];
  const schema = content[found]?.schema;
  if (!/^application\/(?:problem\+)?json$/.test(found) || schema === undefined) return [];
  const problem = schemas.answer(schema)(parsed(text));
  return problem === null ? [] : [`its body is not as declared: ${problem}`];
}

function headerDifferences(schemas: DocumentSchemas, answer: DocumentedAnswer, { headers, status }: Seen): string[] {
  const declared = Object.entries(answer.headers).map(([name, schema]) => [name.toLowerCase(), schema] as const);
  const names = new Set(declared.map(([name]) => name));
  const undeclared = [...headers.keys()].filter((name) => !names.has(name) && !OF_TRANSPORT.has(name));
  return [
    ...undeclared.map((name) => `the header ${name} is not declared`),
    ...declared.flatMap(([name, schema]) => {
      const value = headers.get(name);
      if (value === null)
        return SOMETIMES.has(name) || SOMETIMES_WITH[status] === name ? [] : [`the header ${name} is missing`];
      const problem = schemas.request(schema)(typed(schema, value));
      return problem === null ? [] : [`the header ${name} is ${value}: ${problem}`];
    }),
  ];
}

function extractMediaType(type: string | null): string | undefined {
  return type?.split(";")[0]?.trim();
}

/** Converts a header's text to the type that its schema describes. */
function typed({ type }: Schema, text: string): unknown {
  return type === "integer" || type === "number" ? Number(text) : text;
}

/** Undefined: it is no JSON, which no schema accepts. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
