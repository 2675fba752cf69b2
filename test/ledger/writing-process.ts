/**
 * A process that inserts one batch into a ledger and is killed meanwhile: `bun writing-process.ts <folder> <database>
 * <file with the batch> <ms until its death>`. Started by the tests.
 */
import { openChdb } from "../../src/embedded/chdb.ts";
import { ClickHouse } from "../../src/ledger/clickhouse.ts";
import { ClickHouseLedgerWriter } from "../../src/ledger/clickhouse-ledger-writer.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";

const [, , folder = "", database = "", file = "", dyingMs = "0"] = process.argv;
const { token, rows } = await Bun.file(file).json();
const clickhouse = new ClickHouse({ client: openChdb(folder).writer, clock: systemClock, timeoutMs: 20_000 });
// The engine is warm when the batch comes.
await clickhouse.rows(`SELECT count() FROM ${database}.events`);
setTimeout(() => process.kill(process.pid, "SIGKILL"), Number(dyingMs));
await new ClickHouseLedgerWriter(clickhouse, { database, cluster: null }, systemClock).write(token, rows);
process.kill(process.pid, "SIGKILL");
