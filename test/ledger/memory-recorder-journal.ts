import { type Clock, sleep } from "../../src/core/clock.ts";
import { TransportError, UnavailableError } from "../../src/core/errors.ts";
import { FENCED, type Fenced, type Lease, type RecordBatch, type RecorderJournal } from "../../src/core/journal.ts";
import type { LedgerRow } from "../../src/core/ledger.ts";
import type { Random } from "../../src/core/random.ts";
import { MemoryLeases } from "../support/memory-leases.ts";

/** The recorder's part of the journal in memory: leases, outboxes, and a mark that is fixed before rows are handed out. */
export class MemoryRecorderJournal extends MemoryLeases implements RecorderJournal {
  private readonly outboxes = new Map<number, { rows: LedgerRow[]; taken: number; marked: number }>();

  constructor(
    _clock: Clock,
    private readonly rowsMax: number,
  ) {
    super();
  }

  append(shard: number, rows: readonly LedgerRow[]): void {
    this.outbox(shard).rows.push(...rows);
  }

  waiting(): number {
    return Array.from(this.outboxes.values(), ({ rows }) => rows.length).reduce((sum, n) => sum + n, 0);
  }

  async record({ shard, token }: Lease, done: RecordBatch | null): Promise<RecordBatch | null | Fenced> {
    if (this.holder(shard) !== token) return FENCED;
    const outbox = this.outbox(shard);
    const markedToken = () => `s${shard}:${outbox.taken}-${outbox.taken + outbox.marked}`;
    if (done !== null && outbox.marked > 0 && done.token === markedToken()) {
      outbox.rows.splice(0, outbox.marked);
      outbox.taken += outbox.marked;
      outbox.marked = 0;
    }
    if (outbox.marked === 0) outbox.marked = Math.min(this.rowsMax, outbox.rows.length);
    if (outbox.marked === 0) return null;
    const rows = outbox.rows.slice(0, outbox.marked);
    return { token: markedToken(), rows, more: outbox.rows.length > rows.length };
  }

  private outbox(shard: number) {
    const known = this.outboxes.get(shard) ?? { rows: [], taken: 0, marked: 0 };
    this.outboxes.set(shard, known);
    return known;
  }
}

export interface Weather {
  /** Chance that a call fails: before its effect, or after it. */
  failing: number;
  delayMsMax: number;
}

/** One process's way to the journal: calls are late, lost before their effect or after it, and end when the process does. */
export function lossy(journal: RecorderJournal, clock: Clock, random: Random, weather: Weather) {
  const process = { dead: false };
  const never = new Promise<never>(() => {});
  async function pass<T>(call: () => Promise<T>): Promise<T> {
    await sleep(clock, random.next() * weather.delayMsMax);
    if (process.dead) return never;
    const fate = random.next();
    if (fate < weather.failing / 3) throw new UnavailableError("refused");
    if (fate < (weather.failing * 2) / 3) throw new TransportError("lost on the way there");
    const answer = await call();
    await sleep(clock, random.next() * weather.delayMsMax);
    if (process.dead) return never;
    if (fate < weather.failing) throw new TransportError("lost on the way back");
    return answer;
  }
  const way: RecorderJournal = {
    leases: (...args) => pass(() => journal.leases(...args)),
    acquire: (...args) => pass(() => journal.acquire(...args)),
    renew: (...args) => pass(() => journal.renew(...args)),
    release: (...args) => pass(() => journal.release(...args)),
    heartbeat: (...args) => pass(() => journal.heartbeat(...args)),
    resign: (...args) => pass(() => journal.resign(...args)),
    onRelease: (listener) => journal.onRelease((...hint) => process.dead || listener(...hint)),
    record: (...args) => pass(() => journal.record(...args)),
  };
  return { way, process };
}
