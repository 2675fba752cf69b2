import { expect, test } from "bun:test";
import { UnavailableError } from "../../src/domain/errors.ts";
import { LookUps } from "../../src/tenants/look-ups.ts";
import { eventually } from "../support/eventually.ts";
import { SkippingClock } from "./machine.ts";

/** Look-ups of two names at a time, which answer when the test says so. */
function scene() {
  const batches: { readonly names: readonly string[]; answer(): void; fail(error: Error): void }[] = [];
  const kept: (readonly [string, boolean])[] = [];
  const lookUps = new LookUps<string | null>({
    read: (names) => {
      const { promise, resolve, reject } = Promise.withResolvers<ReadonlyMap<string, PromiseSettledResult<string>>>();
      const answer = () => resolve(new Map(names.map((name) => [name, { status: "fulfilled", value: `${name}!` }])));
      batches.push({ names, answer, fail: reject });
      return promise;
    },
    missing: null,
    keep: (name, _, isCurrent) => kept.push([name, isCurrent]),
    batchMax: 2,
    namesMax: 5,
    clock: new SkippingClock(),
  });
  return { lookUps, batches, kept };
}

test("requests are looked up before queued jobs, and a name is looked up once for all callers", async () => {
  const { lookUps, batches } = scene();
  const asked = [lookUps.ask("a"), lookUps.ask("b"), lookUps.ask("c"), lookUps.ask("b", true), lookUps.ask("d", true)];
  await Promise.resolve();
  expect(batches.map(({ names }) => names)).toEqual([["b", "d"]]);
  batches[0]?.answer();
  expect([await asked[1], await asked[3], await asked[4]]).toEqual(["b!", "b!", "d!"]);
  await eventually("the next batch", () => batches.length > 1);
  batches[1]?.answer();
  expect([await asked[0], await asked[2]]).toEqual(["a!", "c!"]);
});

test("a look-up that is outdated while it is read is repeated once, for the callers before and after", async () => {
  const { lookUps, batches, kept } = scene();
  const early = lookUps.ask("a");
  await Promise.resolve();
  lookUps.outdate("a");
  const late = lookUps.ask("a");
  const answered: string[] = [];
  void early.then(() => answered.push("early"));
  batches[0]?.answer();
  await eventually("the next batch", () => batches.length > 1);
  expect([kept, answered]).toEqual([[["a", false]], []]);
  batches[1]?.answer();
  expect(await Promise.all([early, late])).toEqual(["a!", "a!"]);
  expect(kept).toEqual([
    ["a", false],
    ["a", true],
  ]);
});

test("a name that changes during every look-up is answered all the same", async () => {
  const { lookUps, batches, kept } = scene();
  const asked = lookUps.ask("a");
  for (const at of [0, 1]) {
    await eventually("the next batch", () => batches.length > at);
    lookUps.outdate("a");
    batches[at]?.answer();
  }
  expect(await asked).toBe("a!");
  expect(kept).toEqual([
    ["a", false],
    ["a", false],
  ]);
});

test("an outage fails all waiting callers, a mistake only its own batch", async () => {
  const { lookUps, batches } = scene();
  const first = Promise.allSettled(["a", "b", "c"].map((name) => lookUps.ask(name)));
  await Promise.resolve();
  batches[0]?.fail(new UnavailableError("away"));
  expect((await first).map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  const second = ["a", "b", "c"].map((name) => lookUps.ask(name));
  await eventually("the next batch", () => batches.length > 1);
  batches[1]?.fail(new Error("a mistake"));
  expect((await Promise.allSettled(second.slice(0, 2))).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  await eventually("the next batch", () => batches.length > 2);
  batches[2]?.answer();
  expect(await second[2]).toBe("c!");
});

test("the number of waiting names is bounded", async () => {
  const { lookUps, batches } = scene();
  const asked = ["a", "b", "c", "d", "e"].map((name) => lookUps.ask(name));
  await expect(lookUps.ask("f")).rejects.toBeInstanceOf(UnavailableError);
  void lookUps.ask("a");
  await Promise.resolve();
  batches[0]?.fail(new UnavailableError("away"));
  await Promise.allSettled(asked);
});
