import { type Clock, sleep } from "../../src/core/clock.ts";
import { TransportError, UnavailableError } from "../../src/core/errors.ts";
import {
  FENCED,
  type Fenced,
  type Lease,
  type LeaseRole,
  type RecordBatch,
  type RecorderJournal,
} from "../../src/core/journal.ts";
import type { LedgerRow } from "../../src/core/ledger.ts";
import type { Random } from "../../src/core/random.ts";

/** The recorder's part of the journal in memory: leases, outboxes, and a mark that is fixed before rows are handed out. */
export class MemoryRecorderJournal implements RecorderJournal {
  private readonly leases = new Map<number, { readonly token: string; untilMs: number }>();
  private readonly members = new Map<string, number>();
  private readonly outboxes = new Map<number, { rows: LedgerRow[]; taken: number; marked: number }>();
  private tokens = 0;

  constructor(
    private readonly clock: Clock,
    private readonly rowsMax: number,
  ) {}

  append(shard: number, rows: readonly LedgerRow[]): void {
    this.outbox(shard).rows.push(...rows);
  }

  waiting(): number {
    return Array.from(this.outboxes.values(), ({ rows }) => rows.length).reduce((sum, n) => sum + n, 0);
  }

  holder(shard: number): string | null {
    const lease = this.leases.get(shard);
    return lease !== undefined && lease.untilMs > this.clock.monotonicMs() ? lease.token : null;
  }

  async acquire(shard: number, role: LeaseRole, owner: string, ttlMs: number): Promise<Lease | null> {
    if (this.holder(shard) !== null) return null;
    const token = `${owner}-${(this.tokens += 1)}`;
    this.leases.set(shard, { token, untilMs: this.clock.monotonicMs() + ttlMs });
    return { shard, role, token };
  }

  async renew({ shard, token }: Lease, ttlMs: number): Promise<boolean> {
    const lease = this.leases.get(shard);
    if (lease === undefined || this.holder(shard) !== token) return false;
    lease.untilMs = this.clock.monotonicMs() + ttlMs;
    return true;
  }

  async release({ shard, token }: Lease): Promise<void> {
    if (this.holder(shard) === token) this.leases.delete(shard);
  }

  async heartbeat(_role: LeaseRole, owner: string, ttlMs: number): Promise<number> {
    const nowMs = this.clock.monotonicMs();
    this.members.set(owner, nowMs + ttlMs);
    return Array.from(this.members.values()).filter((untilMs) => untilMs > nowMs).length;
  }

  async resign(_role: LeaseRole, owner: string): Promise<void> {
    this.members.delete(owner);
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
    acquire: (...args) => pass(() => journal.acquire(...args)),
    renew: (...args) => pass(() => journal.renew(...args)),
    release: (...args) => pass(() => journal.release(...args)),
    heartbeat: (...args) => pass(() => journal.heartbeat(...args)),
    resign: (...args) => pass(() => journal.resign(...args)),
    record: (...args) => pass(() => journal.record(...args)),
  };
  return { way, process };
}
