import { isFinal } from "../../src/domain/jobs/job.ts";
import type { World } from "./world.ts";

/** Compares the queue, the outbox and the event store as a whole. Costs more than a step, so it comes less often. */
export function auditState(world: World): void {
  const { state, jobs, eventStore, watch, drawn } = world;
  world.queueChecker.audit();
  if (drawn.healthy.size > 0) {
    world.waits.auditHeld(jobs.jobs.values(), ({ tenant }) => {
      const sinceMs = world.relays.awaySinceMs(tenant);
      return sinceMs === null ? null : Math.max(sinceMs, world.operator.pausedUntilMs(tenant.tenantId));
    });
  }
  const inFlight = new Set<string>();
  const inOutbox = new Set<string>();
  for (let number = 0; number < drawn.shards; number += 1) {
    const shard = state.look(number);
    world.queueChecker.compareShares(
      number,
      drawn.tenants.filter((each) => each.shard === number).map((each) => each.tenantId),
    );
    for (const jobId of shard.waiting) {
      watch.demand(!inFlight.has(jobId), "stateAgrees", () => `${jobId} waits twice`);
      inFlight.add(jobId);
    }
    for (const { tenantId, eventId } of shard.outbox) inOutbox.add(`${tenantId}#${eventId}`);
  }
  for (const { jobId, status, isForgotten, isExcused } of jobs.jobs.values()) {
    const isRight = isForgotten || isExcused || inFlight.has(jobId) !== isFinal(status);
    watch.demand(isRight, "stateAgrees", () => `${jobId} is ${status}, waiting: ${inFlight.has(jobId)}`);
  }
  if (!jobs.isClockSound) return;
  for (const key of jobs.events.keys()) {
    const isKept = jobs.forgottenEvents.has(key) || inOutbox.has(key) || eventStore.hasKey(key);
    watch.demand(isKept, "stateAgrees", () => `event ${key} is neither in the outbox nor in the event store`);
  }
}

/** Whether every accepted job has ended and is recorded, and no caller waits. */
export function isSettled(world: World): boolean {
  const { state, jobs, load, network, drawn } = world;
  if (load.inFlight > 0 || network.straying > 0 || world.hasReportsInFlight) return false;
  if (world.operator.isRetrying(world.places)) return false;
  for (const { status, isForgotten } of jobs.jobs.values()) if (!isFinal(status) && !isForgotten) return false;
  for (let shard = 0; shard < drawn.shards; shard += 1) {
    const { waiting, outbox, hasMark } = state.look(shard);
    if (waiting.length > 0 || outbox.length > 0 || hasMark) return false;
  }
  return true;
}

/** Whether all that has ended has left the queue. */
export function hasLeft({ state, jobs }: World): boolean {
  return [...jobs.jobs.values()].every(({ jobId, tenant }) => state.look(tenant.shard).record(jobId) === null);
}

/** Checks the invariants that hold when all is settled and every process has stopped. */
export function auditEnd(world: World): void {
  auditState(world);
  const { state, jobs, eventStore, watch, drawn } = world;
  for (const truth of jobs.jobs.values()) {
    if (truth.isForgotten || truth.isExcused || !jobs.isClockSound) continue;
    const recorded = eventStore.job(truth.tenant.tenantId, truth.jobId);
    const agrees = recorded?.status === truth.status && recorded.events.length === truth.events;
    watch.demand(
      agrees,
      "stateAgrees",
      () => `${truth.jobId} is ${truth.status}, in the event store ${recorded?.status}`,
    );
  }
  for (let number = 0; number < drawn.shards; number += 1) {
    const { tenantQueues, cursors, ready, held, later, parked, outbox } = state.look(number);
    const left = [tenantQueues.size, cursors.size, ready, held, later.size, parked.size, outbox.length];
    const isEmpty = left.every((size) => size === 0);
    watch.demand(isEmpty, "memory", () => `shard ${number} still holds ${left.join(" ")} in its seven lists`);
    for (const role of ["dispatcher", "recorder"] as const) {
      const holder = state.holder(number, role);
      const isLeft = holder !== null && world.leases.isKept(holder);
      watch.demand(!isLeft, "cleanEnd", () => `shard ${number} is still leased to a ${role}`);
    }
  }
}
