import { describe, expect, test } from "bun:test";
import {
  dailyAllowance,
  isDay,
  untilNextUtcDayMs,
  utcDayAt,
  warmUpAllowance,
} from "../../src/domain/tenants/warm-up.ts";
import { aTenant } from "../support/tenants.ts";

const FIRST = "2026-02-25";
/** The day of this number of the warm-up, 1 the first. */
const toUtcDay = (number: number) => utcDayAt(Date.UTC(2026, 1, 25)) + number - 1;

describe("a new address", () => {
  test.each([
    [-30, 50],
    [0, 50],
    [1, 50],
    [7, 50],
    [8, 100],
    [14, 100],
    [15, 200],
    [21, 200],
    [22, 400],
    [29, 800],
    [99, 819_200],
    [105, 819_200],
  ])("may send on day %i as much as the schedule says: %i", (number, allowance) => {
    expect(warmUpAllowance(FIRST, toUtcDay(number))).toBe(allowance);
  });

  test("may send without limit once the schedule exceeds a million per day", () => {
    expect(warmUpAllowance(FIRST, toUtcDay(106))).toBeNull();
    expect(warmUpAllowance(FIRST, toUtcDay(100_000))).toBeNull();
  });

  test("may never send less on a later day", () => {
    let last = 0;
    for (let number = -3; number <= 105; number += 1) {
      const allowance = warmUpAllowance(FIRST, toUtcDay(number)) ?? Number.POSITIVE_INFINITY;
      expect(allowance).toBeGreaterThanOrEqual(last);
      last = allowance;
    }
  });
});

test("only e-mail of a sender in warm-up is limited", () => {
  const sender = { fromAddress: "a@b.test", fromName: null, smtpUrl: null };
  const warming = aTenant({ emailSender: { ...sender, warmUpFrom: FIRST } });
  expect(dailyAllowance(warming, "email", toUtcDay(1))).toBe(50);
  expect(dailyAllowance(warming, "whatsapp", toUtcDay(1))).toBeNull();
  expect(dailyAllowance(aTenant({ emailSender: sender }), "email", toUtcDay(1))).toBeNull();
  expect(dailyAllowance(aTenant(), "email", toUtcDay(1))).toBeNull();
});

test("a day is a valid calendar date", () => {
  for (const text of ["2026-02-28", "2024-02-29", "1999-12-31"]) expect(isDay(text)).toBe(true);
  for (const text of [
    "2026-02-29",
    "2026-02-30",
    "2026-13-01",
    "2026-00-10",
    "2026-1-1",
    "26-01-01",
    "",
    "2026-01-01Z",
  ]) {
    expect(isDay(text)).toBe(false);
  }
});

test("days begin at midnight UTC", () => {
  const midnight = Date.UTC(2026, 5, 1);
  expect(utcDayAt(midnight) - utcDayAt(midnight - 1)).toBe(1);
  expect(untilNextUtcDayMs(midnight)).toBe(24 * 60 * 60 * 1000);
  expect(untilNextUtcDayMs(midnight - 1)).toBe(1);
});
