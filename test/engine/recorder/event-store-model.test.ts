import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import { EVENT_TYPES, type EventType } from "../../../src/domain/jobs/event.ts";
import type { EventPage, EventQuery, StoredEventRow, TenantEvent } from "../../../src/domain/jobs/event-store.ts";
import type { ChannelName } from "../../../src/domain/jobs/job.ts";
import { isJsonObject, type JsonObject } from "../../../src/domain/texts/json.ts";
import { startEngine, type TestEventStore } from "../../support/clickhouse-event-store.ts";
import { eventIdAt, newJobId } from "./event-store-rows.ts";
import { EventStoreState } from "./memory-event-store-state.ts";

/** One more seed to run: EVENT_STORE_MODEL_SEED; lists of commands per seed: EVENT_STORE_MODEL_RUNS. */
const {
  EVENT_STORE_MODEL_SEED: wantedSeed,
  EVENT_STORE_MODEL_PATH: wantedPath,
  EVENT_STORE_MODEL_RUNS: runs,
} = Bun.env;
const RUNS = Number(runs ?? 30);
/** A busy machine takes its time to start and stop a server. */
const HOOK_MS = 60_000;
/** The failure is reported, as far as it is shrunk, before the test runs out of time. */
const SHRINK_MS = 90_000;
const SEEDS = wantedPath === undefined ? [1] : [];
/** Events of a run lie within so many milliseconds. */
const SPAN = 40;

/** Numbers pick from the current state when the command runs, so that any part of a list can run. */
type Command =
  | { readonly kind: "write"; readonly rows: readonly RowPick[] }
  /** A batch again, under its token. */
  | { readonly kind: "repeat"; readonly batch: number }
  /** A batch again, under another token: its events are stored twice. */
  | { readonly kind: "copy"; readonly batch: number }
  | { readonly kind: "page" | "follow"; readonly query: QueryPick }
  | { readonly kind: "job"; readonly tenant: number; readonly job: number };

interface RowPick {
  readonly tenant: number;
  readonly job: number;
  readonly at: number;
  readonly type: EventType;
  readonly result: JsonObject;
  readonly finished: StoredEventRow["finished"];
}

/** Near an event, counted from the first of all that were written; without events, and where told so, far away. */
interface Bound {
  readonly event: number | null;
  readonly distance: number;
}

interface QueryPick {
  readonly tenant: number;
  readonly from: Bound;
  readonly to: Bound;
  readonly channel: ChannelName | null;
  readonly type: EventType | null;
  readonly limit: number;
}

const CHANNEL_OF_JOB = ["email", "email", "whatsapp", "wallet"] as const;

const tenant = fc.constantFrom(0, 0, 0, 1);
const job = fc.nat({ max: CHANNEL_OF_JOB.length - 1 });
// The value as it comes out of JSON, which has no negative zero, for example.
const result = fc
  .dictionary(fc.string({ unit: "binary", maxLength: 5 }), fc.jsonValue({ maxDepth: 1 }), { maxKeys: 2 })
  .map((value): JsonObject => {
    const parsed: unknown = JSON.parse(JSON.stringify(value));
    return isJsonObject(parsed) ? parsed : {};
  });

const row: fc.Arbitrary<RowPick> = fc.record({
  tenant,
  job,
  at: fc.nat({ max: SPAN }),
  type: fc.constantFrom<EventType>("sent", "delivered", "clicked"),
  result: fc.oneof(fc.constant({}), result),
  finished: fc.option(
    fc.record({
      status: fc.constantFrom("success" as const, "failed" as const, "suppressed" as const),
      attempts: fc.integer({ min: 1, max: 12 }),
      result,
    }),
    { freq: 2 },
  ),
});

const bound: fc.Arbitrary<Bound> = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(-1e18, 1e18).map((distance) => ({ event: null, distance })) },
  {
    weight: 2,
    arbitrary: fc.record({ event: fc.nat({ max: 30 }), distance: fc.constantFrom(-1, -0.5, 0, 0, 0.5, 1, 4_096) }),
  },
);

const query: fc.Arbitrary<QueryPick> = fc.record({
  tenant,
  from: bound,
  to: bound,
  channel: fc.constantFrom<ChannelName | null>(null, null, "email", "whatsapp", "wallet"),
  type: fc.option(fc.constantFrom(...EVENT_TYPES.slice(0, 5)), { freq: 2 }),
  limit: fc.constantFrom(1, 2, 3, 7, 500),
});

const commands: fc.Arbitrary<Command[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant("write" as const),
        rows: fc.array(row, { minLength: 1, maxLength: 8 }),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("repeat" as const), batch: fc.nat({ max: 4 }) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("copy" as const), batch: fc.nat({ max: 4 }) }) },
    { weight: 5, arbitrary: fc.record({ kind: fc.constantFrom("page" as const, "follow" as const), query }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant("job" as const), tenant, job }) },
  ),
  { maxLength: 24, size: "max" },
);

let engine: Awaited<ReturnType<typeof startEngine>>;
let stored: TestEventStore;
let worlds = 0;

beforeAll(async () => {
  engine = await startEngine();
  stored = await engine.eventStore("model");
}, HOOK_MS);

afterAll(async () => {
  await engine.stop();
}, HOOK_MS);

/**
 * An event store in memory and one in the engine that receive the same calls, about tenants that only this test writes
 * to.
 */
class EventStorePair {
  private readonly world = (worlds += 1);
  private readonly memory = new EventStoreState();
  private readonly jobIds = CHANNEL_OF_JOB.map(() => newJobId());
  private readonly batches: { readonly token: string; readonly rows: readonly StoredEventRow[] }[] = [];
  private written = 0;
  private hasCopies = false;

  async run(command: Command): Promise<void> {
    switch (command.kind) {
      case "write":
        return this.write(command.rows.map((pick) => this.buildRow(pick)));
      case "repeat": {
        const batch = this.batches.at(-1 - command.batch);
        return batch && this.store(batch.token, batch.rows);
      }
      case "copy": {
        const batch = this.batches.at(-1 - command.batch);
        this.hasCopies ||= batch !== undefined;
        return batch && this.write(batch.rows);
      }
      case "page":
        return this.page(this.buildQuery(command.query));
      case "follow": {
        const asked = this.buildQuery(command.query);
        const all = this.memory.pageNow({ ...asked, limit: Number.MAX_SAFE_INTEGER });
        expect(await readAll(asked)).toEqual(all.events);
        return;
      }
      case "job": {
        const [tenantId, jobId] = [this.tenant(command.tenant), this.jobIds[command.job] ?? ""];
        expect(await stored.reader.job(tenantId, jobId)).toEqual(this.memory.jobNow(tenantId, jobId));
      }
    }
  }

  private async write(rows: readonly StoredEventRow[]): Promise<void> {
    const batch = { token: `s1:${this.world}-${this.batches.length}/${this.world}-9`, rows };
    this.batches.push(batch);
    await this.store(batch.token, rows);
  }

  private async store(token: string, rows: readonly StoredEventRow[]): Promise<void> {
    this.memory.storeNow(token, rows);
    await stored.writer.write(token, rows);
  }

  private async page(asked: EventQuery): Promise<void> {
    const page = await stored.reader.page(asked);
    const expected = this.memory.pageNow(asked);
    if (!this.hasCopies) return expect(page).toEqual(expected);
    // Copies take up space: a page may hold less than it could. It is never wrong about the next page.
    expect(page.events).toEqual(expected.events.slice(0, page.events.length));
    expect(page.hasMore || isWhole(page, expected)).toBe(true);
    expect(page.events.length > 0 || expected.events.length === 0).toBe(true);
  }

  private buildRow({ tenant: at, job: jobAt, at: ms, type, result: told, finished }: RowPick): StoredEventRow {
    this.written += 1;
    return {
      tenantId: this.tenant(at),
      jobId: this.jobIds[jobAt] ?? "",
      channel: CHANNEL_OF_JOB[jobAt] ?? "email",
      // An id is given once.
      eventId: eventIdAt(ms) + this.written,
      type,
      result: told,
      finished,
    };
  }

  private buildQuery({ tenant: at, from, to, ...rest }: QueryPick): EventQuery {
    const [a, b] = [this.idAt(from), this.idAt(to)];
    // An empty range is requested now and then, not half of the time.
    const [fromEventId, toEventId] = rest.limit === 3 ? [a, b] : [Math.min(a, b), Math.max(a, b)];
    return { ...rest, tenantId: this.tenant(at), fromEventId, toEventId };
  }

  private idAt({ event, distance }: Bound): number {
    const rows = this.batches.flatMap((batch) => batch.rows);
    const near = event === null ? undefined : rows[event % Math.max(1, rows.length)];
    return (near?.eventId ?? 0) + distance;
  }

  private tenant(at: number): string {
    return `tenant-${this.world}-${at}`;
  }
}

function isWhole(page: EventPage, expected: EventPage): boolean {
  return page.events.length === expected.events.length && !expected.hasMore;
}

async function readAll(asked: EventQuery): Promise<readonly TenantEvent[]> {
  const events: TenantEvent[] = [];
  for (let toEventId = asked.toEventId; ; ) {
    const page = await stored.reader.page({ ...asked, toEventId });
    events.push(...page.events);
    const last = page.events.at(-1);
    if (!page.hasMore || last === undefined) return events;
    toEventId = last.eventId;
  }
}

async function runOnBoth(list: readonly Command[]): Promise<void> {
  const pair = new EventStorePair();
  for (const command of list) await pair.run(command);
}

for (const seed of [...SEEDS, ...(wantedSeed === undefined ? [] : [Number(wantedSeed)])]) {
  test(`ClickHouse and memory answer every query alike, whatever is written (seed ${seed})`, async () => {
    const path = wantedPath === undefined ? {} : { path: wantedPath };
    const details = await fc.check(fc.asyncProperty(commands, runOnBoth), {
      seed,
      numRuns: RUNS,
      interruptAfterTimeLimit: SHRINK_MS,
      ...path,
    });
    expect(details.failed ? formatReport(details, seed) : "").toBe("");
  }, 300_000);
}

function formatReport(details: fc.RunDetails<[readonly Command[]]>, seed: number): string {
  const replay = `EVENT_STORE_MODEL_SEED=${seed} EVENT_STORE_MODEL_PATH=${details.counterexamplePath}`;
  const list = details.counterexample?.[0].map((command) => JSON.stringify(command)).join("\n");
  return `${String(details.errorInstance)}\nafter the last of:\n${list}\nReplay: ${replay} bun test ${import.meta.path}`;
}
