import { connect } from "node:net";
import { CHANNELS } from "../app/channels.ts";
import { hasEmbeddedStore, openDatabase, openEventStore } from "../app/stores.ts";
import { checkFitness, foreignKey, masterKeyIds } from "../belonging/start-checks.ts";
import { eventStoreSays, problemBetween, registrySays, type StoreSays } from "../belonging/store-belongings.ts";
import type { Reach } from "../channels/contract.ts";
import type { Config } from "../config/config.ts";
import { ConfigurationError } from "../domain/errors.ts";
import { toSocketAddress } from "../domain/texts/host.ts";
import { foreignFormat, QUEUE_FORMAT } from "../engine/queue/format.ts";
import { RedisInspection } from "../engine/queue/redis-inspection.ts";
import { answeredWithin } from "../runtime/answered-within.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { ProcessTelemetry } from "../runtime/telemetry/process-telemetry.ts";
import { chdbLibrary } from "../storage/clickhouse/chdb-library.ts";
import { FolderInUseError, FolderLock } from "../storage/folder-lock.ts";
import { requireSchema } from "../storage/postgres/migrate.ts";
import { readIdentity } from "../storage/registry-identity.ts";
import { requireShards } from "../storage/require-shards.ts";

const TRY_MS = 5_000;
const EXIT_FAILURE = 1;
/** Also used when a store answers but cannot keep the promises, or belongs to another installation. */
const EXIT_CONFIGURATION = 2;

/** The verdict on one part: 0, or the exit code it calls for. */
type Verdict = 0 | typeof EXIT_FAILURE | typeof EXIT_CONFIGURATION;

/** Tries every part of the configuration and prints one line per part. Reads the stores without changing them. */
export async function check(config: Config): Promise<number> {
  console.log("configuration: in order");
  const stores = new StoreChecks(config);
  const parts: readonly [string, () => Promise<string>][] = [
    ["Redis", () => stores.redis()],
    ["PostgreSQL", () => stores.postgres()],
    ["ClickHouse", () => stores.clickhouse()],
    ...Object.entries(providerParts(config)),
    ["data folder", async () => tryFolder(config)],
  ];
  const verdicts = await Promise.all(parts.map(([name, attempt]) => tryOut(name, attempt)));
  // A part that does not answer now may answer later, so a part that needs a change decides the exit code.
  verdicts.push(await tryOut("together", () => stores.together()));
  return Math.max(...verdicts);
}

/** Returns the parts that messages pass through, each with its test. */
export function providerParts(config: Config): Readonly<Record<string, () => Promise<string>>> {
  const ofChannels = CHANNELS.flatMap((channel) => Object.entries(channel.checks?.(config, reach) ?? {}));
  const traces = async () => (config.tracesUrl === null ? "not exported" : reach(config.tracesUrl));
  return { ...Object.fromEntries(ofChannels), traces };
}

async function tryOut(name: string, attempt: () => Promise<string>): Promise<Verdict> {
  try {
    for (const line of (await answeredWithin(TRY_MS, attempt)).split("\n")) console.log(`${name}: ${line}`);
    return 0;
  } catch (error) {
    if (error instanceof ConfigurationError) {
      for (const problem of error.problems) console.log(`${name}: FAILED, ${problem}`);
      return EXIT_CONFIGURATION;
    }
    console.log(`${name}: FAILED, ${error instanceof Error ? error.message : String(error)}`);
    return EXIT_FAILURE;
  }
}

/** Only a message shows whether whoever is there takes the credentials. */
const reach: Reach = async (at) => {
  if (at === null) return "sandbox";
  return takesConnections(typeof at === "string" ? toSocketAddress(new URL(at)) : at);
};

async function takesConnections(at: { readonly host: string; readonly port: number }): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    const socket = connect(at, () => {
      socket.destroy();
      resolve();
    });
    socket.on("error", reject);
  });
  return "takes connections";
}

function tryFolder(config: Config): string {
  if (!hasEmbeddedStore(config)) return "not used";
  try {
    FolderLock.acquire(config.home).release();
    return config.home;
  } catch (error) {
    // A running server is not a configuration mistake.
    if (error instanceof FolderInUseError) return `${config.home} (in use)`;
    throw error;
  }
}

const WITHIN_MS = 4_000;

/**
 * Describes the stores at the configured addresses for `check`. It reads the claims of a start without making any. Stores in
 * the data folder are left alone, because a server may be using them.
 */
class StoreChecks {
  private readonly telemetry = new ProcessTelemetry({ level: "silent", isTerminal: false });
  private meta: Readonly<Record<string, string>> | null = null;
  private registry: StoreSays | null = null;
  private eventStore: StoreSays | null = null;

  constructor(private readonly config: Config) {}

  async redis(): Promise<string> {
    const { redis: address } = this.config;
    if (address === null) return `embedded (${Bun.which("redis-server") ?? missing("redis-server")})`;
    const common = { clock: systemClock, telemetry: this.telemetry };
    const inspection = await RedisInspection.open({ ...common, address, withinMs: WITHIN_MS });
    try {
      const { problems, warnings, summary } = checkFitness(await inspection.servers(), address.kind === "cluster");
      if (problems.length > 0) throw new ConfigurationError(...problems);
      this.meta = await inspection.meta.read();
      const format = await inspection.meta.format();
      if (format !== QUEUE_FORMAT) throw foreignFormat(format);
      return [`answers (${summary})`, ...warnings.map((warning) => `warning: ${warning}`)].join("\n");
    } finally {
      await inspection.close();
    }
  }

  async postgres(): Promise<string> {
    if (this.config.databaseUrl === null) return "embedded (PGlite), not opened: a start compares SHARDS with it";
    const database = await openDatabase(this.config, "leave");
    try {
      const { later } = await requireSchema(database.db);
      await requireShards(database.db, this.config.shards);
      const identity = await readIdentity(database.db);
      const { masterKey } = identity;
      this.registry = registrySays(identity);
      if (masterKey !== null && !masterKeyIds(this.config).includes(masterKey)) {
        throw foreignKey(masterKey, "The registry");
      }
      return later > 0 ? "answers, with the schema of a later version" : "answers, with the current schema";
    } finally {
      await database.close();
    }
  }

  async clickhouse(): Promise<string> {
    const { config } = this;
    if (config.clickhouseUrl === null) return `embedded (${chdbLibrary()})`;
    const common = { clock: systemClock, telemetry: this.telemetry };
    const eventStore = await openEventStore({ config, channels: CHANNELS, ...common }, "leave");
    try {
      this.eventStore = eventStoreSays(await eventStore.identity(), await eventStore.belonging.read());
      return "answers, with the current schema";
    } finally {
      await eventStore.close();
    }
  }

  /** Whether the stores that answered belong to one installation. Runs after the other checks. */
  async together(): Promise<string> {
    const { meta, config } = this;
    if (meta === null)
      return config.redis === null ? "the queue is this folder's own" : "not known: Redis did not tell";
    const { master_key: key, registry } = meta;
    const problems: string[] = [];
    if (key !== undefined && !masterKeyIds(config).includes(key)) {
      problems.push(...foreignKey(key, "The queue in Redis").problems);
    }
    for (const [what, store] of [
      ["registry", this.registry],
      ["event_store", this.eventStore],
    ] as const) {
      if (store !== null) problems.push(...(problemBetween(what, config, { meta, store })?.problems ?? []));
    }
    if (problems.length > 0) throw new ConfigurationError(...problems);
    if (registry === undefined)
      return "the queue is new, and will belong to the stores of the process that starts first";
    return `the queue belongs to these stores${this.privateOnes()}`;
  }

  private privateOnes(): string {
    const unseen = [
      ...(this.config.databaseUrl === null ? ["registry"] : []),
      ...(this.config.clickhouseUrl === null ? ["event store"] : []),
    ];
    return unseen.length === 0 ? "" : ` (the private ${unseen.join(" and ")} in WAYBILL_HOME was not opened)`;
  }
}

function missing(program: string): never {
  throw new Error(`${program} is not installed`);
}
