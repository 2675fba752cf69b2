import { type Clock, sleep } from "../../../src/domain/clock.ts";
import { TransportError, UnavailableError } from "../../../src/domain/errors.ts";
import type { StoredEventRow } from "../../../src/domain/jobs/event-store.ts";
import type {
  RecordAnswer,
  RecordBatch,
  RecorderQueue,
  RecordPiece,
  RecordTurn,
} from "../../../src/domain/jobs/queue.ts";
import type { Random } from "../../../src/domain/random.ts";
import { MemoryLeases } from "../../support/memory-leases.ts";

interface Outbox {
  readonly rows: StoredEventRow[];
  taken: number;
  marked: number;
  /** The pieces that are marked with it; undefined: there is no mark. */
  group?: readonly RecordPiece[];
}

/** The recorder's part of the queue in memory: leases, outboxes, and marks that are fixed before rows are handed out. */
export class MemoryRecorderQueue extends MemoryLeases implements RecorderQueue {
  private readonly outboxes = new Map<number, Outbox>();

  constructor(
    _clock: Clock,
    private readonly rowsMax: number,
    readonly shardsPerRecord: "all" | "one" = "all",
  ) {
    super();
  }

  append(shard: number, rows: readonly StoredEventRow[]): void {
    this.outbox(shard).rows.push(...rows);
  }

  waiting(): number {
    return Array.from(this.outboxes.values(), ({ rows }) => rows.length).reduce((sum, n) => sum + n, 0);
  }

  async record(turns: readonly RecordTurn[]): Promise<RecordAnswer> {
    const held = turns.filter(({ lease }) => this.holder(lease.shard) === lease.token);
    for (const turn of held) this.begin(turn);
    const taking = held.filter(({ takes }) => takes).map(({ lease }) => lease.shard);
    const free = taking.filter((shard) => this.outbox(shard).group === undefined);
    const batches = new Map<string, RecordBatch>();
    for (const shard of taking) {
      const { group } = this.outbox(shard);
      const [first] = group ?? [];
      if (group === undefined || first === undefined) continue;
      const isWhole = group.every((piece) => this.outbox(piece.shard).group === group);
      const own = group.filter((piece) => piece.shard === shard);
      const known = batches.get(first.batch)?.pieces ?? [];
      const pieces = isWhole ? group : [...known, ...own];
      batches.set(first.batch, { token: first.batch, pieces, state: isWhole ? "found" : "recorded" });
    }
    const frozen = this.freeze(free);
    const fenced = turns.filter((turn) => !held.includes(turn)).map(({ lease }) => lease.shard);
    const more = taking.filter((shard) => this.outbox(shard).rows.length > this.outbox(shard).marked);
    return { fenced, batches: [...batches.values(), ...frozen], more };
  }

  private begin({ lease: { shard }, done, refused }: RecordTurn): void {
    const outbox = this.outbox(shard);
    const marked = outbox.group?.find((piece) => piece.shard === shard);
    if (done !== null && marked?.token === done.token && marked.batch === done.batch) {
      outbox.rows.splice(0, outbox.marked);
      outbox.taken += outbox.marked;
      outbox.marked = 0;
      delete outbox.group;
    }
    const { group } = outbox;
    const isRefused = group?.[0]?.batch === refused;
    if (group === undefined || !isRefused || group.some((piece) => this.outbox(piece.shard).group !== group)) return;
    for (const piece of group) this.outbox(piece.shard).group = [{ ...piece, batch: piece.token }];
  }

  private freeze(shards: readonly number[]): readonly RecordBatch[] {
    const pieces = shards.flatMap((shard) => {
      const { rows, taken } = this.outbox(shard);
      const marked = Math.min(this.rowsMax, rows.length);
      const token = `s${shard}:${taken}-${taken + marked}`;
      return marked === 0 ? [] : [{ shard, token, batch: "", rows: rows.slice(0, marked) }];
    });
    if (pieces.length === 0) return [];
    const batch = pieces.map(({ token }) => token).join("_");
    const group = pieces.map((piece) => ({ ...piece, batch }));
    for (const { shard, rows } of group) Object.assign(this.outbox(shard), { group, marked: rows.length });
    return [{ token: batch, pieces: group, state: "frozen" }];
  }

  private outbox(shard: number): Outbox {
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

/** One process's way to the queue: calls are late, lost before their effect or after it, and end when the process does. */
export function lossy(queue: RecorderQueue, clock: Clock, random: Random, weather: Weather) {
  const process = { dead: false };
  const never = new Promise<never>(() => {});
  async function pass<T>(call: () => Promise<T>): Promise<T> {
    await sleep(clock, random.next() * weather.delayMsMax);
    if (process.dead) return never;
    const roll = random.next();
    if (roll < weather.failing / 3) throw new UnavailableError("refused");
    if (roll < (weather.failing * 2) / 3) throw new TransportError("lost on the way there");
    const answer = await call();
    await sleep(clock, random.next() * weather.delayMsMax);
    if (process.dead) return never;
    if (roll < weather.failing) throw new TransportError("lost on the way back");
    return answer;
  }
  const way: RecorderQueue = {
    shardsPerRecord: queue.shardsPerRecord,
    leases: (...args) => pass(() => queue.leases(...args)),
    acquire: (...args) => pass(() => queue.acquire(...args)),
    renew: (...args) => pass(() => queue.renew(...args)),
    release: (...args) => pass(() => queue.release(...args)),
    heartbeat: (...args) => pass(() => queue.heartbeat(...args)),
    resign: (...args) => pass(() => queue.resign(...args)),
    onRelease: (listener) => queue.onRelease((...hint) => process.dead || listener(...hint)),
    record: (...args) => pass(() => queue.record(...args)),
  };
  return { way, process };
}
