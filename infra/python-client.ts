import type { ApiDocument, Members, Operation, Parameter, Schema } from "./api-document.ts";
import { decideRepeat, isStream } from "./client-operations.ts";

/*
 * The generated part of the Python client: a type for each schema that tenants' calls use, and a method for each of these
 * calls. It fails on a schema that it does not understand: a type that is looser than the document would be worse.
 */

const JSON_TYPE = "application/json";
/** The member of a call's answer with the position of the next page. */
const NEXT = "next_cursor";

interface Call {
  readonly path: string;
  readonly method: string;
  readonly operation: Operation;
}

/**
 * Returns the text of `clients/python/waybill/_operations.py`. `typescript`: the source of the TypeScript client's class, from
 * which the groups of calls take their names.
 */
export function pythonOperations(document: ApiDocument, typescript: string): string {
  const calls = Object.entries(document.paths)
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
    )
    .filter(({ operation }) => operation.security.some((needed) => "apiKey" in needed));
  const types = new PythonTypes(document.components.schemas);
  const methods = calls.map((call) => formatMethod(call, types)).join("\n");
  const operations = `class Operations(Caller):\n    """Every call of a tenant."""\n\n${methods}`;
  return `${HEAD}\n${types.text()}\n\n${operations}\n\n${formatGroups(typescript)}`;
}

/** `waybill.emails.send` beside `waybill.send_email`: the same names in both languages. */
function formatGroups(typescript: string): string {
  const groups = Array.from(typescript.matchAll(/readonly (\w+) = \{([^]*?)\n {2}\};/g), ([, name = "", body = ""]) => {
    const calls = body.matchAll(/^ {4}(\w+): (?:async )?\([^]*?calls\.(call|list)\(\s*"(\w+)"/gm);
    const lines = Array.from(calls, ([, member = "", kind, operation = ""]) => {
      const method = snakeCase(operation);
      const target = kind === "list" ? `iterate_${method.replace(/^list_/, "")}` : method;
      return `        self.${snakeCase(member)} = calls.${target}\n`;
    });
    return { name: snakeCase(name), type: `${pascalCase(name)}Calls`, lines };
  });
  const classes = groups.map(
    ({ name, type, lines }) =>
      `class ${type}:\n    """\`waybill.${name}\`, as in TypeScript."""\n\n    def __init__(self, calls: Operations) -> None:\n${lines.join("")}`,
  );
  const members = groups.map(({ name, type }) => `        self.${name} = ${type}(self)\n`).join("");
  return `${classes.join("\n\n")}\n\nclass GroupedOperations(Operations):\n    """Every call, also by the names that it has in TypeScript."""\n\n    def _group(self) -> None:\n${members}`;
}

const HEAD = `"""Written by \`bun infra/generate-client.ts\` from the OpenAPI document. Do not edit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict, Union

from ._calls import Caller

`;

/** Python types by name, in the order in which they are first used. */
class PythonTypes {
  private readonly written = new Map<string, string>();

  constructor(private readonly schemas: Members) {}

  text(): string {
    return Array.from(this.written.values()).join("\n");
  }

  /** \`name\`: the name for an object without its own. */
  of(schema: Schema, name: string): string {
    const { $ref: reference, const: constant, enum: values, type } = schema;
    if (reference !== undefined) return this.named(reference.slice(reference.lastIndexOf("/") + 1));
    if (constant !== undefined) return `Literal[${literal(constant)}]`;
    if (values !== undefined) return `Literal[${values.map(literal).join(", ")}]`;
    if (isObject(schema)) return this.object(schema, name);
    const alternatives = schema.anyOf ?? schema.oneOf;
    if (alternatives !== undefined) return union(alternatives.map((each, at) => this.of(each, `${name}${at + 1}`)));
    if (type !== undefined) return union([type].flat().map((kind) => this.kind(kind, schema, name)));
    if (Object.keys(schema).every((member) => member === "description")) return "Any";
    throw new Error(`no Python type says ${JSON.stringify(schema)}`);
  }

  /** Returns the members of an object, through a reference and all parts of an intersection. */
  members(schema: Schema): Members {
    const { $ref: reference, properties = {}, allOf = [] } = this.resolved(schema);
    if (reference !== undefined) throw new Error(`a reference leads to another: ${reference}`);
    return Object.assign({}, ...allOf.map((part) => this.members(part)), properties);
  }

  resolved(schema: Schema): Schema {
    const { $ref: reference } = schema;
    if (reference === undefined) return schema;
    const found = this.schemas[reference.slice(reference.lastIndexOf("/") + 1)];
    if (found === undefined) throw new Error(`there is no schema ${reference}`);
    return found;
  }

  private named(name: string): string {
    if (!this.written.has(name)) {
      const schema = this.schemas[name];
      if (schema === undefined) throw new Error(`there is no schema ${name}`);
      // Reserves the entry, which also ends recursion through schemas that refer back to it.
      this.written.set(name, "");
      if (isObject(schema) && this.object(schema, name) === name) return name;
      this.written.set(name, `${name}: TypeAlias = "${this.of(schema, `${name}Value`).replaceAll('"', "'")}"\n`);
    }
    return name;
  }

  private kind(kind: string, schema: Schema, name: string): string {
    switch (kind) {
      case "string":
        return "str";
      case "boolean":
        return "bool";
      case "null":
        return "None";
      case "integer":
        return "int";
      case "number":
        return "float";
      case "array":
        return `list[${this.of(schema.items ?? {}, `${name}Item`)}]`;
      case "object":
        return this.object(schema, name);
      default:
        throw new Error(`there is no type ${kind}`);
    }
  }

  /** Conditions between members, such as "one of these two", are left to the service. */
  private object(schema: Schema, name: string): string {
    const members = Object.entries(this.members(schema));
    if (members.length === 0 || schema.additionalProperties === true) return "Mapping[str, Any]";
    const required = this.required(schema);
    const lines = members.map(([member, each]) => {
      const type = this.of(each, `${name}${pascalCase(member)}`);
      return `        ${JSON.stringify(member)}: ${required.has(member) ? quoted(type) : `NotRequired[${quoted(type)}]`},`;
    });
    const taken = this.written.get(name);
    const text = `${name} = TypedDict(\n    "${name}",\n    {\n${lines.join("\n")}\n    },\n)\n`;
    if (taken !== undefined && taken !== "" && taken !== text) throw new Error(`two Python types are ${name}`);
    this.written.set(name, text);
    return name;
  }

  private required(schema: Schema): ReadonlySet<string> {
    const { required = [], allOf = [] } = this.resolved(schema);
    return new Set([...required, ...allOf.flatMap((part) => Array.from(this.required(part)))]);
  }
}

function isObject({ properties, allOf }: Schema): boolean {
  return (
    properties !== undefined || (allOf ?? []).some((part) => part.properties !== undefined || part.$ref !== undefined)
  );
}

function formatMethod({ path, method, operation }: Call, types: PythonTypes): string {
  const { operationId, summary, description, requestBody, responses } = operation;
  const name = snakeCase(operationId);
  const ofPath = operation.parameters.filter((each) => each.in === "path");
  const ofQuery = operation.parameters.filter((each) => each.in === "query");
  const json = requestBody?.content[JSON_TYPE];
  const body = json === undefined ? null : types.of(json.schema, `${pascalCase(operationId)}Body`);
  const repeat = decideRepeat(method, operation);
  const named = [
    ...ofQuery.filter(({ required }) => required).map((each) => `${argument(each)}: ${queryType(each, types)}`),
    ...ofQuery
      .filter(({ required }) => !required)
      .map((each) => `${argument(each)}: ${queryType(each, types)} | None = None`),
    ...(repeat === "with_key" ? ["idempotency_key: str | None = None"] : []),
    "timeout: float | None = None",
  ];
  const taken = [
    "self",
    ...ofPath.map((each) => `${argument(each)}: str`),
    ...(body === null ? [] : [requestBody?.required === true ? `body: ${body}` : `body: ${body} | None = None`]),
    "*",
    ...named,
  ];
  const answer = formatAnswer(responses, types, operationId);
  const given = [
    `"${method}"`,
    `"${path}"`,
    ...(ofPath.length > 0
      ? [`path_values={${ofPath.map((each) => `"${each.name}": ${argument(each)}`).join(", ")}}`]
      : []),
    ...(ofQuery.length > 0 ? [`query={${ofQuery.map((each) => `"${each.name}": ${argument(each)}`).join(", ")}}`] : []),
    ...(body === null ? [] : ["body=body"]),
    ...(repeat === "with_key" ? ["idempotency_key=idempotency_key"] : []),
    `repeat="${repeat}"`,
    ...(answer === "bytes" ? ["raw=True"] : []),
    "timeout=timeout",
  ];
  const says = docstring(description === undefined ? `${summary}.` : `${summary}. ${description}`);
  const call = `    def ${name}(\n        ${taken.join(",\n        ")},\n    ) -> ${answer}:\n${says}        answer: ${answer} = self._call(\n            ${given.join(",\n            ")},\n        )\n        return answer\n`;
  const items = findItems(responses, types);
  if (items === null) return call;
  const withoutCursor = (each: string) => !each.startsWith("cursor:");
  const passed = [
    ...ofPath.map(argument),
    ...ofQuery.filter((each) => each.name !== "cursor").map((each) => `${argument(each)}=${argument(each)}`),
    "timeout=timeout",
  ];
  const all = `    def iterate_${name.replace(/^list_/, "")}(\n        ${taken.filter(withoutCursor).join(",\n        ")},\n    ) -> Iterator[${items.type}]:\n        """All items of \`${name}\`: pages are fetched as they are needed."""\n        return self._items(\n            lambda cursor: self.${name}(\n                ${[...passed, "cursor=cursor"].join(",\n                ")},\n            ),\n            "${items.member}",\n        )\n`;
  return `${call}\n${all}`;
}

function formatAnswer(responses: Operation["responses"], types: PythonTypes, operationId: string): string {
  const good = Object.entries(responses).filter(([status]) => status.startsWith("2"));
  const all = good.map(([status, { content = {} }]) => {
    const json = content[JSON_TYPE];
    if (json !== undefined) return types.of(json.schema, `${pascalCase(operationId)}Answer${status}`);
    return isStream(content) ? "bytes" : "None";
  });
  return union(all.length === 0 ? ["None"] : all);
}

/** Finds the list in an answer that is one page of it. */
function findItems(responses: Operation["responses"], types: PythonTypes): { member: string; type: string } | null {
  const schema = responses["200"]?.content?.[JSON_TYPE]?.schema;
  if (schema === undefined) return null;
  const members = types.members(schema);
  const list = Object.entries(members).find(([, { type }]) => type === "array");
  if (members[NEXT] === undefined || list === undefined) return null;
  const [member, { items = {} }] = list;
  return { member, type: types.of(items, `${pascalCase(member)}Item`) };
}

function queryType({ name, schema }: Parameter, types: PythonTypes): string {
  return types.of(schema, `${pascalCase(name)}Query`);
}

const KEYWORDS = new Set(["from", "is", "in", "class", "import", "global", "pass", "not", "with", "as"]);

function argument({ name }: Parameter): string {
  const plain = snakeCase(name);
  return KEYWORDS.has(plain) ? `${plain}_` : plain;
}

function literal(value: unknown): string {
  if (typeof value === "string") return `"${value}"`;
  return value === true ? "True" : value === false ? "False" : String(value);
}

/** Outside of annotations, forward references are texts. */
function quoted(type: string): string {
  return `"${type.replaceAll('"', "'")}"`;
}

function union(types: readonly string[]): string {
  const different = Array.from(new Set(types));
  return different.length === 1 ? (different[0] ?? "") : `Union[${different.join(", ")}]`;
}

function snakeCase(name: string): string {
  return name.replace(/([a-z0-9])([A-Z])/g, "$1_$2").toLowerCase();
}

function pascalCase(name: string): string {
  return name.replace(/(?:^|[_-])(\w)/g, (_, letter: string) => letter.toUpperCase());
}

const LINE_CHARS_MAX = 108;

function docstring(text: string): string {
  const lines = [""];
  for (const word of text.replaceAll("\\", "\\\\").replaceAll('"""', "'''").split(/\s+/)) {
    const line = lines.at(-1) ?? "";
    if (line.length + word.length < LINE_CHARS_MAX) lines[lines.length - 1] = line === "" ? word : `${line} ${word}`;
    else lines.push(word);
  }
  const [only] = lines;
  if (lines.length === 1) return `        """${only}"""\n`;
  return `        """${lines.map((line, at) => (at === 0 ? line : `        ${line}`)).join("\n")}\n        """\n`;
}
