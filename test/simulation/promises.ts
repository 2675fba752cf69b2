/** The promises that are checked after every step, one sentence each. */
export const PROMISES = {
  nothingLost: "nothing accepted is lost",
  everyJobEnds: "every accepted job ends, and all events are recorded, once the faults are over",
  stateAgrees: "the stores agree: a job is in flight or final, its events are in the outbox or in the event store",
  eventOnce: "each event is in the event store once, and none that did not happen",
  eventOrder: "a tenant's event ids rise, and become visible in their order",
  tokenFrozen: "a batch's token names the same rows for ever",
  recordedFirst: "nothing leaves the outbox before the event store has it",
  retried: "a failed job begins another life only when an operator retries that very failure",
  transitions: "a status follows the table and never goes back",
  eventAndStatus: "a final status and its event come together",
  suppressed: "a suppressed recipient is never sent to",
  canceled: "a cancelled message is never sent",
  fallback: "a fallback is sent if its message was not received by its turn, and only then",
  leaseHeld: "a process without a surely held lease calls no provider",
  takeover: "a lease is taken over only if its owner was silent for a whole term in which the queue answered",
  fence: "a process without the lease changes nothing in the queue",
  repeats: "a message is handed over again only after a lost answer, a crash, or another owner's real takeover",
  order: "without faults a tenant's messages are handed over in the order of their acceptance",
  fairShare: "no tenant with nothing in flight is passed again and again by one that has used more slot time",
  reserve:
    "tenants whose messages take long leave the last quarter of the slots to others, and all that are busy the last few",
  freeSlot: "a tenant with nothing in flight does not wait while a slot is free that it may take",
  memory: "memory is bounded by the work in flight",
  attempts: "a job counts no more attempts than deliveries started; an outage of its relay costs none",
  held: "a message that nobody refused fails only after its last attempt, or after its hold",
  heldTooLong: "a message whose relay stays away fails when its hold is over",
  paused: "no delivery of a paused tenant starts",
  waits: "a well-behaved tenant's message is handed over in time, whatever its neighbours do",
  bytes: "pulled and waiting payloads are bounded in bytes: per call, per tenant and per process",
  share: "a tenant's counted share of the queue equals its unfinished jobs, and never exceeds its quota",
  onTime: "a retry or a scheduled message comes when it is due, whatever the queue's clock does",
  recordsLeave: "finished and recorded jobs leave the queue",
  lent: "a lent job is settled once, and only by the process that delivers it",
  oneEventAType: "a job has one event per type, clicks one per link",
  reportedOnce: "a message that its provider reported is not handed out again",
  taken: "a message is sent when its provider has it, whoever has followed its links",
  reportKept: "a report that was acknowledged is in its job's history",
  idempotency: "an idempotency key names one job",
  batch: "each message of a batch under a key is queued once, and the answer names its job",
  cleanEnd: "a stopping process stops in time and leaves no lease behind",
  noDefect: "the engine meets no unexpected error",
} as const;

export type PromiseName = keyof typeof PROMISES;

/** A broken promise. */
export class Violation extends Error {
  override readonly name = "Violation";
  constructor(
    readonly promise: PromiseName,
    readonly detail: string,
  ) {
    super(`broken: ${PROMISES[promise]} (${detail})`);
  }
}

/** Records the first broken promise. It does not throw: the engine would catch the error and go on. */
export class Watch {
  violation: Violation | null = null;

  demand(isKept: boolean, promise: PromiseName, detail: () => string): void {
    if (!isKept) this.violation ??= new Violation(promise, detail());
  }
}
