import { type Clock, sleep } from "../../../src/domain/clock.ts";
import { assert, TransportError } from "../../../src/domain/errors.ts";
import {
  type EventPage,
  type EventQuery,
  type EventReader,
  type EventWriter,
  RowsRefusedError,
  type StoredEventRow,
  type WriteAttempt,
  type WriteOutcome,
} from "../../../src/domain/jobs/event-store.ts";
import type { JobRecord } from "../../../src/domain/jobs/job.ts";
import type { Random } from "../../../src/domain/random.ts";
import { remember } from "../../../src/domain/remember.ts";
import { EventStoreState } from "./memory-event-store-state.ts";
import type { Weather } from "./memory-recorder-queue.ts";

/**
 * An event store in memory that checks, with every insert, a recorder's obligations. It forgets tokens as ClickHouse
 * does, so that existing rows are stored again unless the call says that they may be there.
 */
export class MemoryEventStore implements EventWriter, EventReader {
  readonly rows: StoredEventRow[] = [];
  readonly seenAtMs = new Map<number, number>();
  readonly setAside: StoredEventRow[] = [];
  readonly attempts: WriteAttempt[] = [];
  writes = 0;
  /** Tokens that are remembered. */
  tokensMax = Number.POSITIVE_INFINITY;
  /** Rows that are never accepted. */
  refuses: (row: StoredEventRow) => boolean = () => false;
  private readonly state = new EventStoreState();
  private readonly batches = new Map<string, string>();
  private readonly newest = new Map<string, number>();

  constructor(
    private readonly clock: Clock,
    private readonly random: Random,
    private readonly weather: Weather,
  ) {}

  async write(token: string, rows: readonly StoredEventRow[], attempt: WriteAttempt = "new"): Promise<WriteOutcome> {
    this.writes += 1;
    this.attempts.push(attempt);
    await sleep(this.clock, this.random.next() * this.weather.delayMsMax);
    const roll = this.random.next();
    if (roll < this.weather.failing / 3) throw new TransportError("lost on the way there");
    const refused = rows.filter((row) => this.refuses(row));
    if (refused.length > 0 && attempt !== "apart") throw new RowsRefusedError("some rows are wrong");
    this.setAside.push(...refused);
    const taken = rows.filter((row) => !refused.includes(row));
    if (roll < (this.weather.failing * 2) / 3) {
      this.clock.setTimer(this.random.next() * 20_000, () => this.store(token, taken, attempt));
      throw new TransportError("still in flight");
    }
    const wereThere = taken.some((row) => this.has(row));
    this.store(token, taken, attempt);
    if (roll < this.weather.failing) throw new TransportError("lost on the way back");
    return { wereThere, setAside: refused.length };
  }

  async page(query: EventQuery): Promise<EventPage> {
    return this.state.pageNow(query);
  }

  async job(tenantId: string, jobId: string): Promise<JobRecord | null> {
    return this.state.jobNow(tenantId, jobId);
  }

  private store(token: string, rows: readonly StoredEventRow[], attempt: WriteAttempt): void {
    const text = JSON.stringify(rows);
    const known = this.batches.get(token);
    assert(known === undefined || known === text, "a token names the same rows for ever");
    if (known !== undefined) return;
    remember(this.batches, { key: token, value: text, max: this.tokensMax });
    const missing = attempt === "new" ? rows : rows.filter((row) => !this.has(row));
    this.state.storeNow(token, missing);
    for (const row of missing) {
      assert(row.eventId > (this.newest.get(row.tenantId) ?? -1), "a tenant's events are stored in order, and once");
      this.newest.set(row.tenantId, row.eventId);
      this.rows.push(row);
      this.seenAtMs.set(row.eventId, this.clock.nowMs());
    }
  }

  private has({ tenantId, eventId }: StoredEventRow): boolean {
    return this.rows.some((row) => row.tenantId === tenantId && row.eventId === eventId);
  }
}
