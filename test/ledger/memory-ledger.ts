import { type Clock, sleep } from "../../src/core/clock.ts";
import { assert, TransportError } from "../../src/core/errors.ts";
import type { JobRecord } from "../../src/core/job.ts";
import type { EventPage, EventQuery, LedgerReader, LedgerRow, LedgerWriter } from "../../src/core/ledger.ts";
import type { Random } from "../../src/core/random.ts";
import { LedgerState } from "./memory-ledger-state.ts";
import type { Weather } from "./memory-recorder-journal.ts";

/** A ledger in memory that checks, with every insert, what a recorder owes it. */
export class MemoryLedger implements LedgerWriter, LedgerReader {
  readonly rows: LedgerRow[] = [];
  readonly seenAtMs = new Map<number, number>();
  writes = 0;
  private readonly state = new LedgerState();
  private readonly batches = new Map<string, string>();
  private readonly newest = new Map<string, number>();

  constructor(
    private readonly clock: Clock,
    private readonly random: Random,
    private readonly weather: Weather,
  ) {}

  async write(token: string, rows: readonly LedgerRow[]): Promise<void> {
    this.writes += 1;
    await sleep(this.clock, this.random.next() * this.weather.delayMsMax);
    const fate = this.random.next();
    if (fate < this.weather.failing / 3) throw new TransportError("lost on the way there");
    if (fate < (this.weather.failing * 2) / 3) {
      this.clock.setTimer(this.random.next() * 20_000, () => this.store(token, rows));
      throw new TransportError("still under way");
    }
    this.store(token, rows);
    if (fate < this.weather.failing) throw new TransportError("lost on the way back");
  }

  async page(query: EventQuery): Promise<EventPage> {
    return this.state.pageNow(query);
  }

  async job(tenantId: string, jobId: string): Promise<JobRecord | null> {
    return this.state.jobNow(tenantId, jobId);
  }

  private store(token: string, rows: readonly LedgerRow[]): void {
    const text = JSON.stringify(rows);
    const known = this.batches.get(token);
    assert(known === undefined || known === text, "a token names the same rows for ever");
    if (known !== undefined) return;
    this.batches.set(token, text);
    this.state.storeNow(token, rows);
    for (const row of rows) {
      assert(row.eventId > (this.newest.get(row.tenantId) ?? -1), "a tenant's events are stored in order");
      this.newest.set(row.tenantId, row.eventId);
      this.rows.push(row);
      this.seenAtMs.set(row.eventId, this.clock.nowMs());
    }
  }
}
