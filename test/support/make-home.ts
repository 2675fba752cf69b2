import { sql } from "drizzle-orm";
import { CHANNELS } from "../../src/app/channels.ts";
import { openDatabase, openEventStore } from "../../src/app/stores.ts";
import { platformApple } from "../../src/channels/wallet/wiring/apple.ts";
import { platformGoogle } from "../../src/channels/wallet/wiring/google.ts";
import { loadConfig } from "../../src/config/config.ts";
import { connectClickHouse } from "../../src/events/clickhouse.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { QuietTelemetry } from "./quiet-telemetry.ts";

/*
 * bun test/support/make-home.ts FOLDER: a data folder with the parts of a first start that are the same for every
 * folder: both databases with their current schema and without an identity, and the sandbox's keys.
 */

const [home = ""] = process.argv.slice(2);
process.umask(0o077);
const config = loadConfig({ WAYBILL_HOME: home });
await platformApple(config);
platformGoogle(config);

const { db, close } = await openDatabase(config, "migrate");
// Each registry gets one of its own.
await db.execute(sql`drop table registry_identity`);
// Two copies of PostgreSQL's catalogue, 600 files, which only CREATE DATABASE reads.
for (const template of ["template0", "template1"]) {
  await db.execute(sql.raw(`alter database ${template} is_template false`));
  await db.execute(sql.raw(`drop database ${template}`));
}
await close();

const telemetry = new QuietTelemetry();
const eventStore = await openEventStore({ config, channels: CHANNELS, clock: systemClock, telemetry }, "migrate");
const { address, close: closeEventStore } = eventStore;
const { writer, close: closeClients } = connectClickHouse(address);
await writer.command({ query: `DROP TABLE ${config.clickhouseDatabase}.identity SYNC` });
await closeClients();
await closeEventStore();
process.exit(0);
