import { isOutage, TransportError, UnavailableError } from "../../domain/errors.ts";
import { FairTurns } from "../../domain/fair-turns.ts";
import { idInBatch, type JobIds } from "../../domain/ids.ts";
import type {
  Batch,
  Batches,
  BatchItemAnswer,
  BatchKey,
  BatchOutcome,
  BatchQueue,
  BatchResult,
  KnownBatch,
  MadeMessage,
  MadePart,
  NoRoom,
} from "../../domain/jobs/batch.ts";
import type { RateState } from "../../domain/jobs/queue.ts";

export interface BatchPorts {
  readonly queue: BatchQueue;
  readonly jobIds: JobIds;
}

/** How often a batch starts over because another call of the same request was first. */
const RUNS_MAX = 3;
/** Batches of one tenant that work at a time, and those that may wait behind them. */
const AT_A_TIME = 3;
const WAITING_MAX = 64;

/**
 * Splits batches into pieces that enter the queue one after the other, so a large batch does not block other requests.
 *
 * B1. Under a key each message is queued once, however often, when and by whom the request is repeated: the ids of its
 *     jobs are derived from the base that has the key, and the queue records what it has queued in the same call.
 * B2. An answer is final if any message was queued: all messages are queued, or their refusals stored, before it is
 *     sent. A repeat gets the same answer. A batch without a queued message leaves no trace.
 * B3. A request that died half-way is continued by its repeat.
 * B4. At most three of a tenant's batches enter the queue at a time in this process. Its other batches wait for them;
 *     other tenants' batches do not.
 */
export class QueuedBatches implements Batches {
  private readonly turns = new FairTurns({ all: Number.POSITIVE_INFINITY, each: AT_A_TIME });

  constructor(private readonly ports: BatchPorts) {}

  async accept(batch: Batch): Promise<BatchResult> {
    const { tenantId } = batch.tenant;
    if (this.turns.waiting(tenantId) >= WAITING_MAX) return { kind: "busy" };
    return this.turns.inTurn(tenantId, () => this.run(batch));
  }

  private async run(batch: Batch): Promise<BatchResult> {
    const { queue, jobIds } = this.ports;
    const { tenant, idempotency } = batch;
    if (idempotency === null) {
      const result = await new BatchRun(queue, batch, { baseId: jobIds.nextBatch(), key: null, known: null }).result();
      if (result === "taken") throw new Error("a batch without a key was taken for another");
      return result;
    }
    for (let runs = 0; runs < RUNS_MAX; runs += 1) {
      const known = await queue.batchUnder(tenant, idempotency);
      if (known?.isSame === false) return { kind: "conflict" };
      if (known !== null && isComplete(known, batch.size)) return rebuildAnswer(known, batch.size);
      const baseId = known?.baseId ?? jobIds.nextBatch();
      const key = { ...idempotency, baseId, run: jobIds.next() };
      const result = await new BatchRun(queue, batch, { baseId, key, known }).result();
      if (result !== "taken") return result;
    }
    throw new UnavailableError("other calls of the same batch were always first");
  }
}

function isComplete({ queued, refused }: KnownBatch, size: number): boolean {
  return refused !== null || indexesIn(queued).size === size;
}

function indexesIn(ranges: KnownBatch["queued"]): ReadonlySet<number> {
  const indexes = new Set<number>();
  for (const [from, to] of ranges) for (let index = from; index <= to; index += 1) indexes.add(index);
  return indexes;
}

/** Rebuilds the answer to an earlier request. */
function rebuildAnswer({ baseId, queued, refused }: KnownBatch, size: number): BatchResult {
  // In the form written by `BatchRun.end`. Messages that another call queued meanwhile count as queued.
  const refusals = new Map(JSON.parse(refused ?? "[]") as (readonly [number, string])[]);
  for (const index of indexesIn(queued)) refusals.delete(index);
  const outcomes = Array.from({ length: size }, (_, index): BatchOutcome => {
    const refusal = refusals.get(index);
    return refusal === undefined ? { jobId: idInBatch(baseId, index) } : { refusal };
  });
  return { kind: "answered", outcomes, isReplay: true, rate: null };
}

interface RunOptions {
  readonly baseId: string;
  readonly key: BatchKey | null;
  readonly known: KnownBatch | null;
}

/** The processing of one request's batch. */
class BatchRun {
  private readonly outcomes: (BatchOutcome | undefined)[];
  private rate: RateState | null = null;
  private queued = 0;
  /** Messages of this run that were offered to the queue, and how many of them it refused for lack of capacity. */
  private offered = 0;
  private roomless = 0;
  private isClaimed: boolean;

  constructor(
    private readonly queue: BatchQueue,
    private readonly batch: Batch,
    private readonly options: RunOptions,
  ) {
    const { baseId, known } = options;
    this.outcomes = new Array<BatchOutcome | undefined>(batch.size).fill(undefined);
    this.isClaimed = known !== null;
    for (const index of indexesIn(known?.queued ?? [])) this.outcomes[index] = { jobId: idInBatch(baseId, index) };
  }

  async result(): Promise<BatchResult | "taken"> {
    const { batch } = this;
    const ids = {
      jobId: (index: number) => idInBatch(this.options.baseId, index),
      isQueued: (index: number) => this.outcomes[index] !== undefined,
    };
    let noRoom: NoRoom | null = null;
    for (let from = 0; from < batch.size && noRoom === null; ) {
      let part: MadePart | null = null;
      try {
        part = await batch.make(from, ids);
        const entered = await this.enter(part.messages);
        if (entered === "conflict") return { kind: "conflict" };
        if (entered === "taken") return "taken";
        noRoom = entered;
        from = part.next;
      } catch (error) {
        noRoom = this.noRoomAfter(error);
        this.refuse(part?.messages ?? [], noRoom);
        if (noRoom === "unknown") noRoom = "away";
      }
    }
    return await this.end(noRoom);
  }

  /** Returns why the queue cannot take more messages; null: it can. */
  private async enter(messages: readonly MadeMessage[]): Promise<NoRoom | "taken" | "conflict" | null> {
    if (messages.length === 0) return null;
    const { tenant, requestsPerMinute, isCounted } = this.batch;
    const items = messages.map((message) => ({ index: message.index, job: "job" in message ? message.job : null }));
    const isFirstCounted = isCounted && this.offered === 0;
    this.offered += items.length;
    const entered = await this.queue.acceptPiece(tenant, requestsPerMinute, {
      key: this.options.key,
      items,
      isFirstCounted,
    });
    if (entered.kind === "answered") return this.note(messages, entered.answers);
    // No other process can take a key that this run has claimed, unless the queue lost it.
    if (this.isClaimed) throw new TransportError("the queue has forgotten the key of a batch");
    return entered.kind;
  }

  private note(messages: readonly MadeMessage[], answers: readonly BatchItemAnswer[]): NoRoom | null {
    let noRoom: NoRoom | null = null;
    const before = this.queued;
    for (const [i, message] of messages.entries()) {
      const answer = answers[i];
      if (answer === undefined) throw new Error("the queue answered fewer messages than it was given");
      noRoom = roomAfter(answer);
      if (answer.rate.limit > 0) this.rate = answer.rate;
      this.outcomes[message.index] = this.toOutcome(message, answer);
      if (answer.kind !== "accepted") continue;
      this.isClaimed = true;
      if (answer.isEarlier !== true) this.queued += 1;
    }
    if (this.queued > before) this.batch.onQueued(this.queued - before);
    return noRoom;
  }

  /** A message beyond the limit is refused for that reason, even if it has other faults. */
  private toOutcome(message: MadeMessage, answer: BatchItemAnswer): BatchOutcome {
    const noRoom = roomAfter(answer);
    if (noRoom !== null) {
      this.roomless += 1;
      return { refusal: this.batch.describeRefusal(noRoom) };
    }
    return "refusal" in message ? { refusal: message.refusal } : { jobId: message.job.jobId };
  }

  /** Rethrows errors other than outages, and outages for which the request should be repeated. */
  private noRoomAfter(error: unknown): NoRoom {
    if (!isOutage(error) || this.options.key !== null || this.queued === 0) throw error;
    return error instanceof TransportError ? "unknown" : "away";
  }

  private refuse(messages: readonly MadeMessage[], noRoom: NoRoom): void {
    for (const message of messages) {
      const refusal = "refusal" in message ? message.refusal : this.batch.describeRefusal(noRoom);
      this.outcomes[message.index] = { refusal };
    }
  }

  /** `noRoom`: why the remaining messages were not offered to the queue. */
  private async end(noRoom: NoRoom | null): Promise<BatchResult> {
    const { batch } = this;
    const { rate } = this;
    if (rate !== null && this.roomless > 0 && this.roomless === this.offered && this.options.known === null) {
      if (noRoom !== null && noRoom !== "unknown" && noRoom !== "away") return { kind: "no_room", why: noRoom, rate };
    }
    const hasJobs = this.outcomes.some((outcome) => outcome !== undefined && "jobId" in outcome);
    const outcomes = this.outcomes.map((outcome) => outcome ?? { refusal: batch.describeRefusal(noRoom ?? "away") });
    const refused = outcomes.flatMap((outcome, index) => ("refusal" in outcome ? [[index, outcome.refusal]] : []));
    if (this.options.key !== null && hasJobs && refused.length > 0) {
      await this.queue.endBatch(batch.tenant, this.options.baseId, JSON.stringify(refused));
    }
    return { kind: "answered", outcomes, isReplay: false, rate };
  }
}

function roomAfter(answer: BatchItemAnswer): NoRoom | null {
  if (answer.kind === "limited") return "limited";
  return answer.kind === "queue_full" ? answer.what : null;
}
