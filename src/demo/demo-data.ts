import type { OpenEventStore } from "../app/stores.ts";
import { UnavailableError } from "../domain/errors.ts";
import type { Json } from "../domain/texts/json.ts";
import { DEMO_TENANTS, demoHistory } from "../events/demo-history.ts";
import { findEvents, writeDemoHistory } from "../events/write-demo-history.ts";
import type { Registry } from "../storage/registry.ts";
import type { ControlTask } from "../tasks/control-socket.ts";

export interface DemoRequest {
  readonly seed: number;
  /** Messages of all tenants on a usual working day. */
  readonly perDay: number;
  /** The beginning of the UTC day before which the history ends. */
  readonly untilMs: number;
  /** Write beside real events. */
  readonly isForced: boolean;
}

interface DemoStores {
  readonly registry: Pick<Registry, "createTenant">;
  readonly eventStore: Pick<OpenEventStore, "demo">;
}

const DAYS = 30;

/** Writes a month of events that never happened, for tenants of its own. Returns how many. Safe to repeat. */
export async function writeDemoData(
  { registry, eventStore: { demo } }: DemoStores,
  { seed, perDay, untilMs, isForced }: DemoRequest,
  say: (line: string) => void,
): Promise<number> {
  const rows = demoHistory({ seed, perDay, untilMs, days: DAYS });
  const found = await findEvents(demo, rows);
  if (found.demo === "another") {
    throw new UnavailableError(
      "another demonstration is there already (of another seed, size or day); use a new store for this one",
    );
  }
  if (found.real > 0 && !isForced) {
    throw new UnavailableError(
      `the event store has ${found.real} real events; --force writes the demonstration beside them, and nothing removes it again`,
    );
  }
  for (const { id, name } of DEMO_TENANTS) {
    // One that exists stays as it is.
    await registry.createTenant({
      id,
      name: `${name} (demonstration)`,
      plan: "pro",
      channels: ["email", "whatsapp", "wallet"],
    });
  }
  await writeDemoHistory(demo, seed, rows, (written) => say(`${written} of ${rows.length} events`));
  return rows.length;
}

/** The same for a command beside the start that holds the stores. */
export function demoDataTask(stores: DemoStores): ControlTask {
  // Our own command asks.
  return (input, say): Promise<Json> => writeDemoData(stores, input as unknown as DemoRequest, say);
}
