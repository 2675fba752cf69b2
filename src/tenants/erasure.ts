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
  /** Identifies the recipient to whoever has this registry's key, and to nobody else. */
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
  /** False: the call is to be repeated. */
  readonly isComplete: boolean;
}

/** How long to wait for the queue: most jobs end at once. */
const QUEUE_WAIT_MS = 4_000;
const LOOK_MS = 200;

/**
 * Erases a recipient with one tenant.
 *
 * The queue comes first, which from then on says that the recipient was erased, then the list of suppressions, which asks it about
 * late reports, then what a job leaves behind: nothing that a later step removed comes back from an earlier place, but for a
 * delivery that was in flight. Each step is safe to repeat, so the whole is.
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

/** What is left once the jobs have ended and are in the history, or have had the time for it. */
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
