import { toOpenAPISchema } from "@elysiajs/openapi/openapi";
import { type TSchema, Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { isJsonArray, isJsonObject, type Json, type JsonObject } from "../domain/texts/json.ts";
import {
  type Answer,
  type CallerKind,
  type DocumentedBody,
  type Endpoint,
  type Example,
  getEffect,
} from "./endpoint.ts";
import { ERROR_CODES } from "./error-codes.ts";
import {
  BAD_REQUEST,
  BODIES_CROWDED,
  type Failure,
  FORBIDDEN,
  INTERNAL_ERROR,
  LACKS_SCOPE,
  OPERATOR_BAD_REQUEST,
  OPERATOR_BODIES_CROWDED,
  OPERATOR_FORBIDDEN,
  OPERATOR_INTERNAL_ERROR,
  OPERATOR_TOO_LARGE,
  OPERATOR_TOO_SLOW,
  OPERATOR_UNKNOWN,
  OPERATOR_UNKNOWN_ENCODING,
  PUBLIC_INTERNAL_ERROR,
  TOO_LARGE,
  TOO_MANY_REQUESTS,
  TOO_SLOW,
  UNKNOWN_ENCODING,
  UNKNOWN_KEY,
} from "./failures.ts";
import { JSON_TYPE, PROBLEM_TYPE, Problem } from "./problem.ts";

/** The OpenAPI 3.1 document, derived from the endpoints' declarations. */
export function openApiDocument(
  endpoints: readonly Endpoint[],
  { version, publicUrl }: { readonly version: string; readonly publicUrl: string },
): object {
  const components = new Components();
  // This app serves no requests: the plugin only reads its routes.
  const described = new Elysia();
  for (const endpoint of endpoints) {
    described.route(endpoint.method, formatPath(endpoint), () => "", {
      detail: describeOperation(endpoint, components),
    });
  }
  const { paths } = toOpenAPISchema(described, { staticFile: false });
  for (const endpoint of endpoints) {
    const operation: unknown = Reflect.get(paths[formatPath(endpoint)] ?? {}, endpoint.method.toLowerCase());
    // The plugin knows at most the names of parameters.
    if (isJsonObject(operation)) Object.assign(operation, { parameters: describeParameters(endpoint) });
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Waybill",
      version,
      summary: "Transactional messages for many tenants, with an exact delivery history.",
      description: DESCRIPTION,
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: publicUrl }],
    tags: TAGS.filter(({ name }) => endpoints.some(({ tag }) => tag === name)),
    paths,
    components: { securitySchemes: SECURITY_SCHEMES, headers: HEADERS, ...components.all() },
  };
}

/** The path in OpenAPI syntax. The plugin would take an ending such as `.gif` for part of a parameter's name. */
function formatPath({ path }: Pick<Endpoint, "path">): string {
  return path.replace(/:(\w+)/g, "{$1}");
}

/** Definitions that are written once and referred to by name. */
class Components {
  private readonly schemas = new Map<string, Json>();
  private readonly responses = new Map<string, { readonly failure: Failure; readonly json: JsonObject }>();

  all(): { readonly responses: JsonObject; readonly schemas: JsonObject } {
    const responses = Object.fromEntries(Array.from(this.responses, ([name, { json }]) => [name, json]));
    return { responses, schemas: Object.fromEntries(this.schemas) };
  }

  /** The schema, or a reference to it if it has a name (`$id`). TypeBox's symbols are removed. */
  schema(schema: TSchema): Json {
    // Without its symbols, a TypeBox schema is plain JSON Schema.
    return this.hoisted(JSON.parse(JSON.stringify(schema)) as Json);
  }

  failure(failure: Failure): JsonObject {
    const known = this.responses.get(failure.name);
    if (known !== undefined && known.failure !== failure) throw new TypeError(`two failures are ${failure.name}`);
    if (known === undefined) this.responses.set(failure.name, { failure, json: this.failureJson(failure) });
    return { $ref: `#/components/responses/${failure.name}` };
  }

  private failureJson({ description, example, isLimited, headers, schema, hasPage }: Failure): JsonObject {
    const own = Object.fromEntries(
      headers.map((name) => [name, { $ref: `#/components/headers/${OWN_HEADERS[name]}` }]),
    );
    const page = hasPage ? { "text/html": { schema: { type: "string" } } } : null;
    const problem = { [PROBLEM_TYPE]: { schema: this.schema(Problem) } };
    const content = { [JSON_TYPE]: { schema: this.schema(schema ?? ErrorBody), example }, ...problem, ...page };
    return { description, headers: { ...(isLimited ? LIMITED : TRACED), ...CODED, ...own }, content };
  }

  private hoisted(value: Json): Json {
    if (isJsonArray(value)) return value.map((element) => this.hoisted(element));
    if (!isJsonObject(value)) return value;
    const { $id: name, ...rest } = value;
    const inner = Object.fromEntries(Object.entries(rest).map(([key, member]) => [key, this.hoisted(member)]));
    if (typeof name !== "string") return inner;
    const known = this.schemas.get(name);
    if (known !== undefined && !Bun.deepEquals(known, inner)) throw new TypeError(`two schemas are ${name}`);
    this.schemas.set(name, inner);
    return { $ref: `#/components/schemas/${name}` };
  }
}

const ErrorBody = Type.Object(
  { error: Type.String({ description: "One sentence that a person can act on." }) },
  { $id: "Error" },
);

const OWN_HEADERS = {
  "WWW-Authenticate": "Challenge",
  "Retry-After": "RetryAfter",
  "Accept-Encoding": "AcceptEncoding",
} as const;
const CODED: JsonObject = { "X-Error-Code": { $ref: "#/components/headers/ErrorCode" } };
const TRACED: JsonObject = { "X-Request-Id": { $ref: "#/components/headers/RequestId" } };
const LIMITED: JsonObject = {
  ...TRACED,
  "RateLimit-Limit": { $ref: "#/components/headers/RateLimit" },
  "RateLimit-Remaining": { $ref: "#/components/headers/RateRemaining" },
  "RateLimit-Reset": { $ref: "#/components/headers/RateReset" },
  "RateLimit-Policy": { $ref: "#/components/headers/RatePolicy" },
  RateLimit: { $ref: "#/components/headers/RateNow" },
};

function describeOperation(endpoint: Endpoint, components: Components): JsonObject {
  const { operation, tag, summary, caller, answers, documentedBody, deprecated } = endpoint;
  const description = joinDescription(endpoint);
  const successes = Object.entries(answers).map(
    ([status, answer]) => [status, describeAnswer(answer, caller, components)] as const,
  );
  const failures = Object.entries(listFailures(endpoint)).map(
    ([status, one]) => [status, components.failure(one)] as const,
  );
  return {
    operationId: operation,
    tags: [tag],
    summary,
    ...(description === undefined ? null : { description }),
    ...(deprecated === undefined ? null : { deprecated: true, externalDocs: { url: deprecated.link } }),
    security: (endpoint.security ?? SECURITY_OF[caller]).map((name) => (name === null ? {} : { [name]: [] })),
    ...(documentedBody === undefined ? null : { requestBody: describeBody(documentedBody, components) }),
    responses: Object.fromEntries<Json>([...successes, ...failures]),
  };
}

/** Appends the scope that a tenant's key needs. */
function joinDescription({ description, scope }: Endpoint): string | undefined {
  if (scope === undefined) return description;
  return `${description === undefined ? "" : `${description} `}Needs a key with the scope \`${scope}\`.`;
}

const SECURITY_OF: Readonly<Record<CallerKind, readonly string[]>> = {
  tenant: ["apiKey"],
  operator: ["operator"],
  anyone: [],
};

/** Returns the failures that every endpoint of this kind shares, plus its own. */
function listFailures(endpoint: Endpoint): Readonly<Record<number, Failure>> {
  const { caller, channel, documentedBody, fails = {} } = endpoint;
  const hasBody = documentedBody !== undefined;
  switch (caller) {
    case "tenant":
      return {
        // Also covers unknown query parameters.
        400: BAD_REQUEST,
        401: UNKNOWN_KEY,
        403: channel === undefined ? LACKS_SCOPE : FORBIDDEN,
        ...(hasBody ? { 408: TOO_SLOW, 413: TOO_LARGE, 415: UNKNOWN_ENCODING, 503: BODIES_CROWDED } : null),
        429: TOO_MANY_REQUESTS,
        500: INTERNAL_ERROR,
        ...fails,
      };
    case "operator":
      return {
        400: OPERATOR_BAD_REQUEST,
        401: OPERATOR_UNKNOWN,
        ...(getEffect(endpoint) === "read" ? null : { 403: OPERATOR_FORBIDDEN }),
        ...(hasBody
          ? {
              408: OPERATOR_TOO_SLOW,
              413: OPERATOR_TOO_LARGE,
              415: OPERATOR_UNKNOWN_ENCODING,
              503: OPERATOR_BODIES_CROWDED,
            }
          : null),
        500: OPERATOR_INTERNAL_ERROR,
        ...fails,
      };
    case "anyone":
      return { 500: PUBLIC_INTERNAL_ERROR, ...fails };
  }
}

function describeAnswer(answer: Answer, caller: CallerKind, components: Components): JsonObject {
  const { description, schema, mediaType, otherTypes, isBinary = false, examples, headers = {} } = answer;
  const own = Object.entries(headers).map(
    ([name, says]) => [name, { description: says, schema: { type: "string" } }] as const,
  );
  const all = { ...(caller === "tenant" ? LIMITED : TRACED), ...Object.fromEntries(own) };
  const media = { schema, mediaType, otherTypes, isBinary, examples };
  const content = describeContent(media, components);
  return { description, headers: all, ...content };
}

function describeBody(body: DocumentedBody, components: Components): JsonObject {
  const { description, isOptional = false } = body;
  return {
    required: !isOptional,
    ...(description === undefined ? null : { description }),
    ...describeContent(body, components),
  };
}

interface Content {
  readonly schema: TSchema | null;
  readonly mediaType?: string | readonly string[] | undefined;
  readonly otherTypes?: readonly string[] | undefined;
  readonly isBinary?: boolean;
  readonly examples?: Readonly<Record<string, Example>> | readonly [Json] | undefined;
}

function describeContent(content: Content, components: Components): JsonObject {
  const { schema, mediaType, otherTypes = [], isBinary = false, examples } = content;
  if (schema === null && mediaType === undefined) return {};
  const unparsed = { type: "string", ...(isBinary ? { format: "binary" } : null) };
  const shown = schema === null ? unparsed : components.schema(schema);
  // An operator's body has its example in its schema, which also checks it.
  const given = examples ?? exampleIn(schema);
  const media = { schema: shown, ...describeExamples(given) };
  const types = [mediaType ?? "application/json"].flat().map((type) => [type, media] as const);
  const others = otherTypes.map((type) => [type, { schema: { type: "string" } }] as const);
  return { content: Object.fromEntries([...types, ...others]) };
}

function describeExamples(examples: Content["examples"]): JsonObject {
  if (examples === undefined) return {};
  if (isOne(examples)) return { example: examples[0] };
  return { examples: Object.fromEntries(Object.entries(examples).map(([name, example]) => [name, { ...example }])) };
}

function exampleIn(schema: TSchema | null): readonly [Json] | undefined {
  const examples: unknown = schema?.["examples"];
  // Written beside the schema, as JSON.
  return Array.isArray(examples) && examples.length > 0 ? [examples[0] as Json] : undefined;
}

function isOne(examples: Readonly<Record<string, Example>> | readonly [Json]): examples is readonly [Json] {
  return Array.isArray(examples);
}

function describeParameters({ params = {}, query = {}, headers = [] }: Endpoint): readonly JsonObject[] {
  const inPath = Object.entries(params).map(([name, { description, example }]) => ({
    name,
    in: "path",
    required: true,
    description,
    schema: { type: "string" },
    example,
  }));
  const inQuery = Object.entries(query).map(([name, { description, schema, example, isRequired = false }]) => ({
    name,
    in: "query",
    required: isRequired,
    description,
    schema: plain(schema),
    ...(example === undefined ? null : { example }),
  }));
  const inHead = [...headers, REQUEST_ID].map(({ name, description, schema, example }) => ({
    name,
    in: "header",
    required: false,
    description,
    schema: plain(schema),
    ...(example === undefined ? null : { example }),
  }));
  return [...inPath, ...inQuery, ...inHead];
}

/** The schema without TypeBox's symbols. */
function plain(schema: TSchema): Json {
  const read: unknown = JSON.parse(JSON.stringify(schema));
  // Whatever was written as JSON.
  return read as Json;
}

const REQUEST_ID = {
  name: "X-Request-Id",
  description: "1 to 128 of A-Z, a-z, 0-9, dot, hyphen and underscore: given back in the answer.",
  schema: Type.String({ pattern: "^[A-Za-z0-9._-]{1,128}$" }),
  example: "order-1042",
};

const HEADERS: JsonObject = {
  RequestId: {
    description: "The caller's X-Request-Id, or a new one.",
    schema: { type: "string" },
    example: "order-1042",
  },
  RateLimit: { description: "Requests that the plan allows in 60 seconds.", schema: { type: "integer" }, example: 100 },
  RateRemaining: { description: "Requests left in the window.", schema: { type: "integer" }, example: 99 },
  RateReset: {
    description: "Seconds until the window has room again (429) or is empty (otherwise).",
    schema: { type: "integer" },
    example: 60,
  },
  RatePolicy: {
    description: "The plan's limit as a structured field: requests (`q`) in a window of seconds (`w`).",
    schema: { type: "string" },
    example: '"plan";q=100;w=60',
  },
  RateNow: {
    description: "What is left of it: requests (`r`), and the seconds (`t`) of RateLimit-Reset.",
    schema: { type: "string" },
    example: '"plan";r=99;t=60',
  },
  ErrorCode: {
    description: "Why, in one word for programs. Codes stay what they are; later releases have more.",
    schema: { $ref: "#/components/schemas/ErrorCode" },
    "x-codes": ERROR_CODES,
  },
  AcceptEncoding: {
    description: "The encodings that are taken.",
    schema: { type: "string" },
    example: "gzip, identity",
  },
  RetryAfter: { description: "Seconds to wait.", schema: { type: "integer" }, example: 12 },
  Challenge: { description: "How to authenticate.", schema: { type: "string" } },
};

const DESCRIPTION = `Every send is asynchronous: a request answers 202 with a \`job_id\`, and
\`GET /v1/jobs/{job_id}\` says what became of it.

**Errors** have one shape, \`{"error": "<a sentence>"}\`, and one of the codes of the type \`ErrorCode\` in the header
\`X-Error-Code\`. Whoever names \`application/problem+json\` in \`Accept\` gets a problem (RFC 9457), with \`code\` and \`param\`. The checks run in this order: 401, 429, 403 (channel), 400,
403 (permission), 422, 402, 500. An unknown address is 404; a method that an address does not take is 405 with \`Allow\`.
Browsers, which prefer \`text/html\`, get a page with the same status for unknown addresses and broken links of messages, and
one at \`/\`, in English or Spanish by \`Accept-Language\`.

**Rate limit.** Never more than the plan's number of \`/v1\` requests in any 60 seconds; every authenticated request
counts. Answers say what is left in \`RateLimit-Limit\`, \`RateLimit-Remaining\` and \`RateLimit-Reset\`, and the same in
\`RateLimit-Policy\` and \`RateLimit\` (draft-ietf-httpapi-ratelimit-headers-11).

**Repeating a send safely.** Give it an \`Idempotency-Key\`: the same key with the same body within 24 hours answers the
first answer again and queues nothing.

**Bodies** of tenants' and operators' calls may be compressed with \`Content-Encoding: gzip\`; what they
expand to is bounded as if it had come so (10 MiB; an e-mail with attachments 15 MiB; a batch 5 MiB).

**Tracing.** Every answer to a well-formed request carries \`X-Request-Id\`: yours, if you sent one. Where the server exports traces, your
\`traceparent\` (W3C) is the parent of its own; one that is malformed is ignored.`;

const TAGS: readonly JsonObject[] = [
  { name: "Send", description: "Queue messages." },
  { name: "Passes", description: "A tenant's wallet passes, once they are created." },
  { name: "Jobs", description: "What became of a message." },
  { name: "Events", description: "The delivery history of a tenant." },
  { name: "Webhooks", description: "Where a tenant is told of its events." },
  { name: "Domains", description: "The domains that a tenant sends from." },
  { name: "Management", description: "What a tenant keeps with the service: keys, suppressions, templates, aliases." },
  { name: "Tenants", description: "Operators: tenants, their keys, templates, credentials and tokens." },
  { name: "Analysis", description: "Operators: events in bulk." },
  { name: "Operators", description: "Operators: who may call, and what they did." },
  { name: "Plans", description: "Operators: how much a tenant may ask for." },
  { name: "Mail reports", description: "Operators: bounces and complaints that come by mail." },
  { name: "Chat", description: "What comes from the chat provider." },
  { name: "Sandbox", description: "Operators: what reached the stand-ins for the providers." },
  { name: "Pass devices", description: "Apple's PassKit web service, for devices that have passes." },
  { name: "Public links", description: "What the links in messages lead to." },
  { name: "Service", description: "What machines ask about the process." },
];

const SECURITY_SCHEMES: JsonObject = {
  metrics: { type: "http", scheme: "bearer", description: "`METRICS_TOKEN`, where the server has one." },
  apiKey: {
    type: "apiKey",
    in: "header",
    name: "X-API-Key",
    description:
      "A tenant's key. It allows what its scopes say: `send`, `read`, `manage`. Programs that know only `Authorization: Bearer` may give it there.",
  },
  applePass: {
    type: "http",
    scheme: "ApplePass",
    description: "The `authenticationToken` of the pass itself.",
  },
  webhookSignature: {
    type: "apiKey",
    in: "header",
    name: "X-Hub-Signature-256",
    description: "`sha256=` and the HMAC-SHA256 of the body's bytes under the webhook secret, in hexadecimal digits.",
  },
  operator: { type: "http", scheme: "bearer", description: "An operator's token, or `OPERATOR_TOKEN`." },
};
