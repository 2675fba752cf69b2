import { join } from "node:path";
import { type Endpoint, endpoint } from "../http/endpoint.ts";

const HEADERS = {
  "cache-control": "no-cache",
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
} as const;

/** A file of the operators' dashboard. */
interface DashboardPage {
  readonly path: string;
  /** Its operation and description in the API document. */
  readonly operation: string;
  readonly summary: string;
  readonly mediaType: string;
  readonly file: Bun.BunFile;
}

/** The operators' dashboard: three files that load nothing from other hosts. */
const DASHBOARD_PAGES: readonly DashboardPage[] = [
  {
    path: "/dash",
    operation: "dashboard",
    summary: "The operators' page",
    mediaType: "text/html",
    file: fileNamed("page.html"),
  },
  {
    path: "/dash/dashboard.js",
    operation: "dashboardScript",
    summary: "Part of the operators' page",
    mediaType: "text/javascript",
    file: fileNamed("dashboard.js"),
  },
  {
    path: "/dash/dashboard.css",
    operation: "dashboardStyle",
    summary: "Part of the operators' page",
    mediaType: "text/css",
    file: fileNamed("dashboard.css"),
  },
];

/** `GET /dash`: the operators' page and its files. They hold no secrets; their data comes from `/dash/api`. */
export const dashboardEndpoints: readonly Endpoint[] = DASHBOARD_PAGES.map((page) => pageEndpoint(page));

function pageEndpoint({ path, operation, summary, mediaType, file }: DashboardPage): Endpoint {
  return endpoint({
    method: "GET",
    path,
    name: "dashboard",
    operation,
    tag: "Service",
    summary,
    answers: { 200: { description: summary, schema: null, mediaType } },
    handle: (door, exchange) =>
      exchange.body(200, file, { ...door.ofPages, ...HEADERS, "content-type": `${mediaType}; charset=utf-8` }),
  });
}

function fileNamed(name: string): Bun.BunFile {
  return Bun.file(join(import.meta.dir, "dashboard", name));
}
