import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ClickHouseClient } from "@clickhouse/client";
import { ClickHouse, connectClickHouse } from "../../src/events/clickhouse.ts";
import { ClickHouseEventReader } from "../../src/events/clickhouse-event-reader.ts";
import { ClickHouseEventWriter } from "../../src/events/clickhouse-event-writer.ts";
import { EventStoreProbe } from "../../src/events/event-store-probe.ts";
import { migrateEventStore } from "../../src/events/migrate-event-store.ts";
import type { EventStoreTarget } from "../../src/events/table.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { openChdb } from "../../src/storage/chdb.ts";
import { openRemoteChdb } from "../../src/storage/served-chdb.ts";
import { serveClickHouse } from "./clickhouse-http.ts";
import { type ServedEngine, startServedEngine } from "./served-engine.ts";

export interface TestEventStore {
  readonly target: EventStoreTarget;
  /** The client that `writing` uses. */
  readonly client: ClickHouseClient;
  readonly writing: ClickHouse;
  readonly reading: ClickHouse;
  readonly exporting: ClickHouse;
  readonly writer: ClickHouseEventWriter;
  readonly reader: ClickHouseEventReader;
  readonly probe: EventStoreProbe;
}

/** How tests reach the engine: in this process, over HTTP, or in a separate process. */
export type EventStorePlace = "process" | "http" | "served";

/**
 * A real engine in a folder of its own, once per process, with event stores in it; served ones have a separate engine.
 */
export async function startChdb() {
  const folder = await mkdtemp(join(tmpdir(), "waybill-chdb-"));
  const chdb = openChdb(folder);
  const face = serveClickHouse(chdb.reader);
  const server = connectClickHouse({ url: face.url, user: "default", password: "" });

  let other: Promise<ServedEngine> | null = null;
  const clientsBy = async (by: EventStorePlace) => {
    if (by !== "served") return by === "http" ? server : chdb;
    other ??= startServedEngine("clickhouse");
    return openRemoteChdb((await other).calls);
  };

  const over = (client: ClickHouseClient) => new ClickHouse({ client, clock: systemClock, timeoutMs: 20_000 });

  return {
    chdb,
    async eventStore(database: string, by: EventStorePlace): Promise<TestEventStore> {
      const { writer, reader, exporter, prober } = await clientsBy(by);
      const target = { database, cluster: null };
      const [writing, reading] = [over(writer), over(reader)];
      await migrateEventStore(writing, target);
      return {
        target,
        client: by === "http" ? chdb.writer : writer,
        writing,
        reading,
        exporting: over(exporter),
        writer: new ClickHouseEventWriter(writing, target, systemClock),
        reader: new ClickHouseEventReader(reading, target, systemClock),
        probe: new EventStoreProbe(over(prober), target),
      };
    },
    async stop() {
      await server.close();
      await face.stop();
      await chdb.close();
      await (await other)?.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
