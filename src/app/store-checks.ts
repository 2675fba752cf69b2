import type { Config } from "../config/config.ts";
import { ConfigurationError } from "../domain/errors.ts";
import { foreignFormat, QUEUE_FORMAT } from "../engine/queue/format.ts";
import { RedisInspection } from "../engine/queue/redis-inspection.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { ProcessTelemetry } from "../runtime/telemetry/process-telemetry.ts";
import { requireSchema } from "../storage/migrate.ts";
import { readIdentity } from "../storage/registry-identity.ts";
import { CHANNELS } from "./channels.ts";
import { fitnessOf } from "./redis-fitness.ts";
import { foreignKey, foreignStore, masterKeyIds } from "./start-checks.ts";
import { openDatabase, openEventStore } from "./stores.ts";

const WITHIN_MS = 4_000;

/**
 * What `check` finds at the stores' addresses, in words. It reads what a start would claim, but claims nothing. Stores in the
 * data folder are left alone, because a server may be using them.
 */
export class StoreChecks {
  private readonly telemetry = new ProcessTelemetry({ level: "silent", isTerminal: false });
  private meta: Readonly<Record<string, string>> | null = null;
  private registry: string | null = null;
  private eventStore: string | null = null;

  constructor(private readonly config: Config) {}

  async redis(): Promise<string> {
    const { redis: address } = this.config;
    if (address === null) return `embedded (${Bun.which("redis-server") ?? missing("redis-server")})`;
    const common = { clock: systemClock, telemetry: this.telemetry };
    const inspection = await RedisInspection.open({ ...common, address, withinMs: WITHIN_MS });
    try {
      const { problems, warnings, summary } = fitnessOf(await inspection.servers(), address.kind === "cluster");
      if (problems.length > 0) throw new ConfigurationError(...problems);
      const format = await inspection.meta.format();
      if (format !== QUEUE_FORMAT) throw foreignFormat(format);
      this.meta = await inspection.meta.read();
      return [`answers (${summary})`, ...warnings.map((warning) => `warning: ${warning}`)].join("\n");
    } finally {
      await inspection.close();
    }
  }

  async postgres(): Promise<string> {
    if (this.config.databaseUrl === null) return "embedded (PGlite)";
    const database = await openDatabase(this.config, "leave");
    try {
      const { later } = await requireSchema(database.db);
      const { registry, masterKey } = await readIdentity(database.db);
      this.registry = registry;
      if (masterKey !== null && !masterKeyIds(this.config).includes(masterKey)) {
        throw foreignKey(masterKey, "The registry");
      }
      return later > 0 ? "answers, with the schema of a later version" : "answers, with the current schema";
    } finally {
      await database.close();
    }
  }

  async clickhouse(): Promise<string> {
    if (this.config.clickhouseUrl === null) return "embedded (chDB)";
    const eventStore = await openEventStore({ config: this.config, channels: CHANNELS, clock: systemClock }, "leave");
    try {
      this.eventStore = await eventStore.identity();
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
    const { master_key: key, registry, event_store: eventStore } = meta;
    const problems: string[] = [];
    if (key !== undefined && !masterKeyIds(config).includes(key)) {
      problems.push(...foreignKey(key, "The queue in Redis").problems);
    }
    if (registry !== undefined && this.registry !== null && registry !== this.registry) {
      problems.push(...foreignStore("registry", config).problems);
    }
    if (eventStore !== undefined && this.eventStore !== null && eventStore !== this.eventStore) {
      problems.push(...foreignStore("event_store", config).problems);
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
