import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { cutTornTail } from "../../src/storage/redis/torn-tail.ts";
import { eventually } from "./eventually.ts";
import { freePort } from "./free-port.ts";

export interface RedisServer {
  readonly path: string;
  /** The same server on loopback. */
  readonly url: string;
  readonly client: Redis;
  /** Ends the process as a power cut would, but without the loss of the disk's cache. */
  kill(): Promise<void>;
  /** Starts it again on the same files. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** A real redis-server for one test, append-only and durable like the embedded one. */
export async function startRedis(extra: readonly string[] = []): Promise<RedisServer> {
  const folder = await mkdtemp(join(tmpdir(), "waybill-redis-"));
  const path = join(folder, "redis.sock");
  // A server that runs as a cluster's node needs both. By default the second is in the range of ephemeral ports.
  const [port, busPort] = [await freePort(), await freePort()];
  const spawn = () =>
    Bun.spawn(
      // biome-ignore format: a command line
      ["redis-server", "--port", String(port), "--cluster-port", String(busPort), "--unixsocket", path, "--dir", folder,
        "--appendonly", "yes", "--appendfsync", "always", "--aof-load-truncated", "no",
        "--save", "", "--maxmemory-policy", "noeviction", ...extra],
      { stdout: "ignore", stderr: "ignore" },
    );
  let server = spawn();
  const client = new Redis({ path, retryStrategy: () => 50, maxRetriesPerRequest: null });
  client.on("error", () => {});
  const isUp = () =>
    client.ping().then(
      (reply) => reply === "PONG",
      () => false,
    );
  await eventually("redis answers", isUp);
  return {
    path,
    url: `redis://127.0.0.1:${port}`,
    client,
    async kill() {
      server.kill("SIGKILL");
      await server.exited;
    },
    async restart() {
      await cutTornTail(folder);
      server = spawn();
      await eventually("redis answers again", isUp);
    },
    async stop() {
      client.disconnect();
      server.kill("SIGKILL");
      await server.exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
