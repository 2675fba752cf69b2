import { type Clock, sleep, waitAtMost, within } from "../domain/clock.ts";
import type { Telemetry } from "../domain/telemetry.ts";

export interface ServerProcessOptions {
  /** As in "redis-server". */
  readonly name: string;
  /** The command line, with any prefix. */
  readonly command: readonly string[];
  readonly folder: string;
  /**
   * How its end is requested: by a signal, or by the end of its standard input, which also happens when this process
   * dies.
   */
  readonly endsBy: "signal" | "input";
  /** Resolves once it answers with its data loaded. Tries until then, or until `signal` aborts. */
  answers(signal: AbortSignal): Promise<void>;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

const LAST_LINES = 20;
/** Loading a large file takes minutes; a server silent for this long is considered hung. */
const READY_WAIT_MS = 10 * 60_000;
const STOP_WAIT_MS = 8_000;
/** A helper forked by the server can keep the log open after it exits; then the lines read so far must suffice. */
const LOG_WAIT_MS = 200;

/** One run of a private server, from start to exit. */
export class ServerProcess {
  /** Resolves once the process has exited and its last lines are read. Never rejects. */
  readonly exited: Promise<void>;
  private readonly child: Bun.Subprocess<"ignore" | "pipe", "pipe", "pipe">;
  private readonly lines: string[] = [];

  /** Starts the process; `ready` tells when it answers. Call it on the main thread (see `parent-death-signal.ts`). */
  constructor(private readonly options: ServerProcessOptions) {
    this.child = Bun.spawn([...options.command], {
      cwd: options.folder,
      stdin: options.endsBy === "input" ? "pipe" : "ignore",
      stdout: "pipe",
      stderr: "pipe",
      // It must not inherit our secrets.
      env: {},
      // Its own session: Ctrl-C on the terminal is for us, and it must outlive our drain.
      detached: true,
    });
    const endWithParent = () => this.child.kill("SIGKILL");
    process.on("exit", endWithParent);
    const log = Promise.all([this.read(this.child.stdout), this.read(this.child.stderr)]);
    this.exited = this.child.exited.then(async () => {
      process.off("exit", endWithParent);
      await waitAtMost(options.clock, LOG_WAIT_MS, log);
    });
  }

  get pid(): number {
    return this.child.pid;
  }

  /** How it ended: with a code, or by a signal; null: it is running. */
  get end(): string | number | null {
    return this.child.signalCode ?? this.child.exitCode;
  }

  /** Whether the server answered with its data loaded; false if it exited first, or was killed because it did not answer. */
  async ready(): Promise<boolean> {
    const { answers, clock } = this.options;
    const first = await within({ clock, ms: READY_WAIT_MS, late: () => "late" }, (over) =>
      Promise.race([answers(over).then(() => "ready"), this.exited.then(() => "ended")]),
    );
    if (first === "late") {
      this.remember(`gave no answer for ${READY_WAIT_MS / 1000} seconds`);
      await this.stop();
    }
    return first === "ready";
  }

  /** Returns its latest log lines, oldest first. */
  lastWords(): string {
    return this.lines.join("\n");
  }

  /** Ends it, gracefully if it responds. Safe to call twice. */
  async stop(): Promise<void> {
    const over = new AbortController();
    const { stdin } = this.child;
    if (stdin === undefined) this.child.kill("SIGTERM");
    else await stdin.end();
    const late = sleep(this.options.clock, STOP_WAIT_MS, over.signal).then(() => {
      if (!over.signal.aborted) this.child.kill("SIGKILL");
    });
    await this.exited;
    over.abort();
    await late;
  }

  private async read(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    let rest = "";
    for await (const bytes of stream) {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.remember(line.trim());
    }
  }

  private remember(line: string): void {
    if (line === "") return;
    this.lines.push(line);
    if (this.lines.length > LAST_LINES) this.lines.shift();
    this.options.telemetry.log("debug", `${this.options.name} says`, { line });
  }
}
