import { type Clock, sleep } from "../domain/clock.ts";
import type { SandboxView } from "../domain/jobs/report.ts";
import { type Done, done, type Missing } from "../domain/store-result.ts";
import type { ErasedJobs, HistoryErasure, JobErasure } from "../domain/tenants/erasure.ts";
import type { RecipientIndex } from "../domain/tenants/recipient-index.ts";
import type { TenantRef } from "../domain/tenants/tenant.ts";
import type { SuppressionList } from "./suppression-list.ts";

export interface ErasurePorts {
  readonly suppressions: Pick<SuppressionList, "erase">;
  readonly queue: JobErasure;
  readonly history: HistoryErasure;
  /** Null: real providers are in use. */
  readonly sandbox: Pick<SandboxView, "erase"> | null;
  readonly recipients: RecipientIndex;
  readonly clock: Clock;
}

export interface Erasure {
  /** Identifies the recipient only to holders of this registry's key. */
  readonly recipientHash: string;
  readonly erased: {
    readonly unfinishedJobs: number;
    readonly finishedJobs: number;
    readonly events: number;
    readonly payloads: number;
    readonly suppressions: number;
    readonly sandboxMessages: number;
  };
  /** Unfinished jobs that still wait for their end. */
  readonly unfinishedLeft: number;
  /** False: the call must be repeated. */
  readonly isComplete: boolean;
}

/** How long to wait for the queue: most jobs end at once. */
const QUEUE_WAIT_MS = 4_000;
const LOOK_MS = 200;

/**
 * Erases a recipient with one tenant.
 *
 * The queue comes first, and marks the recipient as erased; then the suppression list, which checks that mark on late reports;
 * then the remains of jobs. In this order, removed data cannot return from an earlier store, except through a delivery that was
 * in flight. Each step is safe to repeat, and so is the whole.
 */
export async function eraseRecipient(
  { suppressions, queue, history, sandbox, recipients, clock }: ErasurePorts,
  tenant: TenantRef,
  recipient: string,
  { isSuppressed }: { readonly isSuppressed: boolean },
): Promise<Done<Erasure> | Missing<"tenant">> {
  const first = await queue.eraseJobs(tenant, recipient);
  const listed = await suppressions.erase(tenant, recipient, isSuppressed);
  if (listed.kind === "missing") return listed;
  const left = await settled(queue, { tenant, recipient, clock }, first);
  const { finishedJobs, events, payloads, isComplete } = await history.eraseRecipient(tenant.tenantId, recipient);
  const sandboxMessages = (await sandbox?.erase(recipient)) ?? 0;
  const isQueueDone = left.unfinished + left.unrecorded === 0 && !left.isIncomplete;
  return done({
    recipientHash: recipients.hashRecipient(recipient),
    erased: {
      unfinishedJobs: first.unfinished - left.unfinished,
      finishedJobs,
      events,
      payloads,
      suppressions: listed.value,
      sandboxMessages,
    },
    unfinishedLeft: left.unfinished,
    isComplete: isQueueDone && isComplete,
  });
}

/** Waits until the jobs have ended and are in the history, or the time is over; returns the unfinished ones. */
async function settled(
  queue: JobErasure,
  { tenant, recipient, clock }: { readonly tenant: TenantRef; readonly recipient: string; readonly clock: Clock },
  first: ErasedJobs,
): Promise<ErasedJobs> {
  const untilMs = clock.monotonicMs() + QUEUE_WAIT_MS;
  let left = first;
  while (left.unfinished + left.unrecorded > 0 && clock.monotonicMs() < untilMs) {
    await sleep(clock, LOOK_MS);
    left = await queue.eraseJobs(tenant, recipient);
  }
  return left;
}
