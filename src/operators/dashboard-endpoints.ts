import { join } from "node:path";
import { type Endpoint, endpoint } from "../http/endpoint.ts";
import { failure } from "../http/failures.ts";
import { pathText } from "../http/parameters.ts";
import { noSuch } from "../http/store-results.ts";

/** Forbids everything but our own files. Frames contain messages, which inherit the page's policy. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-src 'self'; " +
  "frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

const HEADERS = { "content-security-policy": POLICY, "referrer-policy": "no-referrer" } as const;

const ASSETS = "/dash/assets";
const ENTRY = join(import.meta.dir, "dashboard", "app.tsx");
const TAGGED = { ETag: "Changes with the page." } as const;
const NO_FILE = failure("NoFile", "The page is of another release: load it again.", "there is no such file");

interface BundledFile {
  readonly mediaType: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly zipped: Uint8Array<ArrayBuffer>;
}

/** The dashboard as served to browsers. */
interface Bundle {
  readonly page: string;
  readonly tag: string;
  /** Files by their name in the page, which changes with their content. */
  readonly files: ReadonlyMap<string, BundledFile>;
}

/**
 * `GET /dash`: the operators' page and its files, which contain no secrets and make no request to other hosts. Their data comes
 * from `/dash/api`. They are bundled at the first request, so a process whose dashboard is never opened does not pay for it.
 */
export function dashboardEndpoints(): readonly Endpoint[] {
  let bundle: Promise<Bundle> | null = null;
  const bundled = (): Promise<Bundle> => {
    bundle ??= build().catch((error: unknown) => {
      bundle = null;
      throw error;
    });
    return bundle;
  };
  return [pageEndpoint(bundled), assetEndpoint(bundled)];
}

function pageEndpoint(bundled: () => Promise<Bundle>): Endpoint {
  return endpoint({
    method: "GET",
    path: "/dash",
    name: "dashboard",
    operation: "dashboard",
    tag: "Service",
    summary: "The operators' page",
    answers: {
      200: { description: "The operators' page", schema: null, mediaType: "text/html", headers: TAGGED },
      304: { description: "It has not changed.", schema: null, headers: TAGGED },
    },
    async handle(door, exchange) {
      const { page, tag } = await bundled();
      const headers = { ...door.ofPages, ...HEADERS, etag: tag, "cache-control": "no-cache" };
      if (exchange.request.headers.get("if-none-match") === tag) return exchange.body(304, null, headers);
      return exchange.body(200, page, { ...headers, "content-type": "text/html; charset=utf-8" });
    },
  });
}

function assetEndpoint(bundled: () => Promise<Bundle>): Endpoint {
  return endpoint({
    method: "GET",
    path: `${ASSETS}/:file`,
    name: "dashboard",
    operation: "dashboardFile",
    tag: "Service",
    summary: "Part of the operators' page",
    params: { file: pathText("As the page names it.", "app-1a2b3c4d.js") },
    answers: {
      200: {
        description: "The file.",
        schema: null,
        mediaType: ["text/javascript", "text/css"],
        headers: { "Content-Encoding": "`gzip`, if the browser takes it.", Vary: "`accept-encoding`." },
      },
    },
    fails: { 404: NO_FILE },
    async handle(door, exchange, { file }) {
      const found = (await bundled()).files.get(file ?? "");
      if (found === undefined) throw noSuch("file");
      const isZipped = /\bgzip\b/.test(exchange.request.headers.get("accept-encoding") ?? "");
      return exchange.body(200, isZipped ? found.zipped : found.bytes, {
        ...door.ofPages,
        ...HEADERS,
        ...(isZipped ? { "content-encoding": "gzip" } : null),
        vary: "accept-encoding",
        "content-type": `${found.mediaType}; charset=utf-8`,
        "cache-control": "public, max-age=31536000, immutable",
      });
    },
  });
}

async function build(): Promise<Bundle> {
  const { outputs } = await Bun.build({
    entrypoints: [ENTRY],
    target: "browser",
    minify: true,
    naming: { entry: "[name]-[hash].[ext]", asset: "[name]-[hash].[ext]" },
    jsx: { runtime: "automatic", importSource: "preact", development: false },
  });
  const files = await Promise.all(
    outputs.map(async (output) => {
      const bytes = new Uint8Array(await output.arrayBuffer());
      const mediaType = output.path.endsWith(".css") ? "text/css" : "text/javascript";
      return { name: output.path.replace(/^.*\//, ""), mediaType, bytes, zipped: Bun.gzipSync(bytes) };
    }),
  );
  const findName = (type: string): string => files.find(({ mediaType }) => mediaType === type)?.name ?? "";
  const page = renderPage(`${ASSETS}/${findName("text/css")}`, `${ASSETS}/${findName("text/javascript")}`);
  return {
    page,
    tag: `"${Bun.hash(page).toString(36)}"`,
    files: new Map(files.map((file) => [file.name, file])),
  };
}

function renderPage(style: string, script: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Waybill</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${style}">
</head>
<body>
<div id="app"></div>
<noscript><p>This page needs JavaScript.</p></noscript>
<script type="module" src="${script}"></script>
</body>
</html>
`;
}
