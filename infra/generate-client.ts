import packageJson from "../package.json" with { type: "json" };
import {
  type ApiDocument,
  type Content,
  type Members,
  type Operation,
  readDocument,
  type Schema,
} from "./api-document.ts";
import { decideRepeat, isStream } from "./client-operations.ts";
import { pythonOperations } from "./python-client.ts";

/*
 * `bun infra/generate-client.ts` writes the generated parts of the clients in TypeScript and Python from the OpenAPI document,
 * and the project's version into their manifests; with `--check` it reports whether they are up to date. It fails on a schema
 * that it does not understand: a type that is looser than the document would be worse.
 */

const FOLDER = new URL("../clients/typescript/", import.meta.url).pathname;
const PYTHON_FOLDER = new URL("../clients/python/", import.meta.url).pathname;
const JSON_TYPE = "application/json";
const BIOME = new URL("../node_modules/.bin/biome", import.meta.url).pathname;

function generatedFrom({ paths, components }: ApiDocument): string {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
  const types = Object.entries(components.schemas).map(
    ([name, schema]) => `${formatComment(schema.description)}export type ${typeName(name)} = ${formatType(schema)};\n`,
  );
  const calls = operations.map((each) => `${each.operation.operationId}: ${formatCall(each)},`);
  return [
    HEAD,
    ...types,
    "/** The input and the answer of each operation, by its name in the OpenAPI document. */",
    `export type Operations = {${operations.map(({ operation }) => operationType(operation)).join("")}};\n`,
    CALL,
    `export const OPERATIONS: { readonly [N in keyof Operations]: Call } = {${calls.join("")}};`,
  ].join("\n");
}

const HEAD = `// Written by \`bun infra/generate-client.ts\` from the OpenAPI document. Do not edit: \`npm run check\` holds the two equal.

/** Any JSON value. */
export type Json = string | number | boolean | null | readonly Json[] | JsonObject;

export type JsonObject = { readonly [name: string]: Json | undefined };
`;

const CALL = `
/** How an operation is called. */
export type Call = {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  /** Whether to repeat it when its effect is unknown: yes, with an Idempotency-Key, or no. */
  readonly repeat: "safe" | "with_key" | "unsafe";
  /** The media type of its body, if that is not JSON. */
  readonly sends?: string;
  /** Its answer is not JSON. */
  readonly streams?: true;
};
`;

/** Returns the component's name, changed if it clashes with a built-in type. */
function typeName(name: string): string {
  return name === "Error" ? "ErrorBody" : name;
}

function operationType(operation: Operation): string {
  const { operationId, summary, description, requestBody, responses } = operation;
  const body = requestBody === undefined ? "" : `body${requestBody.required ? "" : "?"}: ${bodyType(requestBody)};`;
  const answers = Object.entries(responses)
    .filter(([status]) => status.startsWith("2"))
    .map(([, { content }]) => contentType(content));
  const sentence = description === undefined ? `${summary}.` : `${summary}. ${description}`;
  const taken = `${parametersType(operation, "path")}${parametersType(operation, "query")}${body}`;
  return `${formatComment(sentence)}${operationId}: {${taken} answer: ${union(answers.length === 0 ? ["null"] : answers)}};`;
}

function parametersType({ parameters }: Operation, place: "path" | "query"): string {
  const members = parameters.filter((parameter) => parameter.in === place);
  if (members.length === 0) return "";
  const isOptional = members.every(({ required }) => !required);
  return `${place}${isOptional ? "?" : ""}: {${members
    .map(({ name, required, description, schema }) => member(name, required, { ...schema, description }))
    .join("")}};`;
}

function bodyType({ content }: { readonly content: Content }): string {
  return JSON_TYPE in content ? contentType(content) : "string | Uint8Array<ArrayBuffer>";
}

function contentType(content: Content | undefined): string {
  if (content === undefined) return "null";
  const json = content[JSON_TYPE];
  return json === undefined ? "ReadableStream<Uint8Array<ArrayBuffer>>" : formatType(json.schema);
}

interface Call {
  readonly path: string;
  readonly method: string;
  readonly operation: Operation;
}

function formatCall({ path, method, operation }: Call): string {
  const { requestBody, responses } = operation;
  const [sends = JSON_TYPE] = Object.keys(requestBody?.content ?? {});
  const streams = Object.entries(responses).some(([status, { content = {} }]) => status === "200" && isStream(content));
  const unusual = { ...(sends === JSON_TYPE ? {} : { sends }), ...(streams ? { streams } : {}) };
  return JSON.stringify({ method, path, repeat: decideRepeat(method, operation), ...unusual });
}

/** `outer`: the members of the object that the schema narrows, if it is such a condition. */
function formatType(schema: Schema, outer: Members = {}): string {
  const { $ref: reference, const: constant, enum: values, type, properties, required = [], not } = schema;
  if (reference !== undefined) return typeName(reference.slice(reference.lastIndexOf("/") + 1));
  if (constant !== undefined) return JSON.stringify(constant);
  if (values !== undefined) return union(values.map((value) => JSON.stringify(value)));
  const narrowed = properties ?? outer;
  const alternatives = schema.anyOf ?? schema.oneOf ?? [];
  const conditions = [
    ...(schema.allOf ?? []).map((condition) => formatType(condition, narrowed)),
    ...(alternatives.length === 0 ? [] : [`(${union(alternatives.map((each) => formatType(each, narrowed)))})`]),
    ...(not === undefined ? [] : [`{${not.required.map((name) => `${name}?: never;`).join("")}}`]),
  ];
  if (properties !== undefined || required.length > 0) return [objectType(schema, outer), ...conditions].join(" & ");
  if (conditions.length > 0) return conditions.join(" & ");
  if (type !== undefined) return union([type].flat().map((kind) => typeOfKind(kind, schema)));
  if (Object.keys(schema).every((name) => name === "description")) return "Json";
  throw new Error(`no type says ${JSON.stringify(schema)}`);
}

function typeOfKind(kind: string, schema: Schema): string {
  switch (kind) {
    case "string":
    case "boolean":
    case "null":
      return kind;
    case "number":
    case "integer":
      return "number";
    case "array":
      if (schema.items === undefined) throw new Error(`a list of what? ${JSON.stringify(schema)}`);
      return `readonly (${formatType(schema.items)})[]`;
    case "object":
      return objectType(schema);
    default:
      throw new Error(`there is no type ${kind}`);
  }
}

/** In a union with other objects, their members are then `undefined` and not `never`. */
const NO_MEMBERS = "{ readonly [name: string]: undefined }";

function objectType(schema: Schema, outer: Members = {}): string {
  const { properties = {}, patternProperties = {}, required = [], additionalProperties } = schema;
  const [values] = Object.values(patternProperties);
  const valueType = values === undefined ? "Json" : formatType(values);
  if (valueType !== "Json") return `{ readonly [name: string]: ${valueType} }`;
  const known: Members = { ...Object.fromEntries(required.map((name) => [name, outer[name] ?? {}])), ...properties };
  const members = Object.entries(known).map(([name, each]) => member(name, required.includes(name), each));
  if (members.length === 0) return additionalProperties === false ? NO_MEMBERS : "JsonObject";
  return `{${members.join("")}}${additionalProperties === true ? " & JsonObject" : ""}`;
}

function member(name: string, isRequired: boolean, schema: Schema): string {
  const type = formatType(schema);
  // Generators turn it into `unknown`.
  if (type === "Json") throw new Error(`the member ${name} is declared without a type`);
  return `${formatComment(schema.description)}${JSON.stringify(name)}${isRequired ? "" : "?"}: ${type};`;
}

function union(types: readonly string[]): string {
  return Array.from(new Set(types)).join(" | ");
}

const LINE_CHARS_MAX = 110;

function formatComment(text: string | undefined): string {
  if (text === undefined) return "";
  const lines = [""];
  for (const word of text.replaceAll("*/", "* /").split(/\s+/)) {
    const line = lines.at(-1) ?? "";
    if (line.length + word.length < LINE_CHARS_MAX) lines[lines.length - 1] = line === "" ? word : `${line} ${word}`;
    else lines.push(word);
  }
  const [only] = lines;
  return lines.length === 1 ? `\n/** ${only} */\n` : `\n/**\n${lines.map((line) => ` * ${line}\n`).join("")} */\n`;
}

async function formatted(source: string): Promise<string> {
  const command = [process.execPath, "--bun", BIOME, "format", "--stdin-file-path=generated.ts"];
  const child = Bun.spawn(command, { stdin: new Blob([source]), stdout: "pipe", stderr: "inherit" });
  const text = await new Response(child.stdout).text();
  if ((await child.exited) !== 0) throw new Error("what was generated is not TypeScript");
  return text;
}

/** Returns every file generated from this build, by its path. */
async function files(): Promise<ReadonlyMap<string, string>> {
  const manifest = await Bun.file(`${FOLDER}package.json`).text();
  const project = await Bun.file(`${PYTHON_FOLDER}pyproject.toml`).text();
  const document = await readDocument();
  return new Map([
    [`${FOLDER}generated.ts`, await formatted(generatedFrom(document))],
    [
      `${PYTHON_FOLDER}waybill/_operations.py`,
      pythonOperations(document, await Bun.file(`${FOLDER}waybill.ts`).text()),
    ],
    [`${PYTHON_FOLDER}pyproject.toml`, project.replace(/^version = "[^"]*"/m, `version = "${packageJson.version}"`)],
    [`${FOLDER}package.json`, manifest.replace(/"version": "[^"]*"/, `"version": "${packageJson.version}"`)],
  ]);
}

const isCheck = process.argv.includes("--check");
for (const [path, text] of await files()) {
  const isStale = !(await Bun.file(path).exists()) || (await Bun.file(path).text()) !== text;
  if (isStale && !isCheck) await Bun.write(path, text);
  if (isStale && isCheck) {
    console.log(`${path} is stale: bun infra/generate-client.ts`);
    process.exitCode = 1;
  }
}
