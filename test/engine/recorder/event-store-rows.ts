import { JobIds } from "../../../src/domain/ids.ts";
import { firstEventIdAt } from "../../../src/domain/jobs/event.ts";
import type { StoredEventRow } from "../../../src/domain/jobs/event-store.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";

/** Recent, so that no row is old enough to be dropped, and far from any boundary. */
export const NOON_MS = Math.floor(Date.now() / 86_400_000) * 86_400_000 - 43_200_000;

const ids = new JobIds({ ...systemClock, nowMs: () => NOON_MS }, systemRandom);

export const newJobId = () => ids.next();

/** The n-th event id after noon, one a millisecond. */
export const eventIdAt = (n: number) => firstEventIdAt(NOON_MS + n);

export function storedEventRow(eventId: number, changes: Partial<StoredEventRow> = {}): StoredEventRow {
  return {
    tenantId: "acme",
    jobId: newJobId(),
    channel: "email",
    eventId,
    type: "sent",
    result: {},
    finished: null,
    ...changes,
  };
}
