import { describe, expect, test } from "bun:test";
import {
  computeRates,
  type Evidence,
  findLevel,
  judge,
  type MailCounts,
  paceFor,
  type Reputation,
  type ReputationLevel,
  type ReputationRules,
  release,
  UNGOVERNED,
} from "../../src/domain/tenants/reputation.ts";

const NOW_MS = Date.parse("2026-11-28T12:30:00Z");
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const RULES: ReputationRules = {
  mode: "on",
  bounces: { warned: 0.04, slowed: 0.06, held: 0.1 },
  complaints: { warned: 0.001, slowed: 0.002, held: 0.005 },
};

const mail = (sent: number, bounced = 0, complained = 0): MailCounts => ({ sent, bounced, complained });
const GOOD = mail(1_000, 5);
const BAD: Readonly<Record<ReputationLevel, MailCounts>> = {
  good: GOOD,
  warned: mail(950, 50),
  slowed: mail(920, 80),
  held: mail(800, 200),
};
const at = (level: ReputationLevel, changes: Partial<Reputation> = {}): Reputation => ({
  ...UNGOVERNED,
  level,
  sinceMs: NOW_MS - HOUR_MS,
  ...changes,
});
const judged = (state: Reputation, counts: MailCounts, changes: Partial<Evidence> = {}) =>
  judge(state, { counts, rules: RULES, nowMs: NOW_MS, ...changes });
const inMode = (mode: ReputationRules["mode"]) => ({ rules: { ...RULES, mode } });

describe("a rate", () => {
  const CASES: readonly [name: string, counts: MailCounts, level: ReputationLevel][] = [
    ["no mail", mail(0), "good"],
    ["one bounce of thirteen", mail(12, 1), "good"],
    ["bounces below their floor", mail(99, 100), "good"],
    ["bounces at their floor", mail(180, 20), "slowed"],
    ["only bounces", mail(0, 200), "held"],
    ["bounces at the threshold", mail(960, 40), "good"],
    ["bounces above the threshold of a warning", mail(959, 41), "warned"],
    ["bounces above that of the slower pace", mail(939, 61), "slowed"],
    ["bounces above that of a hold", mail(899, 101), "held"],
    ["complaints below their floor", mail(999, 0, 500), "good"],
    ["one complaint of a thousand", mail(1_000, 0, 1), "good"],
    ["two complaints of a thousand", mail(1_000, 0, 2), "warned"],
    ["three complaints of a thousand", mail(1_000, 0, 3), "slowed"],
    ["six complaints of a thousand", mail(1_000, 0, 6), "held"],
    ["the worse of the two counts", mail(10_000, 500, 60), "held"],
  ];

  test.each(CASES)("%s", (_name, counts, level) => {
    expect(findLevel(counts, RULES)).toBe(level);
  });

  test("of bounces is a share of all e-mail that was tried, refused at once or later", () => {
    expect(computeRates(mail(920, 80, 2))).toEqual({ bounces: 0.08, complaints: 2 / 920 });
    expect(computeRates(mail(0))).toEqual({ bounces: null, complaints: null });
  });
});

describe("a level", () => {
  test("rises at once, and has to be reported", () => {
    for (const level of ["warned", "slowed", "held"] as const) {
      const state = judged(UNGOVERNED, BAD[level]);
      expect(state).toMatchObject({ level, sinceMs: NOW_MS, counts: BAD[level] });
      expect(state.untold).toMatchObject({ from: "good", isAudited: false });
      expect(judged(state, BAD[level])).toBe(state);
    }
    expect(judged(at("warned"), BAD.held).untold?.from).toBe("warned");
  });

  test("falls only after 24 hours of better rates, to that of the rates", () => {
    const better = judged(at("slowed"), BAD.warned);
    expect(better).toEqual(at("slowed", { goodSinceMs: NOW_MS }));
    expect(judged(better, BAD.warned, { nowMs: NOW_MS + DAY_MS - 1 })).toBe(better);
    const fallen = judged(better, BAD.warned, { nowMs: NOW_MS + DAY_MS });
    expect(fallen).toMatchObject({ level: "warned", sinceMs: NOW_MS + DAY_MS, goodSinceMs: null });
    expect(fallen.untold?.from).toBe("slowed");
  });

  test("does not flap: a bad rate in between begins the 24 hours anew", () => {
    const better = judged(at("warned"), GOOD);
    const worse = judged(better, BAD.warned, { nowMs: NOW_MS + 23 * HOUR_MS });
    expect(worse).toEqual(at("warned"));
    const again = judged(worse, GOOD, { nowMs: NOW_MS + 24 * HOUR_MS });
    expect(again.level).toBe("warned");
    expect(judged(again, GOOD, { nowMs: NOW_MS + 47 * HOUR_MS }).level).toBe("warned");
    expect(judged(again, GOOD, { nowMs: NOW_MS + 48 * HOUR_MS }).level).toBe("good");
  });

  test("of a hold never falls by itself: the tenant sends nothing that could show that it has improved", () => {
    const held = at("held");
    expect(judged(held, GOOD)).toBe(held);
    expect(judged(held, mail(0), { nowMs: NOW_MS + 30 * DAY_MS })).toBe(held);
  });

  test("is no worse than the mode allows, which ends a worse one at once", () => {
    expect(judged(UNGOVERNED, BAD.held, inMode("warn")).level).toBe("warned");
    expect(judged(UNGOVERNED, BAD.held, inMode("off"))).toBe(UNGOVERNED);
    const warned = judged(at("held"), BAD.held, inMode("warn"));
    expect([warned.level, warned.untold?.from]).toEqual(["warned", "held"]);
    expect(judged(at("held"), BAD.held, inMode("off")).level).toBe("good");
    // The tenant's own mode comes first.
    expect(judged(at("good", { mode: "on" }), BAD.held, inMode("off")).level).toBe("held");
    expect(judged(at("held", { mode: "off" }), BAD.held).level).toBe("good");
  });

  test("ends by a release, which keeps the tenant's mode and is forgotten when it no longer matters", () => {
    const released = release(at("held", { mode: "on", counts: BAD.held }), NOW_MS);
    expect(released).toEqual({
      ...UNGOVERNED,
      mode: "on",
      sinceMs: NOW_MS,
      releasedAtMs: NOW_MS,
      untold: { from: "held", atMs: NOW_MS, isAudited: true },
    });
    const told = { ...released, mode: null, untold: null };
    expect(judged(told, mail(0), { nowMs: NOW_MS + DAY_MS })).toBe(told);
    expect(judged(told, mail(0), { nowMs: NOW_MS + DAY_MS + 1 })).toBe(UNGOVERNED);
    expect(release(UNGOVERNED, NOW_MS).untold).toBeNull();
  });
});

test("slowed e-mail has a tenth of the plan's pace, at least one a second where the plan allows that", () => {
  const pace = (deliveriesPerSecond: number | null, reputation: "warned" | "slowed" | "held", channel = "email") =>
    paceFor({ plan: { deliveriesPerSecond }, reputation }, channel);
  expect([pace(50, "slowed"), pace(5, "slowed"), pace(0.5, "slowed"), pace(null, "slowed")]).toEqual([5, 1, 0.5, 1]);
  expect(pace(50, "held")).toBe(5);
  expect([pace(50, "warned"), pace(null, "warned")]).toEqual([50, null]);
  expect([pace(50, "held", "wallet"), pace(null, "held", "wallet")]).toEqual([50, null]);
});
