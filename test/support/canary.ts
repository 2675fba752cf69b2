import { type AddressInfo, createServer, type Socket } from "node:net";

/** Stands for an internal service that no tenant may reach. */
export interface Canary {
  readonly port: number;
  /** Connections so far; expected to stay 0. */
  readonly connections: number;
  stop(): Promise<void>;
}

/** Greets every client like a mail server that reveals a secret. */
export async function startCanary(host: "127.0.0.1" | "::1" | "0.0.0.0" = "127.0.0.1"): Promise<Canary> {
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    socket.resume();
    socket.write(`554 ${CANARY_SECRET}\r\n`);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, host, resolve);
  });
  // A server that listens on TCP has an address of this form.
  const { port } = server.address() as AddressInfo;
  return {
    port,
    get connections() {
      return connections;
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

export const CANARY_SECRET = "5.7.1 the inside of the platform";
