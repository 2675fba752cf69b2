import { existsSync } from "node:fs";
import { chown, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "./free-port.ts";

const BINARIES = "/usr/lib/postgresql/15/bin";

/** A PostgreSQL 15 server for one test. */
export interface PostgresServer {
  /** The URL of the database `waybill`, as its owner. */
  readonly url: string;
  start(): Promise<void>;
  /** Stops at once, like a crash, and keeps the data for the next `start`. */
  crash(): Promise<void>;
  /** Stops it and removes the data. */
  remove(): Promise<void>;
}

/** Returns why no server can run here, or null. */
export function postgresMissing(): string | null {
  return existsSync(join(BINARIES, "initdb")) ? null : `PostgreSQL 15 is not installed in ${BINARIES}`;
}

/**
 * Creates and starts a server on a free loopback port, with its data in a temporary folder. It waits for the disk, as
 * in production, only if `isDurable` is set.
 */
export async function createPostgres({ isDurable = false } = {}): Promise<PostgresServer> {
  const folder = await mkdtemp(join(tmpdir(), "waybill-postgres-"));
  const isRoot = process.getuid?.() === 0;
  // The server refuses to run as root.
  if (isRoot) await chown(folder, await idOfPostgres("-u"), await idOfPostgres("-g"));
  const data = join(folder, "data");
  const port = await freePort();
  const call = async (command: string) => {
    await run(isRoot ? ["su", "postgres", "-c", command] : ["sh", "-c", command]);
  };
  const pgCtl = (action: string) => call(`${BINARIES}/pg_ctl -D ${data} -s -w ${action} > ${folder}/pg_ctl.log 2>&1`);
  const settings = `-p ${port} -k ${folder} -c listen_addresses=127.0.0.1 -c fsync=${isDurable ? "on" : "off"}`;
  const server: PostgresServer = {
    url: `postgres://waybill@127.0.0.1:${port}/waybill`,
    start: () => pgCtl(`-o '${settings}' -l ${folder}/server.log start`),
    crash: () => pgCtl("-m immediate stop"),
    remove: async () => {
      await server.crash().catch(() => undefined);
      await rm(folder, { recursive: true, force: true });
    },
  };
  try {
    await call(
      `${BINARIES}/initdb -D ${data} -U waybill -A trust -E UTF8 --locale=C.UTF-8 --no-sync > ${folder}/initdb.log`,
    );
    await server.start();
    await call(`${BINARIES}/createdb -h ${folder} -p ${port} -U waybill waybill`);
  } catch (error) {
    await server.remove();
    throw error;
  }
  return server;
}

async function idOfPostgres(flag: "-u" | "-g"): Promise<number> {
  return Number(await run(["id", flag, "postgres"]));
}

async function run(command: string[]): Promise<string> {
  const child = Bun.spawn(command, { cwd: "/", stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [output, errors, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}: ${errors}${output}`);
  return output;
}
