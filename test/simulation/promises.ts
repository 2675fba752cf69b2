/** What is checked after every step, a sentence each. */
export const PROMISES = {
  nothingLost: "nothing that was accepted is lost",
  everyJobEnds: "every accepted job ends, and everything is recorded, once the faults are over",
  stateAgrees: "the stores agree: a job is in flight or final, its events are in the outbox or in the event store",
  eventOnce: "each event is in the event store once, and none that did not happen",
  eventOrder: "a tenant's event ids rise, and become visible in their order",
  tokenFrozen: "a batch's token names the same rows for ever",
  recordedFirst: "nothing leaves the outbox before the event store has it",
  transitions: "a status follows the table and never goes back",
  eventAndStatus: "a final status and the event that tells of it come together",
  suppressed: "a suppressed recipient is never sent to",
  leaseHeld: "a process without a surely held lease calls no provider",
  takeover: "a lease is taken over only where its owner was not heard of for a whole term in which the queue answered",
  fence: "a process whose lease is over changes nothing in the queue",
  repeats:
    "a message is handed over again only after an answer that was not heard, a crash, or another owner's real takeover",
  order: "without faults a tenant's messages are handed over in the order in which they were accepted",
  fairShare: "no tenant with nothing under way is passed by another more often than its share",
  reserve: "a tenant that has something under way leaves the last quarter of the slots to others",
  freeSlot: "a tenant with nothing under way does not wait while a slot is free",
  memory: "what is held is bounded by the work in flight",
  attempts: "a job counts no more attempts than deliveries of it were started; an outage of its relay costs none",
  held: "a message that nobody refused fails only after its attempts, or after its hold",
  heldTooLong: "a message whose relay stays away fails when its hold is over",
  waits: "a message of a tenant that does nothing wrong is handed over in time, whatever its neighbours do",
  bytes: "what is read and waits is bounded in bytes: by call, by tenant and by process",
  share: "what is counted of a tenant's share of the queue is what it has unfinished, and never more than its quota",
  onTime: "a message that waits for its next try comes when it is due, whatever the queue's clock does",
  recordsLeave: "what is finished and recorded leaves the queue",
  lent: "what was lent is settled once, and only by whom it was lent to",
  oneEventAType: "a job has one event of a type, clicks one a link",
  reportedOnce: "a message that its provider has reported is handed out no more",
  reportKept: "a report about a message that was taken for recorded is in its job's history",
  idempotency: "an idempotency key names one job",
  cleanEnd: "a process that is told to stop stops in time and leaves no lease behind",
  noDefect: "the engine meets no error that it did not expect",
} as const;

export type PromiseName = keyof typeof PROMISES;

/** A promise that was not kept. */
export class Violation extends Error {
  override readonly name = "Violation";
  constructor(
    readonly promise: PromiseName,
    readonly detail: string,
  ) {
    super(`broken: ${PROMISES[promise]} (${detail})`);
  }
}

/** Takes note of the first promise that is broken. It does not throw: the engine would catch that and go on. */
export class Watch {
  violation: Violation | null = null;

  demand(isKept: boolean, promise: PromiseName, detail: () => string): void {
    if (!isKept) this.violation ??= new Violation(promise, detail());
  }
}
