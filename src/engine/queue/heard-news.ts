import type { Redis } from "ioredis";
import { type Clock, sleep } from "../../domain/clock.ts";
import { UnavailableError } from "../../domain/errors.ts";
import type { CancelListener, LeaseRole } from "../../domain/jobs/queue.ts";
import { engineLimits } from "../limits.ts";
import { type ChannelLetters, decodeTenantQueues } from "./codec.ts";
import type { RedisConnection } from "./connection.ts";
import { CANCEL_CHANNEL, CHANGED_CHANNEL, JOBS_CHANNEL, QUESTIONS_CHANNEL, RELEASED_CHANNEL } from "./keys.ts";

/** The channels on which processes notify each other. All messages are hints: each may be lost. */
const NEWS_CHANNELS = [JOBS_CHANNEL, CANCEL_CHANNEL, CHANGED_CHANNEL, RELEASED_CHANNEL, QUESTIONS_CHANNEL] as const;

/** After a refusal; a broken connection is subscribed again as soon as it is back. */
const ASK_AGAIN_MS = 1_000;

/**
 * Subscribes a connection to all channels, and again whenever it has been replaced. Resolves when the subscriptions are
 * active.
 */
export function hearNews(connection: Redis, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    const subscribe = () => {
      if (connection.status !== "ready") return;
      connection.subscribe(...NEWS_CHANNELS).then(
        () => resolve(),
        () => clock.setTimer(ASK_AGAIN_MS, subscribe),
      );
    };
    connection.on("ready", subscribe);
    subscribe();
  });
}

/** Resolves when all connections are open and `hearing` has resolved. Rejects with `UnavailableError`. */
export async function whenReady(
  connections: readonly RedisConnection[],
  hearing: Promise<void>,
  clock: Clock,
): Promise<void> {
  const giveUpAtMs = clock.monotonicMs() + engineLimits.queueStartMs;
  let hears = false;
  void hearing.then(() => {
    hears = true;
  });
  while (!hears || connections.some(({ status }) => status !== "ready")) {
    if (clock.monotonicMs() > giveUpAtMs) throw new UnavailableError("no Redis answers at the address in REDIS_URL");
    await sleep(clock, 20);
  }
}

type ReleaseListener = (role: LeaseRole, shard: number) => void;
type JobsListener = (shard: number) => void;
/** Null: a plan has changed. */
type ChangeListener = (tenantId: string | null) => void;

/** Forwards other processes' messages to listeners. */
export class HeardNews {
  private readonly releases = new Set<ReleaseListener>();
  private readonly jobs = new Set<JobsListener>();
  private readonly cancels = new Set<CancelListener>();
  private readonly changes = new Set<ChangeListener>();

  constructor(
    private readonly letters: ChannelLetters,
    private readonly onQuestion: (text: string) => void,
  ) {}

  hear(channel: string, text: string): void {
    if (channel === JOBS_CHANNEL) for (const listener of this.jobs) listener(Number(text));
    else if (channel === RELEASED_CHANNEL) this.hearRelease(text);
    else if (channel === QUESTIONS_CHANNEL) this.onQuestion(text);
    else if (channel === CANCEL_CHANNEL) this.hearCancel(text);
    else for (const listener of this.changes) listener(text === "" ? null : text);
  }

  onRelease(listener: ReleaseListener): () => void {
    return added(this.releases, listener);
  }

  onJobs(listener: JobsListener): () => void {
    return added(this.jobs, listener);
  }

  onCancel(listener: CancelListener): () => void {
    return added(this.cancels, listener);
  }

  onChange(listener: ChangeListener): () => void {
    return added(this.changes, listener);
  }

  private hearCancel(text: string): void {
    const [shard, name = "", jobId = ""] = text.split(" ");
    for (const tenantQueue of decodeTenantQueues(this.letters, [name])) {
      for (const listener of this.cancels) listener(Number(shard), tenantQueue, jobId);
    }
  }

  private hearRelease(text: string): void {
    const [role, shard] = text.split(" ");
    if (role !== "dispatcher" && role !== "recorder") return;
    for (const listener of this.releases) listener(role, Number(shard));
  }
}

/** Returns a function that removes the listener. */
function added<T>(listeners: Set<T>, listener: T): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
