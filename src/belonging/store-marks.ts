import type { Config } from "../config/config.ts";
import { type Clock, waitAtMost } from "../domain/clock.ts";
import { isOutage } from "../domain/errors.ts";
import { Repeated } from "../domain/repeated.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { RedisQueue } from "../engine/queue/redis-queue.ts";
import type { Database } from "../storage/postgres/database.ts";
import { noteMark, putOnDisk, type QueuedThen } from "../storage/registry-identity.ts";
import type { Checked, CheckedEventStore } from "./start-checks.ts";
import { MARK_OF } from "./store-belongings.ts";

const MARK_MS = 5_000;
/** How long a stop waits for stores that may be away. */
const STOP_MS = 1_000;
/** Rounds between two counts of what is queued: counting a backlog of many tenants takes Redis some 100 ms. */
const COUNT_EVERY = 12;
/** Rounds between two marks in the event store: each is a part to merge. */
const STORE_EVERY = 60;

export interface StoreMarksOptions {
  readonly config: Pick<Config, "roles" | "shards" | "databaseUrl">;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly queue: Pick<RedisQueue, "meta" | "depth">;
  readonly database: Database;
  readonly eventStore: Pick<CheckedEventStore, "belonging"> | null;
  readonly checked: Pick<Checked, "queue" | "registryMark" | "isEventStoreOurs">;
  /** Another store is there in place of ours: what is accepted from now on would be lost, or be another installation's. */
  onForeign(reason: string): void;
}

/**
 * Raises the queue's mark while the process runs, and tells it to the stores beside it, by which a start notices an older copy of one
 * of them (store-belongings.ts). It also notices a queue that was emptied or swapped meanwhile.
 *
 * A store is told one less than the mark: what the queue had reached before, so its replica has it, too. The queue notes what a store
 * was told a round later, when that store's replica has it. An embedded registry is told for certain only at a checkpoint, so of its
 * marks the queue notes the first and the last.
 */
export class StoreMarks {
  private readonly rounds: Repeated;
  private round = 0;
  private ending: Promise<void> | null = null;
  /** The marks of the other stores for the queue to record. */
  private readonly told: Record<string, number> = {};

  constructor(private readonly options: StoreMarksOptions) {
    this.told[MARK_OF.registry] = options.checked.registryMark;
    this.rounds = new Repeated(
      () => this.attempt(() => this.mark()),
      options.clock,
      () => MARK_MS,
    );
  }

  /** Safe to repeat. */
  start(): void {
    this.rounds.start();
  }

  /** Marks once more, so that a copy of now is older than what follows. Safe to repeat. */
  stop(): Promise<void> {
    this.ending ??= this.end();
    return waitAtMost(this.options.clock, STOP_MS, this.ending);
  }

  private async end(): Promise<void> {
    await this.rounds.stop();
    await this.attempt(() => this.markLast());
  }

  private async mark(): Promise<void> {
    const { config, queue, checked } = this.options;
    // The first is beyond all that a copy of before can have.
    const mark = await queue.meta.mark(checked.queue, this.round === 0 ? 2 : 1, this.told);
    if (mark === null) return this.foreign("the queue was emptied, or another one is there in its place");
    this.round += 1;
    if (!config.roles.includes("recorder")) return;
    if (await this.tellRegistry(mark - 1, (this.round - 1) % COUNT_EVERY === 0)) await this.tellEventStore(mark - 1);
  }

  private async markLast(): Promise<void> {
    const { config, queue, checked, database } = this.options;
    const mark = await queue.meta.mark(checked.queue, 1, this.told);
    if (mark === null || !config.roles.includes("recorder")) return;
    if (!(await this.tellRegistry(mark, true))) return;
    if (config.databaseUrl === null) await database.read(putOnDisk);
    await queue.meta.mark(checked.queue, 0, { ...this.told, [MARK_OF.registry]: mark });
  }

  /** False: the registry belongs to another queue by now. */
  private async tellRegistry(mark: number, counts: boolean): Promise<boolean> {
    const { config, database, checked } = this.options;
    const queued = counts ? await this.count() : null;
    if (!(await database.write((db) => noteMark(db, { queue: checked.queue, mark, queued })))) {
      this.foreign("the registry belongs to another queue by now");
      return false;
    }
    if (config.databaseUrl !== null) this.told[MARK_OF.registry] = mark;
    return true;
  }

  private async tellEventStore(mark: number): Promise<void> {
    const { eventStore, checked } = this.options;
    const isDue = this.told[MARK_OF.event_store] === undefined || this.round % STORE_EVERY === 0;
    if (eventStore === null || !isDue || !checked.isEventStoreOurs()) return;
    if (!(await eventStore.belonging.noteMark(checked.queue, mark))) {
      return this.foreign("the event store belongs to another queue by now");
    }
    this.told[MARK_OF.event_store] = mark;
  }

  /** Of each shard what can be counted shortly. */
  private async count(): Promise<QueuedThen> {
    const { config, queue, clock } = this.options;
    const at = new Date(clock.nowMs());
    let jobs = 0;
    for (let shard = 0; shard < config.shards; shard += 1) {
      const { parked, measured } = await queue.depth(shard);
      jobs += parked + measured.reduce((sum, one) => sum + one.jobs, 0);
    }
    return { jobs, at };
  }

  private async attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      // A store that is away is told about elsewhere.
      this.options.telemetry.log(isOutage(error) ? "debug" : "warn", "the stores were not marked", {
        error: String(error),
      });
    }
  }

  private foreign(reason: string): void {
    this.options.onForeign(`${reason}: what would be accepted now could be lost`);
  }
}
