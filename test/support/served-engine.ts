import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Calls } from "../../src/domain/calls.ts";
import { type CallMessage, MessageCalls } from "../../src/processes/message-calls.ts";

export interface ServedEngine {
  readonly calls: Calls;
  stop(): Promise<void>;
}

/** PGlite in a separate process, which serves it to this one. Its zone is not UTC, as on many servers. */
export async function startServedEngine(): Promise<ServedEngine> {
  const folder = await mkdtemp(join(tmpdir(), "waybill-served-"));
  const opened = Promise.withResolvers<void>();
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "../storage/run-pglite.ts"), folder], {
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...process.env, TZ: "America/New_York" },
    serialization: "advanced",
    ipc(message: CallMessage | "open") {
      if (message === "open") opened.resolve();
      else calls.take(message);
    },
    onDisconnect: () => calls.cut(),
  });
  const calls = new MessageCalls((message) => child.send(message));
  await Promise.race([
    opened.promise,
    child.exited.then((code) => Promise.reject(new Error(`the engine did not open: ${code}`))),
  ]);
  return {
    calls,
    async stop() {
      child.kill("SIGKILL");
      await child.exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
