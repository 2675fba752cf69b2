import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ClickHouseClient } from "@clickhouse/client";
import { openChdb } from "../../src/embedded/chdb.ts";
import { ClickHouse } from "../../src/ledger/clickhouse.ts";
import { ClickHouseLedgerReader } from "../../src/ledger/clickhouse-ledger-reader.ts";
import { ClickHouseLedgerWriter } from "../../src/ledger/clickhouse-ledger-writer.ts";
import { connectClickHouse } from "../../src/ledger/connect-clickhouse.ts";
import { migrateLedger } from "../../src/ledger/migrate-ledger.ts";
import type { LedgerTarget } from "../../src/ledger/table.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { serveClickHouse } from "./clickhouse-http.ts";

export interface TestLedger {
  readonly target: LedgerTarget;
  readonly writing: ClickHouse;
  readonly reading: ClickHouse;
  readonly exporting: ClickHouse;
  readonly writer: ClickHouseLedgerWriter;
  readonly reader: ClickHouseLedgerReader;
}

/** A real engine in a folder of its own, once a process, and ledgers in it: in this process and over HTTP. */
export async function startChdb() {
  const folder = await mkdtemp(join(tmpdir(), "waybill-chdb-"));
  const chdb = openChdb(folder);
  const face = serveClickHouse(chdb.reader);
  const server = connectClickHouse({ url: face.url, user: "default", password: "" });

  const over = (client: ClickHouseClient) => new ClickHouse({ client, clock: systemClock, timeoutMs: 20_000 });

  return {
    chdb,
    async ledger(database: string, by: "process" | "http"): Promise<TestLedger> {
      const { writer, reader, exporter } = by === "http" ? server : chdb;
      const target = { database, cluster: null };
      const [writing, reading] = [over(writer), over(reader)];
      await migrateLedger(writing, target);
      return {
        target,
        writing,
        reading,
        exporting: over(exporter),
        writer: new ClickHouseLedgerWriter(writing, target, systemClock),
        reader: new ClickHouseLedgerReader(reading, target, systemClock),
      };
    },
    async stop() {
      await server.close();
      await face.stop();
      await chdb.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
