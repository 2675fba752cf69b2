import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ClickHouseClient } from "@clickhouse/client";
import { ClickHouse } from "../../src/events/clickhouse.ts";
import { ClickHouseEventReader } from "../../src/events/clickhouse-event-reader.ts";
import { ClickHouseEventWriter } from "../../src/events/clickhouse-event-writer.ts";
import { EventStoreProbe } from "../../src/events/event-store-probe.ts";
import { migrateEventStore } from "../../src/events/schema/migrate-event-store.ts";
import type { EventStoreTarget } from "../../src/events/schema/table.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { openClickHouse } from "./private-clickhouse.ts";

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

/** A real engine in a folder of its own, with event stores in it. */
export async function startEngine() {
  const folder = await mkdtemp(join(tmpdir(), "waybill-clickhouse-"));
  const server = await openClickHouse(folder);
  const over = (client: ClickHouseClient) => new ClickHouse({ client, clock: systemClock, timeoutMs: 20_000 });
  return {
    folder,
    server,
    async eventStore(database: string): Promise<TestEventStore> {
      const { writer, reader, exporter, prober } = server;
      const target = { database, cluster: null };
      const [writing, reading] = [over(writer), over(reader)];
      await migrateEventStore(writing, target);
      return {
        target,
        client: writer,
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
      await rm(folder, { recursive: true, force: true });
    },
  };
}
