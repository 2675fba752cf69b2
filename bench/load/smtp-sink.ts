import { mkdtemp, open, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "../../test/support/eventually.ts";
import { freePort } from "../../test/support/free-port.ts";

/** Postfix's own sink, which accepts every message and discards it. */
export interface SmtpSink {
  readonly url: string;
  readonly pid: number;
  /** Messages accepted so far. */
  messages(): Promise<number>;
  stop(): Promise<void>;
}

const LAST_BYTES = 256;

export async function startSmtpSink(): Promise<SmtpSink> {
  const folder = await mkdtemp(join(tmpdir(), "waybill-bench-sink-"));
  const port = await freePort();
  // With -c it prints the number of messages after each of them. To a file, because a full pipe would block it.
  const counts = join(folder, "counts");
  const child = Bun.spawn(["smtp-sink", "-c", "-u", "nobody", `127.0.0.1:${port}`, "1000"], {
    stdout: Bun.file(counts),
    stderr: "ignore",
  });
  await eventually("smtp-sink takes connections", () => isOpen(port));
  const file = await open(counts);
  const last = Buffer.alloc(LAST_BYTES);
  return {
    url: `smtp://127.0.0.1:${port}`,
    pid: child.pid,
    async messages() {
      const { size } = await file.stat();
      const { bytesRead } = await file.read(last, 0, LAST_BYTES, Math.max(0, size - LAST_BYTES));
      const text = last.toString("latin1", 0, bytesRead);
      return Number([...text.matchAll(/mesg=(\d+)(?=\D)/g)].at(-1)?.[1] ?? 0);
    },
    async stop() {
      child.kill();
      await child.exited;
      await file.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port }, () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}
