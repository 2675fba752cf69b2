import { createHash, timingSafeEqual } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { ClickHouseAddress } from "../../domain/jobs/event-store.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import { isLoopback, isOfWebPage, readHostHeader } from "../../domain/texts/host.ts";
import { AnalystRelay } from "../analysts/analyst-relay.ts";
import { analystLimits } from "../limits.ts";
import { clickHouseHttpQuery } from "./clickhouse-http-request.ts";
import { EngineError } from "./engine-error.ts";

export interface ClickHouseHttpOptions {
  /** The server that runs statements, with a user who can only read. */
  readonly server: ClickHouseAddress;
  /** The database for unqualified names. */
  readonly database: string;
  /** 0 picks a free port. */
  readonly port: number;
  readonly password: string;
  readonly telemetry: Telemetry;
}

export interface ClickHouseHttp {
  readonly url: string;
  /** Ends the running statements and stops; call it before closing the engine. Safe to call twice. */
  stop(): Promise<void>;
}

/**
 * Serves the private server to analysts over ClickHouse's HTTP protocol, read-only and on loopback: enough of it for
 * curl, `@clickhouse/client` and tools that use a driver. Rejects if the port is taken.
 *
 * Analysts must not use the server's own port. Its access rights do not cover everything that a statement can do:
 * settings within a sub-select are not checked, and with one of them a SELECT writes a file, even over a table's own
 * (seen with ClickHouse 26.7 in chDB 3.4).
 *
 * Anyone with the password can read the event store. A web page in a browser on this machine cannot even try a
 * password: its requests carry its origin or site, or a host name other than this machine's.
 */
export async function serveClickHouseHttp(options: ClickHouseHttpOptions): Promise<ClickHouseHttp> {
  const { database, port, telemetry } = options;
  const relay = await AnalystRelay.open(options.server);
  const password = new AnalystPassword(options.password);
  const scope = { database, unavailable: relay.unavailable };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port,
    maxRequestBodySize: analystLimits.analystRequestBytesMax + 1,
    async fetch(request, self) {
      const startedMs = performance.now();
      const answer = await answerTo(request, self.port, async () => {
        await password.check(request);
        const query = await clickHouseHttpQuery(request, scope);
        // A statement may run for longer than the idle timeout; up to this point, a slow request is refused.
        self.timeout(request, 0);
        return relay.run({ ...query, signal: request.signal });
      });
      telemetry.time("analyst_query_seconds", (performance.now() - startedMs) / 1000, {
        status: String(answer.status),
      });
      return answer;
    },
    error: () => new Response("Code: 1002. DB::Exception: (UNKNOWN_EXCEPTION)\n", { status: 500 }),
  });
  let stopped: Promise<unknown> | null = null;
  return {
    url: `http://127.0.0.1:${server.port}`,
    async stop() {
      relay.stop();
      stopped ??= server.stop(true);
      await stopped;
    },
  };
}

const OK = "Ok.\n";

async function answerTo(request: Request, port: number | undefined, run: () => Promise<Response>): Promise<Response> {
  const refused = refusal(request, port);
  if (refused !== null) return refused;
  const { pathname, searchParams } = new URL(request.url);
  if (pathname === "/ping" || pathname === "/replicas_status") return new Response(OK);
  if (pathname !== "/") return new Response(`There is no handle ${pathname}\n`, { status: 404 });
  if (request.method !== "POST" && !searchParams.has("query")) return new Response(OK);
  try {
    return await run();
  } catch (error) {
    return failure(error);
  }
}

/** Returns the refusal that is possible before reading more of the request, or null. */
function refusal({ headers, method }: Request, port: number | undefined): Response | null {
  const at = readHostHeader(headers.get("host") ?? "");
  // Only this name: another name may also resolve to this address and belong to a web page.
  if (!isLoopback(at.host) || at.port !== port)
    return new Response("This address is served under loopback names and its own port only\n", { status: 403 });
  if (isOfWebPage(headers)) return new Response("Web pages are not served\n", { status: 403 });
  if (["GET", "HEAD", "POST"].includes(method)) return null;
  return new Response("The method can be GET, HEAD or POST\n", { status: 405, headers: { allow: "GET, HEAD, POST" } });
}

function failure(cause: unknown): Response {
  const error = EngineError.from(cause);
  const headers = new Headers({
    "content-type": "text/plain; charset=UTF-8",
    "x-clickhouse-exception-code": String(error.code),
  });
  if (error.status === 503) headers.set("retry-after", "1");
  return new Response(`${error.message}\n`, { status: error.status, headers });
}

/** The delay before a wrong password is answered, and how many requests with wrong ones may wait. */
const WRONG_MS = 200;
const WRONG_WAITING_MAX = 16;

/** The names of the only user; none at all is accepted, too. */
const USERS: ReadonlySet<string> = new Set(["", "default", "waybill"]);

/** Checks the password of the analysts' port, however ClickHouse's HTTP protocol carries it. */
class AnalystPassword {
  private readonly digest: Buffer;
  private wrong: Promise<void> = Promise.resolve();
  private waiting = 0;

  constructor(password: string) {
    this.digest = computeDigest(password);
  }

  /**
   * If the password is wrong or missing, rejects with `EngineError` after a delay. Requests with wrong passwords wait
   * one after the other.
   */
  async check(request: Request): Promise<void> {
    if (this.isRight(readCredentials(request))) return;
    if (this.waiting >= WRONG_WAITING_MAX) throw BUSY;
    this.waiting += 1;
    this.wrong = this.wrong.then(() => delay(WRONG_MS));
    await this.wrong;
    this.waiting -= 1;
    throw WRONG;
  }

  /** Whether every credential in the request is right. */
  private isRight({ users, passwords }: Credentials): boolean {
    const right = passwords.filter((password) => timingSafeEqual(computeDigest(password), this.digest));
    return passwords.length > 0 && right.length === passwords.length && users.every((user) => USERS.has(user));
  }
}

interface Credentials {
  readonly users: readonly string[];
  readonly passwords: readonly string[];
}

function readCredentials(request: Request): Credentials {
  const asked = new URL(request.url).searchParams;
  const basic = /^Basic +([\w+/=-]+)$/i.exec(request.headers.get("authorization") ?? "")?.[1];
  const [, user, password] = /^([^:]*):([^]*)$/.exec(Buffer.from(basic ?? "", "base64").toString()) ?? [];
  return {
    users: given(asked.get("user"), request.headers.get("x-clickhouse-user"), user),
    // A client may send an empty one in its headers and the real one in the URL.
    passwords: given(asked.get("password"), request.headers.get("x-clickhouse-key"), password).filter(Boolean),
  };
}

const given = (...values: readonly (string | null | undefined)[]) =>
  values.filter((value) => value !== null && value !== undefined);

/** Digests have equal length, so the comparison takes the same time for all. */
const computeDigest = (text: string) => createHash("sha256").update(text).digest();

const WRONG = new EngineError(
  516,
  "AUTHENTICATION_FAILED",
  "default: Authentication failed: password is incorrect, or there is no user with such name",
);
const BUSY = new EngineError(202, "TOO_MANY_SIMULTANEOUS_QUERIES", "Too many wrong passwords at once: try again soon");
