import { ApiError } from "../domain/errors.ts";
import type { Exchange } from "./exchange.ts";
import type { FrontDoor } from "./front-door.ts";
import { type InLanguages, type PageContent, pageAnswer, wantsPage } from "./page.ts";
import { NOWHERE, startPage } from "./unrouted-pages.ts";

export interface KnownRoute {
  readonly method: string;
  /** Path parameters are written `:name`. */
  readonly path: string;
}

/**
 * Answers what no route matches: HEAD (as its GET, without the body), OPTIONS, methods that the path does not support (405 with
 * `Allow`, RFC 9110, 15.5.6), and unknown addresses (404). Browsers get pages at `/` and at unknown addresses.
 */
export class Unrouted {
  private readonly methodsByPath: readonly { readonly pattern: RegExp; readonly methods: readonly string[] }[];
  private readonly start: InLanguages<PageContent>;

  /** `get` answers a GET request. */
  constructor(
    private readonly door: FrontDoor,
    routes: readonly KnownRoute[],
    private readonly get: (request: Request) => Response | Promise<Response>,
  ) {
    const methods = new Map<string, string[]>();
    for (const { path, method } of routes) methods.set(path, [...(methods.get(path) ?? []), method]);
    this.methodsByPath = Array.from(methods, ([path, known]) => ({ pattern: toPattern(path), methods: known }));
    this.start = startPage((path) => methods.has(path));
  }

  async answer(request: Request): Promise<Response> {
    const path = pathOf(request.url);
    const methods = this.methodsByPath.find(({ pattern }) => pattern.test(path))?.methods ?? [];
    if (request.method === "HEAD" && methods.includes("GET")) return this.head(request);
    return this.door.serve("unrouted", request, async (exchange) => {
      await this.guard(exchange, path);
      if (methods.length === 0) return this.nothingAt(exchange, path);
      const allow = allowOf(methods);
      if (request.method === "OPTIONS") return exchange.body(204, null, { allow });
      const error = `${path} does not take ${request.method.slice(0, 20)}: it takes ${allow}`;
      return exchange.json(405, { error }, { allow });
    });
  }

  private nothingAt(exchange: Exchange, path: string): Response {
    const { request } = exchange;
    const isRead = request.method === "GET" || request.method === "HEAD";
    if (!isRead || OF_PROGRAMS.test(path) || !wantsPage(request)) {
      throw new ApiError(404, "there is nothing at this address");
    }
    const page = path === "/" ? { status: 200, content: this.start } : { status: 404, content: NOWHERE };
    return pageAnswer(this.door, exchange, page);
  }

  private async head(request: Request): Promise<Response> {
    const { url, headers } = request;
    const asGet = new Request(url, { method: "GET", headers });
    this.door.callers.standsFor(asGet, request);
    const { status, headers: answered } = await this.get(asGet);
    return new Response(null, { status, headers: answered });
  }

  /** Operator addresses reveal nothing to strangers, and a tenant's stray request counts like any other. */
  private async guard(exchange: Exchange, path: string): Promise<void> {
    if (path === "/dash/api" || path.startsWith("/dash/api/")) return this.door.requireOperator(exchange);
    if (!path.startsWith("/v1/")) return;
    const tenant = await this.door.tenantOf(exchange);
    if (tenant !== null) await this.door.admit(exchange, tenant);
  }
}

/** Addresses that only programs call, whatever they accept. */
const OF_PROGRAMS = /^\/(?:v1|dash\/api|webhook|wallet)(?:\/|$)/;

function pathOf(url: string): string {
  const start = url.indexOf("/", url.indexOf("://") + 3);
  const end = url.indexOf("?", start);
  return start === -1 ? "/" : url.slice(start, end === -1 ? undefined : end);
}

function toPattern(path: string): RegExp {
  const segments = path.split("/").map((segment) => (segment.startsWith(":") ? "[^/]+" : RegExp.escape(segment)));
  return new RegExp(`^${segments.join("/")}$`);
}

function allowOf(methods: readonly string[]): string {
  const head = methods.includes("GET") ? ["HEAD"] : [];
  return [...methods, ...head, "OPTIONS"].join(", ");
}
