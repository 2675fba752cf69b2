import { describe, expect, test } from "bun:test";
import { idInBatch, isJobId, jobTimeMs } from "../../../src/domain/ids.ts";
import type { EventType } from "../../../src/domain/jobs/event.ts";
import { AWAITED, type Awaited, fallbackId, fallbackIds, jobsBefore } from "../../../src/domain/jobs/fallback.ts";
import type { JobRecord } from "../../../src/domain/jobs/job.ts";
import type { JsonObject } from "../../../src/domain/texts/json.ts";
import {
  decideFallback,
  type FallbackMoment,
  UNFINISHED_MS_MAX,
  wasReceived,
} from "../../../src/engine/dispatch/fallback-decision.ts";

const MAIN = "01936f2e-7c1a-7b3e-9a55-2f1c8f0a4d11";
const NOW_MS = 1_800_000_000_000;
const MINUTE_MS = 60_000;

const buildEvents = (...types: readonly EventType[]) =>
  types.map((type, at) => ({ eventId: at + 1, type, result: {} }));

function aJob(record: Partial<JobRecord> = {}): JobRecord {
  const result = {};
  const known = { jobId: MAIN, tenantId: "acme", channel: "email", status: "success", attempts: 1 } as const;
  return { ...known, result, events: buildEvents("sent"), ...record };
}

function turn(before: readonly (JobRecord | null)[], moment: Partial<FallbackMoment> = {}) {
  const fallback = { mainJobId: MAIN, number: before.length, afterMs: 10 * MINUTE_MS, unless: ["delivered"] } as const;
  return decideFallback({ fallback, before, dueMs: NOW_MS, nowMs: NOW_MS, ...moment });
}

test("the ids of a message's fallbacks follow from its own, and are no others of its batch", () => {
  const ids = fallbackIds(MAIN);
  expect(ids.every(isJobId)).toBe(true);
  expect(ids.map(jobTimeMs)).toEqual(ids.map(() => jobTimeMs(MAIN)));
  const batch = Array.from({ length: 1_000 }, (_, index) => idInBatch(MAIN, index));
  const all = [...batch, ...batch.flatMap(fallbackIds)];
  expect(new Set(all).size).toBe(4_000);
  const third = { mainJobId: MAIN, number: 3, afterMs: 1, unless: AWAITED };
  expect(jobsBefore(third)).toEqual([MAIN, fallbackId(MAIN, 1), fallbackId(MAIN, 2)]);
});

describe("a message was received", () => {
  test.each<[Awaited, (Awaited | "complained")[]]>([
    ["sent", ["sent", "delivered", "read", "opened", "clicked"]],
    ["delivered", ["delivered", "read", "opened", "clicked"]],
    ["read", ["read", "opened", "clicked"]],
    ["opened", ["read", "opened", "clicked"]],
    ["clicked", ["clicked"]],
  ])("as %s with that event or a stronger one", (word, enough) => {
    const found = [...AWAITED, "complained" as const].filter((type) =>
      wasReceived(aJob({ events: buildEvents(type) }), [word]),
    );
    expect(found).toEqual(enough);
  });

  test("not if it came back, whatever was said before; but if somebody opened it", () => {
    for (const back of ["bounced", "failed"] as const) {
      expect(wasReceived(aJob({ events: buildEvents("sent", "delivered", back) }), ["sent"])).toBe(false);
      expect(wasReceived(aJob({ events: buildEvents("sent", back, "opened") }), ["sent"])).toBe(true);
    }
  });

  test("not by a gateway that followed its links and refused it", () => {
    for (const status of ["failed", "suppressed"] as const) {
      for (const type of ["opened", "clicked"] as const) {
        expect(wasReceived(aJob({ status, events: buildEvents(status, type) }), [type])).toBe(false);
      }
    }
    expect(wasReceived(aJob({ status: "failed", events: buildEvents("failed", "read") }), ["delivered"])).toBe(true);
  });

  test("by a person, not by a machine that opened it or followed its links", () => {
    const [sent] = buildEvents("sent");
    const by = (type: EventType, result: JsonObject) => ({ eventId: 2, type, result });
    const job = (...events: JobRecord["events"]) => aJob({ events: [...(sent ? [sent] : []), ...events] });
    expect(wasReceived(job(by("opened", { machine: true })), ["opened"])).toBe(false);
    expect(wasReceived(job(by("clicked", { url: "https://x.test/", machine: true })), ["clicked"])).toBe(false);
    expect(wasReceived(job(by("opened", { by: "Gmail" })), ["opened"])).toBe(true);
  });

  test("by whom it is for, not by who got a copy", () => {
    const copy = { eventId: 2, type: "delivered", result: { recipient: "team@example.com" } } as const;
    expect(wasReceived(aJob({ events: [...buildEvents("sent"), copy] }), ["delivered"])).toBe(false);
    const bounced = { ...copy, eventId: 3, type: "bounced" } as const;
    expect(wasReceived(aJob({ events: [...buildEvents("sent", "delivered"), bounced] }), ["delivered"])).toBe(true);
  });

  test("in its present life: a failure before an operator's retry counts no more", () => {
    const events = buildEvents("failed", "sent", "delivered");
    expect(wasReceived(aJob({ events, began: 1 }), ["delivered"])).toBe(true);
  });
});

describe("a fallback at its turn", () => {
  test("is sent if the message was not received, whether it failed or nothing was heard", () => {
    expect(turn([aJob()])).toEqual({ kind: "send" });
    expect(turn([aJob({ status: "failed", events: buildEvents("failed") })])).toEqual({ kind: "send" });
    const suppressed = {
      status: "suppressed",
      result: { reason: "bounced" },
      events: buildEvents("suppressed"),
    } as const;
    expect(turn([aJob(suppressed)])).toEqual({ kind: "send" });
  });

  test("is not needed if the message or a fallback before it was received", () => {
    const received = aJob({ events: buildEvents("sent", "delivered") });
    expect(turn([received])).toEqual({ kind: "end", reason: "not_needed" });
    expect(turn([aJob(), received])).toEqual({ kind: "end", reason: "not_needed" });
    expect(turn([aJob(), null])).toEqual({ kind: "send" });
  });

  test("ends if its message was never accepted, cancelled or erased", () => {
    expect(turn([null])).toEqual({ kind: "end", reason: "not_needed" });
    for (const reason of ["canceled", "erased"] as const) {
      const events = buildEvents("suppressed");
      expect(turn([aJob({ status: "suppressed", result: { reason }, events })])).toEqual({ kind: "end", reason });
    }
  });

  test("waits for a message that waits for its time, and gives it all of its time", () => {
    const main = aJob({ status: "pending", result: null, events: [], dueMs: NOW_MS + 5 * MINUTE_MS });
    expect(turn([main])).toEqual({ kind: "wait", ms: 15 * MINUTE_MS });
  });

  test("waits for a message that is still tried, but not for longer than an hour", () => {
    const main = aJob({ status: "running", result: null, events: [] });
    expect(turn([main]).kind).toBe("wait");
    expect(turn([aJob(), main]).kind).toBe("wait");
    expect(turn([main], { nowMs: NOW_MS + UNFINISHED_MS_MAX - 1 })).toEqual({ kind: "wait", ms: 1 });
    expect(turn([main], { nowMs: NOW_MS + UNFINISHED_MS_MAX })).toEqual({ kind: "send" });
  });
});
