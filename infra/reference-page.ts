import { type ApiDocument, type Content, type Operation, readDocument, type Schema } from "./api-document.ts";

/*
 * `bun infra/reference-page.ts` writes docs/reference.md from the OpenAPI document; with `--check` it reports whether the page
 * is up to date.
 */

const PAGE = new URL("../docs/reference.md", import.meta.url).pathname;
/** Operations that serve files of pages to browsers. */
const FILES = /^(dashboard|docs)[A-Z]/;
const JSON_TYPE = "application/json";

const INTRODUCTION = `# Reference

Every call of the API: what it takes, what it answers, and the types of both. A running server shows
the same at \`/docs\`, to read and try, and at \`/openapi.json\`, for tools, with the headers of answers and all bounds.

- Tenants send their key as \`X-API-Key\`, operators their token as \`Authorization: Bearer\`.
- Bodies and answers are JSON unless the page says otherwise. An optional member may be \`null\` where its type says so, and then counts
  as absent unless the call says otherwise; unknown ones are refused, except in what providers and devices send.
- Every answer carries \`X-Request-Id\`, and takes yours; those to what is no HTTP request (400), has too long a line or too many headers
  (431) or another version (505) have none: the server's own parser gives them.
- Every error is \`{"error": "…"}\` ([what each status means](sending.md#errors)), with [a code](#error-codes) in \`X-Error-Code\`.

This page is written by \`bun infra/reference-page.ts\`.
`;

interface Call {
  readonly path: string;
  readonly method: string;
  readonly operation: Operation;
}

function referencePage(document: ApiDocument): string {
  const calls = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): Call => ({ path, method: method.toUpperCase(), operation })),
  );
  const shown = calls.filter(({ operation }) => !FILES.test(operation.operationId));
  const groups = document.tags.map(({ name, description }) => {
    const members = shown.filter(({ operation }) => operation.tags.includes(name));
    return { name, description, members };
  });
  const contents = groups.map(
    ({ name, members }) => `| [${name}](#${toAnchor(name)}) | ${members.map(formatLink).join(" · ")} |`,
  );
  const types = Object.entries(document.components.schemas).map(([name, schema]) => typeSection(name, schema));
  return [
    INTRODUCTION,
    ["| calls | |", "|---|---|", ...contents, "| [Types](#types) | what the calls take and answer |", ""].join("\n"),
    codesSection(document),
    ...groups.flatMap(({ name, description, members }) => [
      `## ${name}\n\n${description}\n`,
      ...members.map((call) => callSection(call, document)),
    ]),
    "## Types\n",
    ...types,
  ].join("\n");
}

function codesSection({ components }: ApiDocument): string {
  const rows = Object.entries(components.headers.ErrorCode["x-codes"]).map(
    ([code, { status, title }]) => `| \`${code}\` | ${status} | ${title} |`,
  );
  return [
    "## Error codes\n",
    "In `X-Error-Code`, as `code` of a problem and of a batch's errors, and as `reason` of the clients' errors. Codes are stable, and",
    "more may come ([versions.md](versions.md#the-api)): a program goes by the status where it does not know the code.\n",
    "| code | status | what |",
    "|---|---|---|",
    ...rows,
    "",
  ].join("\n");
}

const toAnchor = (heading: string) => heading.toLowerCase().replaceAll(" ", "-");
const formatLink = ({ operation }: Call) => `[${operation.operationId}](#${operation.operationId.toLowerCase()})`;

function callSection({ path, method, operation }: Call, document: ApiDocument): string {
  const { operationId, summary, description, parameters, requestBody, responses, externalDocs } = operation;
  const own = parameters.filter(({ name }) => name !== "X-Request-Id");
  const answers = Object.entries(responses).filter(([status]) => !isRefusal(status));
  return [
    `### ${operationId}\n`,
    `\`${method} ${path}\` · ${describeCaller(operation)}\n`,
    `${oneLine(summary)}.${description === undefined ? "" : ` ${oneLine(description)}.`}\n`,
    ...(operation.deprecated === true ? [`**Deprecated:** [use this instead](${externalDocs?.url}).\n`] : []),
    ...(own.length === 0
      ? []
      : [
          "| parameter | in | type | what |",
          "|---|---|---|---|",
          ...own.map(
            ({ name, in: place, required, schema, description: what }) =>
              `| \`${name}\`${required ? "" : " (optional)"} | ${place} | ${typeText(schema)} | ${cell(what)} |`,
          ),
          "",
        ]),
    ...(requestBody === undefined ? [] : bodyLines(requestBody.content, requestBody.required)),
    "| answer | what | body |",
    "|---|---|---|",
    ...answers.map(([status, response]) => {
      const { description: what = "", content } = resolved(response, document);
      return `| ${status} | ${cell(what)} | ${typeOfContent(content)} |`;
    }),
    "",
    ...formatExample(answers[0]?.[1].content),
    ...refusalLines(responses),
  ].join("\n");
}

const isRefusal = (status: string) => status.startsWith("4") || status.startsWith("5");

/** Returns the codes with which a call can be refused. Only the call's own refusals are explained in words. */
function refusalLines(responses: Operation["responses"]): readonly string[] {
  const refusals = Object.entries(responses).filter(([status]) => isRefusal(status));
  if (refusals.length === 0) return [];
  const own = refusals.filter(([, { $ref: reference }]) => reference === undefined);
  const words = own.map(([status, { description = "" }]) => `${status}: ${oneLine(description)}.`);
  return [`Refused with ${refusals.map(([status]) => status).join(", ")}. ${words.join(" ")}`.trim(), ""];
}

function bodyLines(content: Content, isRequired: boolean): readonly string[] {
  const [type = JSON_TYPE] = Object.keys(content);
  const { schema } = content[type] ?? {};
  const kind = type === JSON_TYPE ? "" : `, \`${type}\``;
  const members = schema === undefined || schema.$ref !== undefined ? [] : memberLines(schema);
  const named = schema === undefined || members.length > 0 ? "" : `: ${typeText(schema)}`;
  return [`**Body**${isRequired ? "" : " (optional)"}${kind}${named}\n`, ...members, ...formatExample(content)];
}

function formatExample(content: Content | undefined): readonly string[] {
  const { example, examples = {} } = content?.[JSON_TYPE] ?? {};
  const value = example ?? Object.values(examples)[0]?.value;
  if (value === undefined) return [];
  return ["```json", JSON.stringify(value, null, 2), "```", ""];
}

function resolved(response: Operation["responses"][string], { components }: ApiDocument) {
  const name = response.$ref?.slice(response.$ref.lastIndexOf("/") + 1);
  return name === undefined ? response : (components.responses[name] ?? response);
}

function describeCaller({ security }: Operation): string {
  const [scheme] = security.flatMap((each) => Object.keys(each));
  switch (scheme) {
    case "apiKey":
      return "a tenant's key";
    case "operator":
      return "an operator's token";
    case "applePass":
      return "the pass's own token";
    case "webhookSignature":
      return "the provider's signature";
    case "metrics":
      return "programs of this machine, or `METRICS_TOKEN`";
    default:
      return "nobody asks for a key";
  }
}

function typeOfContent(content: Content | undefined): string {
  if (content === undefined) return "";
  const json = content[JSON_TYPE];
  return json === undefined
    ? Object.keys(content)
        .map((type) => `\`${type}\``)
        .join(", ")
    : typeText(json.schema);
}

function typeSection(name: string, schema: Schema): string {
  const { description, anyOf = [], oneOf = anyOf } = schema;
  const about = description === undefined ? "" : `${oneLine(description)}.\n\n`;
  const members = memberLines(schema);
  const isChoice = schema.properties === undefined && oneOf.length > 0;
  const choices = isChoice ? oneOf.flatMap((each, at) => choiceLines(each, at)) : [];
  const rest = members.length === 0 && choices.length === 0 ? [`${typeText({ ...schema, description: "" })}\n`] : [];
  return [`### ${name}\n`, `${about}${[...members, ...choices, ...rest].join("\n")}`].join("\n");
}

/** Returns the lines for one of a type's alternatives. */
function choiceLines(schema: Schema, at: number): readonly string[] {
  const members = memberLines(schema);
  const word = at === 0 ? "Either" : "Or";
  return members.length === 0 ? [`${word} ${typeText(schema)}.\n`] : [`${word}:\n`, ...members];
}

function memberLines(schema: Schema): readonly string[] {
  const { properties = {}, required = [], additionalProperties, patternProperties } = schema;
  const members = Object.entries(properties);
  if (members.length === 0) return [];
  const rows = members.map(
    ([name, each]) =>
      `| \`${name}\`${required.includes(name) ? "" : " (optional)"} | ${typeText(each)} | ${cell(each.description ?? "")} |`,
  );
  const isOpen = additionalProperties === true || patternProperties !== undefined;
  return [
    "| member | type | what |",
    "|---|---|---|",
    ...rows,
    ...(isOpen ? ["| … | any | further members |"] : []),
    "",
  ];
}

/** Describes a type, with links to named types. */
function typeText(schema: Schema): string {
  const { $ref: reference, const: constant, enum: values, type, items, anyOf, oneOf = anyOf, allOf } = schema;
  const { properties, required = [], additionalProperties } = schema;
  if (reference !== undefined) {
    const name = reference.slice(reference.lastIndexOf("/") + 1);
    return `[${name}](#${anchors.get(name) ?? ""})`;
  }
  if (constant !== undefined) return code(constant);
  if (values !== undefined) return values.map(code).join(", ");
  if (properties === undefined && oneOf !== undefined) return Array.from(new Set(oneOf.map(typeText))).join(" or ");
  if (items !== undefined) return `list of ${typeText(items)}`;
  if (allOf !== undefined) return allOf.map(typeText).join(" with ");
  if (properties !== undefined) {
    const members = Object.entries(properties).map(
      ([name, each]) => `\`${name}\`${required.includes(name) ? "" : " (optional)"}: ${typeText(each)}`,
    );
    if (members.length === 0) return additionalProperties === false ? "an empty object" : "object";
    return `{${members.join(", ")}}`;
  }
  return type === undefined ? "any" : [type].flat().join(" or ");
}

function code(value: unknown): string {
  return `\`${typeof value === "string" ? value : JSON.stringify(value)}\``;
}

const oneLine = (text: string) => text.replaceAll(/\s+/g, " ").trim().replace(/\.$/, "");
const cell = (text: string) => text.replaceAll(/\s+/g, " ").trim().replaceAll("|", "\\|");

/** Returns the anchor of each type: a type with the name of a call has the second heading of that name. */
function typeAnchors({ paths, components }: ApiDocument): ReadonlyMap<string, string> {
  const calls = Object.values(paths).flatMap((methods) => Object.values(methods));
  const taken = new Set(calls.map(({ operationId }) => operationId.toLowerCase()));
  const anchorOfType = (name: string) => `${name.toLowerCase()}${taken.has(name.toLowerCase()) ? "-1" : ""}`;
  return new Map(Object.keys(components.schemas).map((name) => [name, anchorOfType(name)]));
}

const document = await readDocument();
const anchors = typeAnchors(document);
const text = referencePage(document);
const isStale = !(await Bun.file(PAGE).exists()) || (await Bun.file(PAGE).text()) !== text;
if (isStale && process.argv.includes("--check")) {
  console.log(`${PAGE} is stale: bun infra/reference-page.ts`);
  process.exitCode = 1;
} else if (isStale) await Bun.write(PAGE, text);
