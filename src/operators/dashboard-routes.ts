import type { Elysia } from "elysia";
import type { Exchange } from "../http/exchange.ts";
import type { FrontDoor } from "../http/front-door.ts";

/** `GET /dash`: the operators' page and its files. They hold nothing secret; what they show comes from `/dash/api`. */
export function dashboardRoutes(app: Elysia, door: FrontDoor): void {
  for (const { path, contentType, file } of door.ports.dashboard) {
    const answer = (exchange: Exchange) =>
      exchange.body(200, file, { ...door.ofPages, ...HEADERS, "content-type": contentType });
    app.get(path, ({ request }) => door.serve("dashboard", request, answer));
  }
}

const HEADERS = {
  "cache-control": "no-cache",
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
} as const;
