import {
  type Call,
  type ContentError,
  type ErrorBody,
  OPERATIONS,
  type Operations,
  type Problem,
} from "./generated.ts";

/** The service's address and the behaviour of calls. */
export interface ConnectionOptions {
  /** The service's address, such as `https://messages.example.com`. */
  readonly url: string;
  /** Sends the requests; by default the platform's `fetch`. */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
  /** How long one attempt may take; 30 seconds by default. */
  readonly timeoutMs?: number;
  /** How often a call is repeated, beside the first attempt; 3 by default. */
  readonly retries?: number;
  /** Waits between attempts. Rejects when the signal aborts. */
  readonly sleep?: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/** Options of a single call. */
export interface CallOptions {
  /** Ends the call, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

export interface SendOptions extends CallOptions {
  /**
   * Sends with the same key and the same body are one send, for 24 hours. By default each call has a key of its own, which
   * keeps its retries from sending twice. 1 to 255 printable ASCII characters.
   */
  readonly idempotencyKey?: string;
}

/** An operation's path, query and body. */
export type Input<N extends keyof Operations> = Omit<Operations[N], "answer">;
export type Answer<N extends keyof Operations> = Operations[N]["answer"];
export type Body<N extends keyof Operations> = Operations[N] extends { body: infer B }
  ? B
  : "body" extends keyof Operations[N]
    ? NonNullable<Operations[N]["body"]>
    : never;
export type Query<N extends keyof Operations> = Operations[N] extends { query?: infer Q } ? Q : never;

/** The operations that answer a page of a list. */
export type Paged = { [N in keyof Operations]: Answer<N> extends Page ? N : never }[keyof Operations];

interface Page {
  /** Null or 0: this is the last page. */
  readonly next_cursor: string | number | null;
}

/**
 * The status in words; `no_answer`, `timeout`, `bad_answer` and `redirected` mean that there is no valid answer from the
 * service.
 */
export type ErrorCode =
  | (typeof CODES)[keyof typeof CODES]
  | "http_error"
  | "no_answer"
  | "timeout"
  | "bad_answer"
  | "redirected";

const CODES = {
  400: "bad_request",
  401: "unauthorized",
  402: "payment_required",
  403: "forbidden",
  404: "not_found",
  405: "method_not_allowed",
  408: "request_timeout",
  409: "conflict",
  413: "too_large",
  415: "unsupported_encoding",
  422: "unprocessable",
  429: "too_many_requests",
  500: "internal_error",
  503: "unavailable",
} as const;

interface Failure {
  /** Null: there was no answer. */
  readonly status: number | null;
  readonly code: ErrorCode;
  /**
   * The service's own code for the refusal, more specific than `code`, such as `domain_not_verified`. The reference lists them;
   * later releases have more. Null: the service gave none, or is older than 1.1.
   */
  readonly reason: string | null;
  /** The member or parameter that is wrong, such as `fallback[0].send.subject`; null: none, or the service did not name it. */
  readonly param: string | null;
  /** Names the request in the service's log; null: there was no answer. */
  readonly requestId: string | null;
  readonly retryAfterSeconds: number | null;
  /** Why inline HTML was refused; otherwise empty. */
  readonly violations: NonNullable<ContentError["violations"]>;
  /** The key of a send, also one that the client generated: with it and the same body, the send can be repeated safely. */
  readonly idempotencyKey: string | null;
}

/** A call that failed, after its last attempt. */
export class WaybillError extends Error implements Failure {
  override readonly name = "WaybillError";
  readonly status: Failure["status"];
  readonly code: Failure["code"];
  readonly reason: Failure["reason"];
  readonly param: Failure["param"];
  readonly requestId: Failure["requestId"];
  readonly retryAfterSeconds: Failure["retryAfterSeconds"];
  readonly violations: Failure["violations"];
  readonly idempotencyKey: Failure["idempotencyKey"];

  constructor(message: string, failure: Partial<Failure> & Pick<Failure, "code">, cause?: unknown) {
    super(message, { cause });
    this.status = failure.status ?? null;
    this.code = failure.code;
    this.reason = failure.reason ?? null;
    this.param = failure.param ?? null;
    this.requestId = failure.requestId ?? null;
    this.retryAfterSeconds = failure.retryAfterSeconds ?? null;
    this.violations = failure.violations ?? [];
    this.idempotencyKey = failure.idempotencyKey ?? null;
  }

  /** The same failure, of a send with this key. */
  withKey(idempotencyKey: string | null): WaybillError {
    const { message, code, reason, param, status, requestId, retryAfterSeconds, violations, cause } = this;
    const failure = { code, reason, param, status, requestId, retryAfterSeconds, violations, idempotencyKey };
    return new WaybillError(message, failure, cause);
  }
}

/**
 * Errors are problems (RFC 9457), which name the member that is wrong; an older service answers with its former error bodies.
 */
const ACCEPT = "application/json, application/problem+json, */*;q=0.5";

const TIMEOUT_MS = 30_000;
const RETRIES = 3;
const BACKOFF_MS = 500;
const BACKOFF_MAX_MS = 8_000;
/** A call is not repeated if the service requests a longer wait. Within a rate window it requests up to 60 s. */
const RETRY_AFTER_MAX_SECONDS = 120;
/** Statuses that leave the effect of a call unknown: the service's own failure, and proxies' codes for a missing answer. */
const UNKNOWN_STATUSES: readonly number[] = [500, 502, 503, 504, 520, 521, 522, 523, 524];

/** Calls operations, and repeats a call while that may help and is safe. */
export class Calls {
  readonly sleep: NonNullable<ConnectionOptions["sleep"]>;
  private readonly base: string;
  private readonly fetch: NonNullable<ConnectionOptions["fetch"]>;
  private readonly timeoutMs: number;
  private readonly retries: number;

  /** `credentials`: the header that identifies the caller. */
  constructor(
    options: ConnectionOptions,
    private readonly credentials: Readonly<Record<string, string>>,
  ) {
    for (const value of Object.values(credentials)) {
      // Never in the message: it may be most of a key.
      if (!/^[!-~]+( [!-~]+)?$/.test(value))
        throw new TypeError("a key is printable ASCII without blanks; this one is not");
    }
    this.base = new URL(options.url).href.replace(/\/+$/, "");
    this.fetch = options.fetch ?? ((url, init) => fetch(url, init));
    this.timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    this.retries = options.retries ?? RETRIES;
    this.sleep = options.sleep ?? sleep;
  }

  /** Rejects with a `WaybillError`, or with the signal's reason. */
  async call<N extends keyof Operations>(name: N, input: Input<N>, options: SendOptions = {}): Promise<Answer<N>> {
    const operation = OPERATIONS[name];
    const url = `${this.base}${fillPath(operation.path, input)}${formatQuery(input)}`;
    const idempotencyKey = keyFor(operation, options);
    const init = this.buildRequest(operation, input, idempotencyKey);
    for (let retries = 0; ; retries++) {
      try {
        // The API document declares the operation's answer.
        return (await this.attempt(operation, url, init, options)) as Answer<N>;
      } catch (error) {
        const waitMs = retries < this.retries ? retryDelayMs(operation, error, retries) : null;
        if (waitMs === null) throw error instanceof WaybillError ? error.withKey(idempotencyKey) : error;
        await this.sleep(waitMs, options.signal);
      }
    }
  }

  /** Returns a list that makes no calls until it is iterated over. */
  list<N extends Paged, T>(
    name: N,
    input: Input<N>,
    itemsOf: (page: Answer<N>) => readonly T[],
    options?: CallOptions,
  ): Listing<T, Answer<N>> {
    const pageAt = (cursor: Page["next_cursor"]) =>
      this.call(name, cursor ? { ...input, query: { ...readMember(input, "query"), cursor } } : input, options);
    return new Listing(pageAt, itemsOf);
  }

  private buildRequest({ method, sends }: Call, input: object, idempotencyKey: string | null): RequestInit {
    const headers: Record<string, string> = { ...this.credentials, accept: ACCEPT };
    // One key for all attempts makes a send safe to repeat.
    if (idempotencyKey !== null) headers["idempotency-key"] = idempotencyKey;
    const body = readMember(input, "body");
    // Followed, a redirect would show the key to another host, and make a GET of a POST.
    const common = { method, headers, redirect: "manual" } as const;
    if (body === undefined) return common;
    headers["content-type"] = sends ?? "application/json";
    // Operations whose body is not JSON take it as bytes or text.
    return {
      ...common,
      body: sends === undefined ? JSON.stringify(body) : (body as string | Uint8Array<ArrayBuffer>),
    };
  }

  private async attempt({ streams }: Call, url: string, init: RequestInit, { signal }: CallOptions): Promise<unknown> {
    signal?.throwIfAborted();
    const deadline = new AbortController();
    const timer = setTimeout(() => deadline.abort(), this.timeoutMs);
    try {
      const signals = signal === undefined ? [deadline.signal] : [deadline.signal, signal];
      const response = await this.fetch(url, { ...init, signal: AbortSignal.any(signals) });
      if (isRedirect(response)) throw redirected(response);
      // A file may take longer than an answer may: from here on, only the caller ends it.
      if (response.ok && streams) return response.body;
      const text = await response.text();
      if (!response.ok) throw toError(response, text);
      return response.status === 204 || text === "" ? null : parsed(response, text);
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof WaybillError) throw error;
      if (!deadline.signal.aborted) throw new WaybillError(`no answer: ${String(error)}`, { code: "no_answer" }, error);
      throw new WaybillError(`no answer within ${this.timeoutMs} ms`, { code: "timeout" }, error);
    } finally {
      clearTimeout(timer);
    }
  }
}

/** A list that comes in pages. Iterate over it for its items, or over its `pages()`. */
export class Listing<T, P extends Page> implements AsyncIterable<T> {
  constructor(
    private readonly pageAt: (cursor: Page["next_cursor"]) => Promise<P>,
    private readonly itemsOf: (page: P) => readonly T[],
  ) {}

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const page of this.pages()) yield* this.itemsOf(page);
  }

  async *pages(): AsyncGenerator<P, void, undefined> {
    let cursor: Page["next_cursor"] = null;
    do {
      const page: P = await this.pageAt(cursor);
      yield page;
      cursor = page.next_cursor;
    } while (cursor);
  }
}

/** Null: the operation has no Idempotency-Key. */
function keyFor({ repeat }: Call, { idempotencyKey = crypto.randomUUID() }: SendOptions): string | null {
  if (repeat !== "with_key") return null;
  if (!/^[ -~]{1,255}$/.test(idempotencyKey)) {
    throw new TypeError("an idempotencyKey is 1 to 255 printable ASCII characters; leave it out for one of its own");
  }
  return idempotencyKey;
}

/** Browsers hide the status of a redirect that is not followed; a `fetch` of the caller's may have followed it. */
function isRedirect({ type, status, redirected: wasFollowed }: Response): boolean {
  return type === "opaqueredirect" || wasFollowed || (status >= 300 && status < 400);
}

function redirected({ status, headers }: Response): WaybillError {
  const target = headers.get("location");
  const where = target === null ? "elsewhere" : `to ${target.slice(0, 200)}`;
  const message = `the answer is a redirect ${where}, which is not followed: is the URL right?`;
  return new WaybillError(message, { status: status === 0 ? null : status, code: "redirected" });
}

/** Returns the wait before the next attempt, or null if the call must not be repeated or would fail again. */
function retryDelayMs({ repeat }: Call, error: unknown, retries: number): number | null {
  if (!(error instanceof WaybillError)) return null;
  const { status, retryAfterSeconds } = error;
  // The service refuses before it does anything. Its own 503 always names a time; a proxy's may come after it passed the
  // request on.
  const isRefused = status === 429 || (status === 503 && retryAfterSeconds !== null);
  const isUnknown = error.code === "no_answer" || error.code === "timeout" || UNKNOWN_STATUSES.includes(status ?? 0);
  if (!isRefused && !(isUnknown && repeat !== "unsafe")) return null;
  if (retryAfterSeconds !== null) return retryAfterSeconds > RETRY_AFTER_MAX_SECONDS ? null : retryAfterSeconds * 1000;
  const backoffMs = Math.min(BACKOFF_MAX_MS, BACKOFF_MS * 2 ** retries);
  return backoffMs * (0.5 + Math.random() / 2);
}

function toError({ status, headers }: Response, text: string): WaybillError {
  const body = parseJson(text) as Partial<ErrorBody & ContentError & Problem> | undefined;
  const retryAfter = headers.get("retry-after");
  const code = Object.entries(CODES).find(([known]) => Number(known) === status)?.[1] ?? "http_error";
  return new WaybillError(body?.detail ?? body?.error ?? `the service answered ${status}`, {
    status,
    code,
    reason: headers.get("x-error-code"),
    param: body?.param ?? null,
    requestId: headers.get("x-request-id"),
    retryAfterSeconds: retryAfter !== null && /^\d+$/.test(retryAfter) ? Number(retryAfter) : null,
    violations: body?.violations ?? [],
  });
}

function parsed({ status, headers }: Response, text: string): unknown {
  const value = parseJson(text);
  if (value !== undefined) return value;
  const requestId = headers.get("x-request-id");
  throw new WaybillError("the answer is not JSON: is the URL right?", { status, code: "bad_answer", requestId });
}

/** Undefined: it is not JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function fillPath(path: string, input: object): string {
  const values = readMember(input, "path") ?? {};
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = String(readMember(values, name) ?? "");
    // These would change the path to another operation's.
    if (/^\.{0,2}$/.test(value)) throw new TypeError(`"${value}" cannot be the ${name} in ${path}`);
    return encodeURIComponent(value);
  });
}

function formatQuery(input: object): string {
  const given = Object.entries(readMember(input, "query") ?? {}).filter(([, value]) => value !== undefined);
  return given.length === 0
    ? ""
    : `?${new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)]))}`;
}

function readMember(of: object, name: string): object | undefined {
  return Reflect.get(of, name);
}

function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const aborted = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", aborted);
      resolve();
    }, ms);
    signal?.addEventListener("abort", aborted, { once: true });
    if (signal?.aborted === true) aborted();
  });
}
