import { type Calls, callName } from "../domain/calls.ts";
import { type Clock, sleep } from "../domain/clock.ts";
import { type CallMessage, MessageCalls } from "./message-calls.ts";

/** How the process ended: its exit code, or the signal that ended it. */
export type ChildEnd = number | string;

/** Checks whether the other process's event loop is still running. */
export const PING = callName<null, null>("process.ping");

/** A process that is silent for this many times `PING_MS` is considered hung. Longer than any work that blocks it. */
const PING_MS = 2_000;
const SILENT_PINGS_MAX = 15;

/**
 * One life of a child process, which communicates with this one over its own channel.
 *
 * It runs in its own session: Ctrl-C on the terminal goes to the main process only, which ends the others in order. Its
 * log goes where this process logs, line by line.
 */
export class ChildProcess {
  readonly calls: MessageCalls;
  /** Never rejects. */
  readonly exited: Promise<ChildEnd>;
  private readonly child: Bun.Subprocess<"ignore", "inherit", "inherit">;

  /** Call on the main thread: see `parentDeathSignal`. */
  constructor(command: readonly string[]) {
    this.child = Bun.spawn([...command], {
      stdio: ["ignore", "inherit", "inherit"],
      detached: true,
      // Transfers bytes and dates unchanged.
      serialization: "advanced",
      ipc: (message: CallMessage) => this.calls.take(message),
      onDisconnect: () => this.calls.cut(),
    });
    this.calls = new MessageCalls((message) => this.child.send(message));
    const endWithUs = () => this.child.kill("SIGKILL");
    process.on("exit", endWithUs);
    this.exited = this.child.exited.then((code) => {
      process.off("exit", endWithUs);
      this.calls.cut();
      return this.child.signalCode ?? code;
    });
  }

  get pid(): number {
    return this.child.pid;
  }

  kill(): void {
    this.child.kill("SIGKILL");
  }

  /**
   * Kills the process if its event loop is no longer running. Resolves when the process is gone, with whether it was
   * killed for that reason.
   */
  async endWhenHung(clock: Clock): Promise<boolean> {
    const { gone } = this.calls;
    let silent = 0;
    while (!gone.aborted) {
      let isHeard = false;
      this.calls.call(PING, null).then(
        () => (isHeard = true),
        // The process is gone.
        () => undefined,
      );
      await sleep(clock, PING_MS, gone);
      // Counted in rounds of this process: a pause of this process, or of the machine, is no evidence about the other.
      silent = isHeard ? 0 : silent + 1;
      if (silent < SILENT_PINGS_MAX || gone.aborted) continue;
      this.kill();
      return true;
    }
    return false;
  }
}

/** Returns the line to the process that started this one, or null if that is not the main process of a start. */
export function openParentLine(): Calls | null {
  if (process.send === undefined) return null;
  const calls = new MessageCalls((message) => void process.send?.(message));
  // The main process runs the same build and sends messages of this form.
  process.on("message", (message) => calls.take(message as CallMessage));
  process.on("disconnect", () => calls.cut());
  calls.serve(PING, () => null);
  return calls;
}
