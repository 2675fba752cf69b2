/**
 * The load driver, a separate process: `bun bench/load/driver.ts` reads a `Load` as JSON and prints a `LoadResult` as
 * JSON.
 *
 * It speaks HTTP/1.1 over plain sockets with prepared requests, and so uses as little of the shared cores as possible.
 * With a rate the loop is open: a request is due at its time whether or not earlier ones were answered, and its latency
 * is counted from then. Without a rate, each connection sends as soon as it has its answer (a closed loop).
 */
import { type LatencySummary, round, summarise } from "./latency.ts";

export interface Load {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  /** `%n%` stands for one of `VARIANTS` numbers, so no two consecutive requests are equal. */
  readonly body: string;
  /** Requests rotate through them. */
  readonly apiKeys: readonly string[];
  readonly connections: number;
  readonly seconds: number;
  /** Requests per second, or null: as fast as they are answered. */
  readonly rate: number | null;
  /** Initial time that does not count. */
  readonly warmUpSeconds: number;
  /** Ends after this many answers, however long that takes. Needs a null rate; every request counts. */
  readonly requests?: number;
}

export interface LoadResult {
  readonly accepted: number;
  readonly refused: number;
  readonly perSecond: number;
  readonly latencyMs: LatencySummary;
  /** When the first request was sent, on the clock of `Date.now`. */
  readonly startedAtMs: number;
  /** CPU time of the driver. */
  readonly cpuMs: number;
}

const VARIANTS = 1_000;

class Connection {
  private socket: Bun.Socket<undefined> | null = null;
  private received = "";
  private dueAtMs = 0;
  isFree = true;

  constructor(private readonly run: Run) {}

  async open(host: string, port: number): Promise<void> {
    this.socket = await Bun.connect({
      hostname: host,
      port,
      socket: {
        data: (_socket, chunk) => this.read(chunk),
        close: () => this.run.broke(),
        error: () => this.run.broke(),
      },
    });
  }

  send(request: Uint8Array, dueAtMs: number): void {
    this.isFree = false;
    this.dueAtMs = dueAtMs;
    this.socket?.write(request);
  }

  close(): void {
    this.socket?.end();
  }

  private read(chunk: Uint8Array): void {
    if (this.received === "" && chunk.length < SHORT_ANSWER_BYTES && isWholeAccept(chunk)) return this.settle("202");
    this.received += Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString("latin1");
    const headEnd = this.received.indexOf("\r\n\r\n");
    if (headEnd === -1) return;
    const length = Number(/content-length: (\d+)/i.exec(this.received)?.[1] ?? 0);
    if (this.received.length < headEnd + 4 + length) return;
    const status = this.received.slice(9, 12);
    this.received = "";
    this.settle(status);
  }

  private settle(status: string): void {
    this.isFree = true;
    this.run.answered(this, status, this.dueAtMs);
  }
}

/** Longer answers come in several chunks, any of which may end with a brace. */
const SHORT_ANSWER_BYTES = 1_024;

/** Whether the chunk is a complete 202 with a JSON object, which is the usual case: "HTTP/1.1 202 …}". */
function isWholeAccept(chunk: Uint8Array): boolean {
  return chunk[9] === 0x32 && chunk[10] === 0x30 && chunk[11] === 0x32 && chunk.at(-1) === 0x7d;
}

class Run {
  private readonly requests: readonly Uint8Array[];
  private readonly latenciesMs: number[] = [];
  private readonly connections: Connection[];
  private readonly free: Connection[] = [];
  private next = 0;
  private accepted = 0;
  private refused = 0;
  private startedMs = 0;
  private countFromMs = 0;
  private endMs = 0;
  private unanswered = 0;

  constructor(private readonly load: Load) {
    const variants = load.body.includes("%n%") ? VARIANTS : 1;
    const count = Math.ceil(Math.max(load.apiKeys.length, variants) / load.apiKeys.length) * load.apiKeys.length;
    this.requests = Array.from({ length: count }, (_, i) => {
      const body = load.body.replaceAll("%n%", String(i % variants).padStart(4, "0"));
      return new TextEncoder().encode(
        `POST ${load.path} HTTP/1.1\r\nHost: ${load.host}:${load.port}\r\n` +
          `X-API-Key: ${load.apiKeys[i % load.apiKeys.length]}\r\n` +
          `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      );
    });
    this.connections = Array.from({ length: load.connections }, () => new Connection(this));
  }

  async result(): Promise<LoadResult> {
    const { host, port, seconds, warmUpSeconds, rate } = this.load;
    for (const connection of this.connections) await connection.open(host, port);
    this.startedMs = performance.now();
    const startedAtMs = Date.now();
    const { requests } = this.load;
    this.countFromMs = this.startedMs + warmUpSeconds * 1000;
    this.endMs = requests === undefined ? this.countFromMs + seconds * 1000 : Number.POSITIVE_INFINITY;
    if (rate === null) for (const connection of this.connections) this.sendOn(connection, performance.now());
    else this.free.push(...this.connections);
    if (rate !== null) await this.sendAtRate(rate);
    while (performance.now() < this.endMs || this.unanswered > 0) await Bun.sleep(5);
    for (const connection of this.connections) connection.close();
    const lastedSeconds = requests === undefined ? seconds : (this.endMs - this.startedMs) / 1000;
    const perSecond = Math.round(this.accepted / lastedSeconds);
    const { user, system } = process.cpuUsage();
    return {
      accepted: this.accepted,
      refused: this.refused,
      perSecond,
      latencyMs: summarise(this.latenciesMs),
      startedAtMs,
      cpuMs: (user + system) / 1000,
    };
  }

  answered(connection: Connection, status: string, dueAtMs: number): void {
    const nowMs = performance.now();
    this.unanswered -= 1;
    if (nowMs >= this.countFromMs && nowMs < this.endMs) {
      if (status === "202") this.accepted += 1;
      else this.refused += 1;
      this.latenciesMs.push(nowMs - dueAtMs);
      if (this.latenciesMs.length === this.load.requests) this.endMs = nowMs;
    }
    if (this.load.rate !== null) this.free.push(connection);
    else if (nowMs < this.endMs) this.sendOn(connection, nowMs);
  }

  broke(): void {
    if (performance.now() < this.endMs) throw new Error("the server closed a connection");
  }

  private sendOn(connection: Connection, dueAtMs: number): void {
    const request = this.requests[this.next % this.requests.length];
    if (request === undefined || this.next === this.load.requests) return;
    this.next += 1;
    this.unanswered += 1;
    connection.send(request, dueAtMs);
  }

  /** Requests that find no free connection wait, and their wait counts. */
  private async sendAtRate(rate: number): Promise<void> {
    for (let sent = 0; ; ) {
      const nowMs = performance.now();
      if (nowMs >= this.endMs) return;
      for (; this.dueAt(sent, rate) <= nowMs && this.free.length > 0; sent += 1) {
        // The one that has been idle longest; otherwise the server would eventually close it.
        const connection = this.free.shift();
        if (connection !== undefined) this.sendOn(connection, this.dueAt(sent, rate));
      }
      await Bun.sleep(1);
    }
  }

  private dueAt(index: number, rate: number): number {
    return this.startedMs + (index * 1000) / rate;
  }
}

/** Runs a load in a separate process. */
export async function drive(load: Load): Promise<LoadResult> {
  const child = Bun.spawn([process.execPath, import.meta.path], {
    // Thousands of keys do not fit into an argument.
    stdin: new Blob([JSON.stringify(load)]),
    stdout: "pipe",
    stderr: "inherit",
  });
  const text = await child.stdout.text();
  if ((await child.exited) !== 0) throw new Error("the load driver failed");
  // The child prints a result of this form, with null for figures without measurements.
  return JSON.parse(text, (_, value) => (value === null ? Number.NaN : value)) as LoadResult;
}

if (import.meta.main) {
  // `drive` passes a load of this form.
  const load = JSON.parse(await Bun.stdin.text()) as Load;
  console.log(JSON.stringify(await new Run(load).result()));
}

export function describeLatency({ p50, p99 }: Pick<LatencySummary, "p50" | "p99">): string {
  return `${round(p50)} / ${round(p99)} ms`;
}
