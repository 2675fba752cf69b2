import { mkdir, statfs } from "node:fs/promises";
import { join } from "node:path";
import type { Redis } from "ioredis";
import { loadConfig } from "../../src/config/config.ts";
import { FaultProxy } from "../support/fault-proxy.ts";
import { createPostgres, type PostgresServer, postgresMissing } from "../support/postgres.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import type { SeedPlace } from "../support/seed-tenants.ts";
import type { Undo } from "../support/undo.ts";
import type { SoakOptions } from "./options.ts";

const MIB = 1024 * 1024;

/** Its own servers, each behind a proxy that breaks; and another proxy for the second start alone. */
export interface StoreServers {
  readonly redis: RedisServer;
  readonly postgres: PostgresServer;
  readonly redisProxy: FaultProxy;
  readonly postgresProxy: FaultProxy;
  readonly sideProxy: FaultProxy;
}

/** The soak's stores: a file system of its own where one can be mounted, and servers where they are requested. */
export class SoakStores {
  private constructor(
    readonly home: string,
    private readonly disk: { readonly path: string; readonly mib: number } | null,
    readonly servers: StoreServers | null,
  ) {}

  static async open(folder: string, { shape, diskMib }: SoakOptions, undo: Undo): Promise<SoakStores> {
    const path = join(folder, "disk");
    await mkdir(path, { recursive: true });
    const isMounted = run(["mount", "-t", "tmpfs", "-o", `size=${diskMib}m,mode=700`, "soak", path]);
    if (isMounted) undo.add(null, () => run(["umount", "-l", path]));
    const home = join(path, "home");
    await mkdir(home, { recursive: true, mode: 0o700 });
    // A start refuses a folder that has a store but not the secrets that it was sealed with.
    loadConfig({ WAYBILL_HOME: home });
    const servers = shape === "servers" ? await openServers(path, undo) : null;
    return new SoakStores(home, isMounted ? { path, mib: diskMib } : null, servers);
  }

  /** Whether the disk can be made full. */
  get hasOwnDisk(): boolean {
    return this.disk !== null;
  }

  get seedPlace(): SeedPlace {
    return this.servers === null ? { home: this.home } : { databaseUrl: this.servers.postgres.url };
  }

  /** For the main start, or for the second one, whose connections break by themselves. */
  environment(isSide = false): Readonly<Record<string, string>> {
    if (this.servers === null) return {};
    const { postgres, postgresProxy, redisProxy, sideProxy } = this.servers;
    const database = new URL(postgres.url);
    database.port = String(postgresProxy.port);
    return { REDIS_URL: `redis://127.0.0.1:${(isSide ? sideProxy : redisProxy).port}`, DATABASE_URL: database.href };
  }

  /** From now on only that much more can be written. */
  async fillDisk(leftMib: number): Promise<void> {
    if (this.disk === null) return;
    const { blocks, bfree, bsize } = await statfs(this.disk.path);
    const usedKib = Math.ceil(((blocks - bfree) * bsize) / 1024);
    run(["mount", "-o", `remount,size=${usedKib + leftMib * 1024}k`, this.disk.path]);
  }

  freeDisk(): void {
    if (this.disk !== null) run(["mount", "-o", `remount,size=${this.disk.mib}m`, this.disk.path]);
  }

  /** The space used on the data folder's file system. */
  async usedMib(): Promise<number> {
    const { blocks, bfree, bsize } = await statfs(this.disk?.path ?? this.home);
    return ((blocks - bfree) * bsize) / MIB;
  }
}

async function openServers(path: string, undo: Undo): Promise<StoreServers> {
  const missing = postgresMissing();
  if (missing !== null) throw new Error(`--servers: ${missing}`);
  const data = join(path, "redis");
  await mkdir(data, { recursive: true });
  const redis = undo.add(await startRedis(["--dir", data]), (one) => one.stop());
  const postgres = undo.add(await createPostgres(), (one) => one.remove());
  const proxy = async (port: number) => undo.add(await FaultProxy.start({ port }), (one) => one.stop());
  const [redisPort, postgresPort] = [redis.url, postgres.url].map((url) => Number(new URL(url).port));
  return {
    redis,
    postgres,
    redisProxy: await proxy(redisPort ?? 0),
    sideProxy: await proxy(redisPort ?? 0),
    postgresProxy: await proxy(postgresPort ?? 0),
  };
}

/** Makes the Redis refuse writes for lack of memory; returns a function that ends it. */
export async function fillRedis(redis: Redis): Promise<() => Promise<void>> {
  const [, before = "0"] = await redis.config("GET", "maxmemory");
  await redis.config("SET", "maxmemory", "1");
  return async () => {
    await redis.config("SET", "maxmemory", before);
  };
}

function run(command: readonly string[]): boolean {
  try {
    return Bun.spawnSync([...command], { stdout: "ignore", stderr: "ignore" }).success;
  } catch {
    return false;
  }
}
