/**
 * A process that inserts one batch into an event store and is killed meanwhile: `bun writing-process.ts <folder>
 * <database> <file with the batch> <table> <ms>`. It dies that long after a part of that table has appeared on disk.
 * Started by the tests.
 */
import { readdirSync } from "node:fs";
import { ClickHouse } from "../../../src/events/clickhouse.ts";
import { ClickHouseEventWriter } from "../../../src/events/clickhouse-event-writer.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { openClickHouse } from "../../support/private-clickhouse.ts";

const [, , folder = "", database = "", file = "", table = "", lateMs = "0"] = process.argv;
const die = () => process.kill(process.pid, "SIGKILL");
const { token, rows } = await Bun.file(file).json();
const clickhouse = new ClickHouse({
  client: (await openClickHouse(folder)).writer,
  clock: systemClock,
  timeoutMs: 20_000,
});
const [[paths] = []] = await clickhouse.rows(
  `SELECT data_paths[1] FROM system.tables WHERE database = '${database}' AND name = '${table}'`,
);
/** Merges create other parts. */
const inserted = () => readdirSync(String(paths)).filter((name) => /^\d+_\d+_\d+_0$/.test(name));
const before = new Set(inserted());

function watch(): void {
  if (inserted().every((name) => before.has(name))) return void setImmediate(watch);
  if (lateMs === "0") die();
  setTimeout(die, Number(lateMs));
}
watch();
await new ClickHouseEventWriter(clickhouse, { database, cluster: null }, systemClock).write(token, rows);
die();
