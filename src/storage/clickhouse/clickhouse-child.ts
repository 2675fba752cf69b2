import { randomBytes } from "node:crypto";
import { mkdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, sleep } from "../../domain/clock.ts";
import type { ClickHouseAddress } from "../../domain/jobs/event-store.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import { freePort } from "../free-port.ts";
import { KeptServer } from "../kept-server.ts";
import { parentDeathSignal } from "../parent-death-signal.ts";
import { hasRoomToWrite } from "../room-on-disk.ts";
import { ServerProcess } from "../server-process.ts";
import { chdbLibrary } from "./chdb-library.ts";
import { ANALYST, type ClickHouseConfig, OWN_USER, writeClickHouseConfig } from "./clickhouse-config.ts";

export interface ClickHouseChildOptions {
  /** The engine's folder, created with mode 0700 if missing. The caller holds the lock of the data folder that contains it. */
  readonly folder: string;
  /** The database that analysts may read; null: analysts have no access. */
  readonly analysed: string | null;
  readonly telemetry: Telemetry;
  readonly clock: Clock;
}

/** A private ClickHouse server. Its address survives restarts. */
export interface ClickHouseChild {
  readonly address: ClickHouseAddress;
  /** For statements of analysts; null: analysts have no access. */
  readonly analysts: ClickHouseAddress | null;
  /** The process id of the current process. */
  readonly pid: number;
  /** Ends the child and waits for its exit. Safe to call twice. */
  stop(): Promise<void>;
}

/** A child that does not start, although it did before, is retried without end: its data can wait in the queue. */
const STARTS_MAX = Number.POSITIVE_INFINITY;
/** How long the engine of an earlier run may take to release the folder. */
const RELEASE_WAIT_MS = 20_000;
const AGAIN_MS = 100;
const ASK_MS = 5_000;
const ENTRY = join(import.meta.dir, "clickhouse-server.ts");

/**
 * Starts a private ClickHouse server on `folder`, and keeps it running until `stop`. Resolves once it answers. Rejects
 * with `ConfigurationError` where there is no library for this machine, and with the engine's last output if it does
 * not start.
 *
 * Call it on the main thread: Linux kills the child when the thread that started it ends.
 */
export async function startClickHouseChild(options: ClickHouseChildOptions): Promise<ClickHouseChild> {
  const { clock, analysed } = options;
  const library = chdbLibrary();
  await mkdir(options.folder, { recursive: true, mode: 0o700 });
  const folder = await realpath(options.folder);
  const [password, theirs] = [randomPassword(), randomPassword()];
  const analyst = analysed === null ? null : { database: analysed, password: theirs };
  const command = [...(await parentDeathSignal()), process.execPath, "--smol", ENTRY, library];
  const deadlineMs = clock.monotonicMs() + RELEASE_WAIT_MS;
  for (;;) {
    const config = { folder, port: freePort(), password, analyst };
    const kept = keptClickHouse({ ...options, folder }, config, command);
    try {
      await kept.start();
    } catch (error) {
      await kept.stop();
      const said = kept.lastWords();
      if (!PASSES.test(said) || clock.monotonicMs() > deadlineMs) throw said === "" ? error : new Error(said);
      await sleep(clock, AGAIN_MS);
      continue;
    }
    const url = buildUrl(config.port);
    return {
      address: { url, user: OWN_USER, password },
      analysts: analyst === null ? null : { url, user: ANALYST, password: theirs },
      get pid() {
        return kept.pid;
      },
      stop: () => kept.stop(),
    };
  }
}

/** The engine of an earlier run has not released the folder yet; or another program took the free port. */
const PASSES = /Another server instance in same directory is already running|Address already in use/;

function keptClickHouse(
  { folder, clock, telemetry }: ClickHouseChildOptions,
  config: ClickHouseConfig,
  command: readonly string[],
): KeptServer {
  const name = "ClickHouse";
  let file = "";
  return new KeptServer({
    name,
    exits: "clickhouse_child_exits",
    startsMax: STARTS_MAX,
    clock,
    telemetry,
    hasRoom: () => hasRoomToWrite(folder),
    // Rewritten at each start: the folder belongs to the server, and files written there must not change its users'
    // rights.
    prepare: async () => void (file = await writeClickHouseConfig(config)),
    make: () =>
      new ServerProcess({
        name,
        command: [...command, file, folder, String(config.port)],
        folder,
        endsBy: "input",
        answers: (signal) => answers(config, { clock, signal }),
        clock,
        telemetry,
      }),
  });
}

/** Resolves once it runs our statements: another program on that port does not know our password. */
async function answers(
  { port, password }: ClickHouseConfig,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<void> {
  // A connection that stays open would delay the server's end.
  const headers = { "x-clickhouse-user": OWN_USER, "x-clickhouse-key": password, connection: "close" };
  while (!signal.aborted) {
    const within = AbortSignal.any([signal, AbortSignal.timeout(ASK_MS)]);
    const asked = fetch(buildUrl(port), { method: "POST", headers, body: "SELECT 1", signal: within });
    if (await asked.then((answer) => answer.ok).catch(() => false)) return;
    await sleep(clock, 25, signal);
  }
}

const buildUrl = (port: number) => `http://127.0.0.1:${port}`;
const randomPassword = () => randomBytes(32).toString("base64url");
