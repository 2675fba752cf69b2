import { expect, test } from "bun:test";
import {
  type Consequence,
  ERROR_RULES,
  type GraphError,
  ruleFor,
} from "../../../src/channels/whatsapp/graph-errors.ts";
import { type FailureClass, failureClassOfEvent } from "../../../src/domain/jobs/failure-class.ts";

function anError(status: number, code: number | null): GraphError {
  return { status, code, message: "", details: null };
}

const DAY = 24 * 60 * 60_000;

// The provider's documentation, copied here so that a lost or moved row fails the test.
const DOCUMENTED: Readonly<Record<Consequence, readonly number[]>> = {
  slow_number: [130429, 4, 17, 32, 341, 613, 80000, 80007, 80008, 80014],
  space_recipient: [131056],
  retry: [1, 131000, 131057, 131053],
  away: [2, 131016, 133004],
  pause_number: [131048],
  fail: [
    131049, 131050, 130472, 131026, 131021, 131047, 131030, 132000, 132012, 132018, 132005, 132007, 132001, 132015,
    132016, 132068, 132069, 100, 33, 131008, 131009, 131051, 135000, 131052, 133016, 130497,
  ],
  lock_account: [368, 131031],
  refuse_sender: [
    0, 190, 3, 10, 200, 210, 299, 131005, 131037, 131042, 131045, 133000, 133005, 133006, 133007, 133008, 133009,
    133010, 133015, 134011,
  ],
  unknown_outcome: [],
};

// Object.entries loses the keys' type; they are those of the record above.
for (const [follows, codes] of Object.entries(DOCUMENTED) as [Consequence, readonly number[]][]) {
  for (const code of codes) {
    test(`${code} means ${follows}, whatever the HTTP status is`, () => {
      for (const status of [200, 400, 401, 404, 429, 500, 503, 504]) {
        expect(ruleFor(anError(status, code)).follows).toBe(follows);
      }
    });
  }
}

test("each documented error has a class in the history that goes with what follows", () => {
  const classes: Readonly<Record<Consequence, readonly FailureClass[]>> = {
    slow_number: ["throttled"],
    space_recipient: ["throttled"],
    pause_number: ["throttled"],
    retry: ["unreachable", "content"],
    away: ["unreachable"],
    fail: ["recipient", "refused", "content", "throttled"],
    lock_account: ["sender"],
    refuse_sender: ["sender"],
    unknown_outcome: [],
  };
  for (const { follows, codes } of ERROR_RULES) {
    for (const code of codes) {
      const result = { error: `error ${code}: no` };
      const name = failureClassOfEvent({ channel: "whatsapp", type: "failed", result });
      expect([code, name, classes[follows].some((one) => one === name)]).toEqual([code, name, true]);
    }
  }
});

test.each([
  [302, 999_999, "retry"],
  [400, 999_999, "fail"],
  [401, 999_999, "refuse_sender"],
  [403, null, "fail"],
  [404, null, "fail"],
  [408, null, "retry"],
  [429, null, "slow_number"],
  [500, 999_999, "away"],
  [502, null, "away"],
  [503, null, "away"],
  [504, 999_999, "away"],
  [504, null, "unknown_outcome"],
] as const)("HTTP %p with the code %p, which is in no table, means %s", (status, code, follows) => {
  expect(ruleFor(anError(status, code)).follows).toBe(follows);
});

test("an error that may hide a lasting mistake is retried only a few times", () => {
  expect(ruleFor(anError(400, 1)).attemptsMax).toBe(4);
  expect(ruleFor(anError(500, 1))).toMatchObject({ follows: "retry" });
  expect(ruleFor(anError(500, 1)).attemptsMax).toBeUndefined();
  expect(ruleFor(anError(400, 131053)).attemptsMax).toBe(2);
});

test("a stopped number is tried again within the day that a job lasts", () => {
  for (const code of [131048, 368, 131031, 190, 131042, 4, 80007]) {
    const { pauseMs = 0 } = ruleFor(anError(400, code));
    expect(pauseMs).toBeGreaterThan(0);
    expect(pauseMs).toBeLessThan(DAY);
  }
});
