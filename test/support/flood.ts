import { join } from "node:path";

export interface Flood {
  readonly url: string;
  /** Requests rotate through them. */
  readonly apiKeys: readonly string[];
  /** A small mail, one with a long text in its data, or a body of empty objects: cheap to send, expensive to parse. */
  readonly content: "mail" | "text" | "objects";
  /** Size of the body; a small mail has its own size. */
  readonly bytes: number;
  /** Total number of requests; absent: until stopped. */
  readonly total?: number;
  readonly rate: FloodRate;
}

/**
 * A fixed number of requests per second, however long answers take; or a number of connections, with a pause after each
 * answer.
 */
export type FloodRate = { readonly perSecond: number } | { readonly connections: number; readonly pauseMs: number };

export interface RunningFlood {
  /** Resolves when all its requests are answered. */
  readonly done: Promise<void>;
  /** Stops it, and returns the number of answers per status; "broken": the server closed the connection. */
  stop(): Promise<Readonly<Record<string, number>>>;
}

export async function startFlood(flood: Flood): Promise<RunningFlood> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "run-flood.ts")], {
    // Thousands of keys do not fit into an argument.
    stdin: new Blob([JSON.stringify(flood)]),
    stdout: "pipe",
    stderr: "inherit",
  });
  const reader = child.stdout.getReader();
  const decoder = new TextDecoder();
  let text = "";
  const read = async (isEnough: () => boolean) => {
    while (!isEnough()) {
      const { done, value } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
    }
  };
  await read(() => text.includes("\n"));
  let result: Promise<Readonly<Record<string, number>>> | null = null;
  const end = async () => {
    child.kill("SIGTERM");
    const killer = setTimeout(() => child.kill("SIGKILL"), 5_000);
    await read(() => false);
    await child.exited;
    clearTimeout(killer);
    // The child prints an object of this form, or has no output if it was killed.
    return JSON.parse(text.split("\n")[1] || "{}") as Record<string, number>;
  };
  return { done: child.exited.then(() => undefined), stop: () => (result ??= end()) };
}
