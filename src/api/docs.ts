import { fileURLToPath } from "node:url";
import type { Elysia } from "elysia";
import type { Exchange } from "./exchange.ts";
import type { FrontDoor } from "./front-door.ts";
import { buildApiDocument } from "./openapi/api-document.ts";

/** `GET /openapi.json` and its rendering at `GET /docs`, which loads nothing from other hosts. */
export function docsRoutes(app: Elysia, door: FrontDoor): void {
  const { version, publicUrl } = door.ports;
  const document = JSON.stringify(buildApiDocument({ version, publicUrl: publicUrl ?? "/" }));
  const openapi = (exchange: Exchange) => exchange.jsonText(200, document, { "cache-control": "no-cache" });
  const page = (exchange: Exchange) =>
    exchange.body(200, PAGE, { ...door.ofPages, ...PAGE_HEADERS, "content-type": "text/html; charset=utf-8" });
  app.get("/openapi.json", ({ request }) => door.serve("openapi", request, openapi));
  app.get("/docs", ({ request }) => door.serve("docs", request, page));
  for (const { path, type, content } of ASSETS) {
    const asset = (exchange: Exchange) =>
      exchange.body(200, content(), { ...door.ofPages, "content-type": type, "cache-control": "public, max-age=3600" });
    app.get(path, ({ request }) => door.serve("docs", request, asset));
  }
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

const START = `SwaggerUIBundle({ url: "/openapi.json", dom_id: "#swagger-ui", deepLinking: true, validatorUrl: null });\n`;

const PAGE_HEADERS = {
  "cache-control": "no-cache",
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
} as const;

interface Asset {
  readonly path: string;
  readonly type: string;
  content(): string | Bun.BunFile;
}

const ASSETS: readonly Asset[] = [
  { path: "/docs/start.js", type: "text/javascript; charset=utf-8", content: () => START },
  swaggerUi("swagger-ui-bundle.js", "text/javascript; charset=utf-8"),
  swaggerUi("swagger-ui.css", "text/css; charset=utf-8"),
  { ...swaggerUi("favicon-32x32.png", "image/png"), path: "/docs/favicon.png" },
];

function swaggerUi(file: string, type: string): Asset {
  const path = fileURLToPath(import.meta.resolve(`swagger-ui-dist/${file}`));
  return { path: `/docs/${file}`, type, content: () => Bun.file(path) };
}
