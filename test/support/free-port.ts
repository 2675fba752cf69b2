import { createServer } from "node:net";

/** Below Linux's range of ephemeral ports: a port of that range may be taken before it is used. */
const FIRST = 20_000;
const LAST = 32_000;

/** A loopback port that is free at this moment, and that only another caller of this function would take. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 100; tries += 1) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST));
    if (await isFree(port)) return port;
  }
  throw new Error("no port is free");
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
