import { fileURLToPath } from "node:url";
import { Type } from "@sinclair/typebox";
import { type Endpoint, endpoint } from "./endpoint.ts";
import type { Exchange } from "./exchange.ts";
import { PUBLIC_BAD_REQUEST } from "./failures.ts";
import type { FrontDoor } from "./front-door.ts";
import { openApiDocument } from "./openapi.ts";
import { queryChoice, readQuery } from "./parameters.ts";

const OpenApiDocument = Type.Object(
  {
    openapi: Type.String({ pattern: "^3\\.1\\." }),
    info: Type.Object({ title: Type.String(), version: Type.String() }, { additionalProperties: true }),
    servers: Type.Array(Type.Object({ url: Type.String() })),
    paths: Type.Object({}, { additionalProperties: true, description: "Path items, by path." }),
    components: Type.Object({}, { additionalProperties: true }),
  },
  { additionalProperties: true },
);

const DOCUMENT_EXAMPLE = {
  openapi: "3.1.0",
  info: { title: "Waybill", version: "1.0.0" },
  servers: [{ url: "https://api.example.com" }],
  paths: {},
  components: {},
};

/** `GET /openapi.json` and its rendering at `GET /docs`, which makes no request to other hosts. */
export function docsEndpoints(door: FrontDoor, others: readonly Endpoint[]): readonly Endpoint[] {
  const { version, publicUrl } = door.ports;
  const texts = new Map<string, string>();
  const own: readonly Endpoint[] = [
    endpoint({
      method: "GET",
      path: "/openapi.json",
      name: "openapi",
      operation: "openapi",
      tag: "Service",
      summary: "This document",
      query: QUERY,
      fails: { 400: PUBLIC_BAD_REQUEST },
      answers: { 200: { description: "OpenAPI 3.1.", schema: OpenApiDocument, examples: [DOCUMENT_EXAMPLE] } },
      handle: (_, exchange) =>
        exchange.jsonText(200, document(readAudience(exchange)), { "cache-control": "no-cache" }),
    }),
    endpoint({
      method: "GET",
      path: "/docs",
      name: "docs",
      operation: "docs",
      tag: "Service",
      summary: "This document, rendered",
      query: QUERY,
      fails: { 400: PUBLIC_BAD_REQUEST },
      answers: { 200: { description: "A page.", schema: null, mediaType: "text/html" } },
      handle(_, exchange) {
        readAudience(exchange);
        return exchange.body(200, PAGE, {
          ...door.ofPages,
          ...PAGE_HEADERS,
          "content-type": "text/html; charset=utf-8",
        });
      },
    }),
    ...ASSETS.map((asset) => assetEndpoint(asset)),
  ];
  const document = (audience: Audience): string => {
    const all = [...others, ...own];
    const described = audience === "all" ? all : all.filter(({ caller }) => caller === audience);
    const text =
      texts.get(audience) ?? JSON.stringify(openApiDocument(described, { version, publicUrl: publicUrl ?? "/" }));
    texts.set(audience, text);
    return text;
  };
  return own;
}

const AUDIENCES = ["all", "tenant", "operator"] as const;
type Audience = (typeof AUDIENCES)[number];

const QUERY = {
  for: queryChoice("for", AUDIENCES, {
    description: "The caller whose operations are described: a tenant with its key, an operator, or all.",
    absent: "all",
  }),
};

function readAudience({ request }: Exchange): Audience {
  return QUERY.for.read(readQuery(request, ["for"]).for);
}

function assetEndpoint({ path, operation, type, content }: Asset): Endpoint {
  return endpoint({
    method: "GET",
    path,
    name: "docs",
    operation,
    tag: "Service",
    summary: `A part of the page: ${path.slice(path.lastIndexOf("/") + 1)}`,
    answers: { 200: { description: "The file.", schema: null, mediaType: type } },
    handle: (door, exchange) =>
      exchange.body(200, content(), { ...door.ofPages, "content-type": type, "cache-control": "public, max-age=3600" }),
  });
}

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Waybill API</title>
<link rel="icon" href="/docs/favicon.png">
<link rel="stylesheet" href="/docs/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`;

const START = `SwaggerUIBundle({ url: "/openapi.json" + location.search, dom_id: "#swagger-ui", deepLinking: true, validatorUrl: null });\n`;

const PAGE_HEADERS = {
  "cache-control": "no-cache",
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
} as const;

interface Asset {
  readonly path: string;
  readonly operation: string;
  readonly type: string;
  content(): string | Bun.BunFile;
}

const ASSETS: readonly Asset[] = [
  { path: "/docs/start.js", operation: "docsStart", type: "text/javascript; charset=utf-8", content: () => START },
  swaggerUi("swagger-ui-bundle.js", { operation: "docsScript", type: "text/javascript; charset=utf-8" }),
  swaggerUi("swagger-ui.css", { operation: "docsStyle", type: "text/css; charset=utf-8" }),
  { ...swaggerUi("favicon-32x32.png", { operation: "docsIcon", type: "image/png" }), path: "/docs/favicon.png" },
];

function swaggerUi(name: string, asset: Pick<Asset, "operation" | "type">): Asset {
  const file = fileURLToPath(import.meta.resolve(`swagger-ui-dist/${name}`));
  return { ...asset, path: `/docs/${name}`, content: () => Bun.file(file) };
}
