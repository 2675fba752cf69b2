import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { eventually } from "./eventually.ts";

/** A port that accepts no more connections, as behind a firewall that drops packets. */
export interface DeafListener {
  readonly port: number;
  stop(): Promise<void>;
}

/** More than the kernel queues for a process that accepts none (net.core.somaxconn). */
const SOCKETS_MAX = 10_000;
const LISTENER =
  "const { port } = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } }); console.log(port)";

/** A listener in a stopped process, with its queue full: the kernel drops further clients' packets. */
export async function startDeafListener(): Promise<DeafListener> {
  const child = Bun.spawn([process.execPath, "-e", LISTENER], { stdout: "pipe", stderr: "inherit", stdin: "ignore" });
  const sockets: Socket[] = [];
  const stop = async () => {
    for (const socket of sockets) socket.destroy();
    child.kill("SIGKILL");
    await child.exited;
  };
  const { value } = await child.stdout.getReader().read();
  const port = Number(new TextDecoder().decode(value));
  child.kill("SIGSTOP");
  while (sockets.length < SOCKETS_MAX) {
    const batch = Array.from({ length: 64 }, () => connect({ port, host: "127.0.0.1" }));
    for (const socket of batch) socket.on("error", () => {});
    sockets.push(...batch);
    const isFull = () => isDropped(port);
    await eventually("its queue is full, or has room", () => isFull() || batch.every(({ connecting }) => !connecting));
    if (isFull()) return { port, stop };
  }
  await stop();
  throw new Error(`a stopped listener still has room after ${SOCKETS_MAX} connections`);
}

/**
 * Whether a client waits for an answer to its first packet to the port: state SYN_SENT in /proc/net/tcp (Linux,
 * proc_net_tcp.rst).
 */
function isDropped(port: number): boolean {
  const address = `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const waits = new RegExp(`^ *\\d+: \\S+ ${address} 02 `, "m");
  return waits.test(readFileSync("/proc/net/tcp", "utf8"));
}
