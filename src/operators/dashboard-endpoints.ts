import { type Endpoint, endpoint } from "../http/endpoint.ts";
import { DASHBOARD_PAGES, type DashboardPage } from "./dashboard/dashboard-pages.ts";

const HEADERS = {
  "cache-control": "no-cache",
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
} as const;

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
