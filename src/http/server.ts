import { Elysia } from "elysia";
import { sleep, within } from "../domain/clock.ts";
import { limits } from "../domain/limits.ts";
import { httpOrigin } from "../domain/texts/host.ts";
import { ApiError } from "./api-error.ts";
import type { CallerAddresses } from "./caller-addresses.ts";
import { deprecationHeaders } from "./deprecation.ts";
import { docsEndpoints } from "./docs.ts";
import type { Endpoint, RawParameters } from "./endpoint.ts";
import type { ErrorCode } from "./error-codes.ts";
import type { Exchange } from "./exchange.ts";
import { type DoorPorts, FrontDoor } from "./front-door.ts";
import { memberNames } from "./member-names.ts";
import { type InLanguages, type PageContent, pageAnswer, wantsPage } from "./page.ts";
import { readPath } from "./parameters.ts";
import { securityEndpoint } from "./security-text.ts";
import { serveOperator } from "./serve-operator.ts";
import { CONNECTION_IDLE_SECONDS, serviceEndpoints } from "./service.ts";
import { NOWHERE, startPage } from "./unrouted-pages.ts";

export interface Server {
  /** Answers a request without a socket. */
  handle(request: Request): Promise<Response>;
  /** Takes requests at `port` (0: any free port). May be called once. Rejects if the address is not available. */
  listen(at: ListenAt): Promise<{ readonly url: string; readonly port: number }>;
  /** The same for operators and monitoring, where `DoorPorts.isAdminApart` says so. */
  listenApart(at: ListenAt): Promise<{ readonly url: string; readonly port: number }>;
  /** Stops taking connections, answers the requests in flight, then closes the remaining connections. Safe to call twice. */
  stop(): Promise<void>;
  /** Every route that this server answers. */
  readonly routes: readonly KnownRoute[];
}

interface KnownRoute {
  readonly method: string;
  /** Path parameters are written `:name`. */
  readonly path: string;
}

export interface ListenAt {
  readonly host: string;
  readonly port: number;
  /** Other processes of this user listen on the same port; the kernel spreads connections over them. */
  readonly isShared?: boolean;
}

/** Creates the HTTP side of Waybill, without starting it. */
export function createServer(ports: DoorPorts, endpoints: readonly Endpoint[]): Server {
  const door = new FrontDoor(
    ports,
    endpoints.flatMap(({ messageKind }) => messageKind ?? []),
  );
  const documented = [...endpoints, ...serviceEndpoints(door), securityEndpoint(door)];
  const all = [...documented, ...docsEndpoints(door, documented)];
  for (const { name: route, method } of all) {
    // Alerts on a counter miss the first errors if its series begins with them.
    for (const status of ["500", "503"]) ports.telemetry.count("http_requests", { route, method, status }, 0);
  }
  const isApart = ports.isAdminApart === true;
  const main = new Site(door, isApart ? all.filter(({ path }) => !isOfOperators(path)) : all);
  // A separate router: however a path is spelled, the public router has no route to an operator's address.
  const admin = new Site(door, isApart ? all.filter(({ path }) => isOfOperators(path) || PROBES.has(path)) : []);
  return {
    handle: main.answer,
    listen: (at) => main.listener.listen(at),
    listenApart: (at) => admin.listener.listen(at),
    stop: async () => void (await Promise.all([main.listener.stop(), admin.listener.stop()])),
    routes: isApart ? [...main.routes, ...admin.routes.filter(({ path }) => !PROBES.has(path))] : main.routes,
  };
}

/** Addresses of operators and monitoring that strangers need not see. */
function isOfOperators(path: string): boolean {
  return path === "/metrics" || path === "/dash" || path.startsWith("/dash/");
}

/** Balancers probe either listener. */
const PROBES: ReadonlySet<string> = new Set(["/health", "/ready"]);

/** The routes that are served at one address. */
class Site {
  readonly answer: (request: Request) => Promise<Response>;
  readonly listener: Listener;
  readonly routes: readonly KnownRoute[];

  constructor(door: FrontDoor, endpoints: readonly Endpoint[]) {
    // Elysia only routes: no lifecycle hook runs in the hot path, and every handler returns a finished Response. Without
    // `standardHostname: false`, it takes a three-letter host name for part of the path.
    const app = new Elysia({ strictPath: true, handler: { standardHostname: false } });
    for (const endpoint of endpoints) addEndpoint(app, door, endpoint);
    this.routes = app.routes.map(({ method, path }) => ({ method, path }));
    this.answer = async (request) => app.fetch(request);
    const unrouted = new Unrouted(door, this.routes, this.answer);
    app.onError(({ request, code, error }) => {
      if (code === "NOT_FOUND") return unrouted.answer(request);
      return door.serve({ name: "broken" }, request, () => {
        throw error;
      });
    });
    const slow = new Map(
      endpoints.flatMap(({ path, idleSeconds }) => (idleSeconds === undefined ? [] : [[path, idleSeconds] as const])),
    );
    this.listener = new Listener(door.ports, door.callers, this.answer, slow);
  }
}

function addEndpoint(app: Elysia, door: FrontDoor, endpoint: Endpoint): void {
  const { method, path, name, deprecated } = endpoint;
  const endpointHeaders = deprecated === undefined ? null : deprecationHeaders(deprecated);
  const answer = (exchange: Exchange, params: RawParameters) => {
    exchange.endpointHeaders = endpointHeaders;
    return endpoint.caller === "operator"
      ? serveOperator(door, endpoint, { exchange, params })
      : endpoint.serve(door, exchange, params);
  };
  const route = { name, path, members: memberNames(endpoint), isProbe: PROBES.has(path) || path === "/metrics" };
  const serve = (request: Request, params: RawParameters) =>
    door.serve(route, request, (exchange) => answer(exchange, params));
  // The router allocates a parameter object per request. Routes without parameters avoid that.
  if (path.includes(":")) app.route(method, path, ({ request, params }) => serve(request, params));
  else app.route(method, path, ({ request }) => serve(request, NO_PARAMETERS));
}

const NO_PARAMETERS: RawParameters = {};

/** The socket in front of the routes. */
class Listener {
  private server: Bun.Server<undefined> | null = null;
  private stopped: Promise<void> | null = null;
  /** Requests without an answer so far. */
  private unanswered = 0;
  private onAnswered: (() => void) | null = null;

  constructor(
    private readonly ports: DoorPorts,
    private readonly callers: CallerAddresses,
    private readonly answer: (request: Request) => Promise<Response>,
    /** For how many seconds connections may stay silent while a path is served, where that is longer. */
    private readonly slow: ReadonlyMap<string, number>,
  ) {}

  async listen(at: ListenAt): Promise<{ url: string; port: number }> {
    const server = Bun.serve({
      hostname: at.host,
      port: at.port,
      fetch: (request, listening) => {
        // No byte is sent while the export's file is being written.
        const seconds = this.slow.get(readPath(request.url));
        if (seconds !== undefined) listening.timeout(request, seconds);
        return this.answerCounted(request);
      },
      // Bun answers its own 413 without a body and closes the connection, so the routes enforce the limit themselves.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      idleTimeout: CONNECTION_IDLE_SECONDS,
      // Explicit, because otherwise a port that another process holds would be shared silently.
      reusePort: at.isShared === true,
      development: false,
      error: (error) => this.lastResort(error),
    });
    this.server = server;
    this.callers.listensOn(server);
    const port = server.port ?? at.port;
    return { url: httpOrigin(at.host, port), port };
  }

  stop(): Promise<void> {
    this.stopped ??= this.drain();
    return this.stopped;
  }

  private async drain(): Promise<void> {
    if (this.server === null) return;
    const { server } = this;
    const bound = { clock: this.ports.clock, ms: limits.drainMs, late: () => undefined };
    // Bun waits for every open connection, even one whose caller never finishes sending a refused body.
    await within(bound, (over) => Promise.race([server.stop(false), this.allAnswered(over)]));
    await server.stop(true);
  }

  private async answerCounted(request: Request): Promise<Response> {
    this.unanswered += 1;
    try {
      const answer = await this.answer(request);
      // Clients with persistent connections reconnect elsewhere, before this connection closes under a request (RFC 9112, 9.6).
      if (this.ports.whenDraining?.aborted === true) answer.headers.set("connection", "close");
      return answer;
    } finally {
      this.unanswered -= 1;
      if (this.unanswered === 0) this.onAnswered?.();
    }
  }

  /** Resolves once every request is answered and the last answers have had time to leave. */
  private async allAnswered(signal: AbortSignal): Promise<void> {
    while (this.unanswered > 0) await new Promise<void>((resolve) => (this.onAnswered = resolve));
    await sleep(this.ports.clock, LAST_ANSWERS_MS, signal);
    if (this.unanswered > 0) await this.allAnswered(signal);
  }

  /** For errors that escape the routes; each one is a bug. */
  private lastResort(error: Error): Response {
    const requestId = this.ports.jobIds.next();
    this.ports.telemetry.log("error", "a request broke the server", {
      request_id: requestId,
      error: error.stack ?? error.message,
    });
    const headers = {
      "content-type": "application/json",
      "x-request-id": requestId,
      "x-content-type-options": "nosniff",
      "x-error-code": "internal_error" satisfies ErrorCode,
    };
    return new Response('{"error":"internal error"}', { status: 500, headers });
  }
}

const LAST_ANSWERS_MS = 250;

/**
 * Answers what no route matches: HEAD (as its GET, without the body), OPTIONS, methods that the path does not support (405 with
 * `Allow`, RFC 9110, 15.5.6), and unknown addresses (404). Browsers get pages at `/` and at unknown addresses.
 */
class Unrouted {
  private readonly hasOperators: boolean;
  private readonly methodsByPath: readonly { readonly pattern: RegExp; readonly methods: readonly string[] }[];
  private readonly start: InLanguages<PageContent>;

  /** `get` answers a GET request. */
  constructor(
    private readonly door: FrontDoor,
    routes: readonly KnownRoute[],
    private readonly get: (request: Request) => Response | Promise<Response>,
  ) {
    this.hasOperators = routes.some(({ path }) => path.startsWith("/dash/api"));
    const methods = new Map<string, string[]>();
    for (const { path, method } of routes) methods.set(path, [...(methods.get(path) ?? []), method]);
    this.methodsByPath = Array.from(methods, ([path, known]) => ({ pattern: toPattern(path), methods: known }));
    this.start = startPage((path) => methods.has(path));
  }

  async answer(request: Request): Promise<Response> {
    const path = readPath(request.url);
    const methods = this.methodsByPath.find(({ pattern }) => pattern.test(path))?.methods ?? [];
    if (request.method === "HEAD" && methods.includes("GET")) return this.head(request);
    return this.door.serve({ name: "unrouted" }, request, async (exchange) => {
      await this.guard(exchange, path);
      if (methods.length === 0) return this.nothingAt(exchange, path);
      const allow = formatAllow(methods);
      if (request.method === "OPTIONS") return exchange.body(204, null, { allow });
      const error = `${path} does not take ${request.method.slice(0, 20)}: it takes ${allow}`;
      return exchange.error(new ApiError(405, error), undefined, { allow });
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
    const { status, headers: answered, body } = await this.get(asGet);
    // An answer that does not end would wait for a reader.
    await body?.cancel();
    return new Response(null, { status, headers: answered });
  }

  /** Operator addresses are not revealed to strangers, and a tenant's stray request counts like any other. */
  private async guard(exchange: Exchange, path: string): Promise<void> {
    const isOperators = this.hasOperators && (path === "/dash/api" || path.startsWith("/dash/api/"));
    if (isOperators) return void this.door.requireOperator(exchange);
    if (!path.startsWith("/v1/")) return;
    const holder = await this.door.findHolder(exchange);
    if (holder !== null) await this.door.admit(exchange, holder.tenant);
  }
}

/** Addresses that only programs call, whatever they accept. */
const OF_PROGRAMS = /^\/(?:v1|dash\/api|webhook|wallet)(?:\/|$)/;

function toPattern(path: string): RegExp {
  const segments = path.split("/").map((segment) => (segment.startsWith(":") ? "[^/]+" : RegExp.escape(segment)));
  return new RegExp(`^${segments.join("/")}$`);
}

function formatAllow(methods: readonly string[]): string {
  const head = methods.includes("GET") ? ["HEAD"] : [];
  return [...methods, ...head, "OPTIONS"].join(", ");
}
