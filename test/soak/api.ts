/** An answer; `status` 0: there was none. */
export interface ApiAnswer {
  readonly status: number;
  // The load reads only documented members.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any;
  readonly headers: Headers;
}

export interface CallOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 20_000;

/** Calls of tenants and operators, each over a connection of its own, so that any of the API processes may get it. */
export class Api {
  /** The number of answers by status. */
  readonly statuses = new Map<number, number>();
  /** The first words of each kind of 5xx answer. */
  readonly failures = new Map<string, number>();
  inFlight = 0;

  constructor(
    readonly url: string,
    private readonly operatorToken: string,
  ) {}

  tenant(apiKey: string, method: string, path: string, body?: unknown, options: CallOptions = {}): Promise<ApiAnswer> {
    return this.call(method, path, body, { ...options, headers: { "x-api-key": apiKey, ...options.headers } });
  }

  operator(method: string, path: string, body?: unknown, options: CallOptions = {}): Promise<ApiAnswer> {
    const headers = { authorization: `Bearer ${this.operatorToken}`, ...options.headers };
    return this.call(method, `/dash/api${path}`, body, { ...options, headers });
  }

  /** The body is sent as JSON, or unchanged if it is bytes. */
  async call(method: string, path: string, body: unknown, options: CallOptions): Promise<ApiAnswer> {
    const isRaw = body instanceof Uint8Array || typeof body === "string";
    const init: RequestInit = {
      method,
      keepalive: false,
      redirect: "manual",
      signal: AbortSignal.timeout(options.timeoutMs ?? TIMEOUT_MS),
      headers: { connection: "close", "content-type": "application/json", ...options.headers },
      ...(body === undefined ? {} : { body: isRaw ? (body as string) : JSON.stringify(body) }),
    };
    this.inFlight += 1;
    try {
      const response = await fetch(`${this.url}${path}`, init);
      const text = await response.text();
      const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
      if (response.status >= 500)
        this.note(`${response.status} ${method} ${path.replace(/[0-9a-f-]{30,}|\?.*/g, "…")}`);
      return this.counted({
        status: response.status,
        body: isJson ? JSON.parse(text) : text,
        headers: response.headers,
      });
    } catch {
      return this.counted({ status: 0, body: null, headers: new Headers() });
    } finally {
      this.inFlight -= 1;
    }
  }

  private counted(answer: ApiAnswer): ApiAnswer {
    this.statuses.set(answer.status, (this.statuses.get(answer.status) ?? 0) + 1);
    return answer;
  }

  private note(what: string): void {
    if (this.failures.size < 200 || this.failures.has(what))
      this.failures.set(what, (this.failures.get(what) ?? 0) + 1);
  }
}
