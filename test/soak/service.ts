import { closeSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { basicEnvironment } from "../support/basic-environment.ts";
import { isAlive } from "../support/is-alive.ts";
import type { FaultLog } from "./fault-log.ts";

const ROOT = join(import.meta.dir, "../..");
const CLOCK = join(import.meta.dir, "stepped-clock.ts");
const READY_MS = 120_000;
/** A program that cannot start, as on a full disk, is started again after this time, as by a service manager. */
const RESTART_MS = 1_000;
const WATCH_MS = 250;

export interface ServiceOptions {
  /** Its name in the log of faults and in its log files. */
  readonly name: string;
  readonly home: string;
  readonly port: number;
  readonly logs: string;
  /** Read at each start, because the keys in it are rotated. */
  environment(): Readonly<Record<string, string>>;
  readonly faults: FaultLog;
}

/** The program under an operator's service manager, which starts it again whenever it has ended. */
export class Service {
  /** How often it ended unexpectedly. */
  deaths = 0;
  private child: Bun.Subprocess | null = null;
  private starts = 0;
  /** It is down on purpose. */
  private isHeld = true;
  private watching: Promise<void> | null = null;
  private isOver = false;

  constructor(private readonly options: ServiceOptions) {}

  get name(): string {
    return this.options.name;
  }

  get url(): string {
    return `http://127.0.0.1:${this.options.port}`;
  }

  get pid(): number {
    return this.child?.pid ?? 0;
  }

  get isUp(): boolean {
    return this.child !== null && this.child.exitCode === null && this.child.signalCode === null && isAlive(this.pid);
  }

  /** Starts and supervises it. */
  async start(): Promise<void> {
    this.isHeld = false;
    this.spawn();
    await this.untilReady();
    this.watching ??= this.watch();
  }

  /** Resolves with the time until `/ready` confirms it. */
  async untilReady(withinMs = READY_MS): Promise<number> {
    const fromMs = performance.now();
    while (performance.now() - fromMs < withinMs) {
      if (await this.isReady()) return performance.now() - fromMs;
      await Bun.sleep(100);
    }
    throw new Error(
      `${this.options.name} is not ready within ${withinMs / 1000} s: see its log in ${this.options.logs}`,
    );
  }

  async isReady(): Promise<boolean> {
    const signal = AbortSignal.timeout(2_000);
    const answer = await fetch(`${this.url}/ready`, { signal, keepalive: false }).catch(() => null);
    await answer?.arrayBuffer().catch(() => undefined);
    return answer?.status === 200;
  }

  /** `kill -9`; the supervision starts it again. */
  async kill(): Promise<void> {
    this.child?.kill("SIGKILL");
    await this.child?.exited;
  }

  /** Replaces it as a deployment does: a stop signal, then a start with the environment of that moment. */
  async restart(): Promise<number> {
    const code = await this.stop();
    this.isHeld = false;
    this.spawn();
    await this.untilReady();
    return code;
  }

  async stop(): Promise<number> {
    this.isHeld = true;
    this.child?.kill("SIGCONT");
    this.child?.kill("SIGTERM");
    const code = (await this.child?.exited) ?? 0;
    return code;
  }

  /** Ends it and its supervision. */
  async end(): Promise<number> {
    this.isOver = true;
    await this.watching;
    return this.stop();
  }

  /** The processes of the start by name: `main`, `api-1`, …, and `redis` where it is a child of it. */
  processes(): ReadonlyMap<string, number> {
    const all = new Map<string, number>();
    if (!this.isUp) return all;
    all.set("main", this.pid);
    const { stdout } = Bun.spawnSync(["ps", "-ww", "-o", "pid=,args=", "--ppid", String(this.pid)]);
    for (const [, pid = "", args = ""] of stdout.toString().matchAll(/^\s*(\d+) (.*)$/gm)) {
      const name = args.includes("redis-server") ? "redis" : / child (\S+)$/.exec(args)?.[1];
      if (name !== undefined) all.set(name, Number(pid));
    }
    return all;
  }

  /** A connection to its own redis-server. */
  redis(): Redis {
    const redis = new Redis({
      path: join(this.options.home, "redis/redis.sock"),
      retryStrategy: () => 200,
      maxRetriesPerRequest: null,
    });
    redis.on("error", () => undefined);
    return redis;
  }

  /** The last lines that it logged. */
  lastWords(lines = 20): string {
    try {
      return readFileSync(this.logFile(), "utf8").trimEnd().split("\n").slice(-lines).join("\n");
    } catch {
      return "";
    }
  }

  private logFile(): string {
    return join(this.options.logs, `${this.options.name}-${String(this.starts).padStart(4, "0")}.log`);
  }

  private spawn(): void {
    this.starts += 1;
    mkdirSync(this.options.logs, { recursive: true });
    const log = openSync(this.logFile(), "a");
    this.child = Bun.spawn([process.execPath, "--preload", CLOCK, "src/main.ts"], {
      cwd: ROOT,
      env: {
        ...basicEnvironment(),
        WAYBILL_HOME: this.options.home,
        PORT: String(this.options.port),
        LOG_LEVEL: "warn",
        ...this.options.environment(),
      },
      stdin: "ignore",
      stdout: log,
      stderr: log,
    });
    closeSync(log);
  }

  private async watch(): Promise<void> {
    while (!this.isOver) {
      await Bun.sleep(WATCH_MS);
      if (this.isHeld || this.isUp) continue;
      const { exitCode = null, signalCode = null } = this.child ?? {};
      if (signalCode !== "SIGKILL") {
        this.deaths += 1;
        const span = this.options.faults.at("ended by itself", this.options.name, "died");
        span.note = `code ${exitCode ?? signalCode}: ${this.lastWords(3)}`;
      }
      await Bun.sleep(RESTART_MS);
      if (!this.isHeld && !this.isOver) this.spawn();
    }
  }
}
