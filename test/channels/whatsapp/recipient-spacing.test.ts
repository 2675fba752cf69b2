import { expect, test } from "bun:test";
import { chatLimits } from "../../../src/channels/whatsapp/limits.ts";
import { RecipientSpacing } from "../../../src/channels/whatsapp/recipient-spacing.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

function world() {
  const clock = new VirtualClock();
  return { clock, spacing: new RecipientSpacing(clock) };
}

test("a recipient who was written to too often waits six seconds, and nobody else waits", () => {
  const { spacing } = world();
  expect(spacing.refused("1", "ann", 0)).toBe(6_000);
  expect(spacing.enter("1", "ann")).toBeGreaterThanOrEqual(6_000);
  expect(spacing.enter("1", "bob")).toBe(0);
  expect(spacing.enter("2", "ann")).toBe(0);
});

test("each further refusal doubles the wait, up to a bound; refusals of messages in flight together count once", async () => {
  const { clock, spacing } = world();
  const waits = [];
  for (let i = 0; i < 10; i += 1) {
    const waitMs = spacing.refused("1", "ann", clock.monotonicMs());
    waits.push(waitMs);
    await clock.advance(waitMs);
  }
  expect(waits.slice(0, 4)).toEqual([6_000, 12_000, 24_000, 48_000]);
  expect(waits.at(-1)).toBe(chatLimits.chatPairSpacingMsMax);

  const { clock: time, spacing: together } = world();
  await time.advance(1_000);
  together.refused("1", "ann", 500);
  expect(together.refused("1", "ann", 500)).toBe(12_000);
  expect(together.refused("1", "ann", 500)).toBe(18_000);
});

test("messages that wait are let through one by one", async () => {
  const { clock, spacing } = world();
  const waits = [spacing.refused("1", "ann", 0), spacing.enter("1", "ann"), spacing.enter("1", "ann")];
  expect(waits).toEqual([6_000, 12_000, 18_000]);
  await clock.advance(6_000);
  expect(spacing.enter("1", "ann")).toBe(0);
  expect(spacing.enter("1", "ann")).toBeGreaterThan(0);
  await clock.advance(6_000);
  expect(spacing.enter("1", "ann")).toBe(0);
});

test("once its messages pass again, a recipient is treated like any other", async () => {
  const { clock, spacing } = world();
  spacing.refused("1", "ann", 0);
  await clock.advance(6_000);
  expect(spacing.enter("1", "ann")).toBe(0);
  spacing.succeeded("1", "ann");
  expect(spacing.enter("1", "ann")).toBe(0);
});

test("no more recipients are remembered than there is room for", () => {
  const { spacing } = world();
  for (let i = 0; i <= chatLimits.chatPairsMax; i += 1) spacing.refused("1", `recipient-${i}`, 0);
  expect(spacing.enter("1", "recipient-0")).toBe(0);
  expect(spacing.enter("1", "recipient-1")).toBeGreaterThan(0);
});
