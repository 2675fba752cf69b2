import { expect, test } from "bun:test";
import { SharedRuns } from "../../src/domain/shared-runs.ts";

/** Runs that end when the test says so. */
class Runs {
  begun = 0;
  private readonly ends: ((fails: boolean) => void)[] = [];

  readonly work = (): Promise<number> => {
    const number = (this.begun += 1);
    return new Promise((resolve, reject) =>
      this.ends.push((fails) => (fails ? reject(new Error("away")) : resolve(number))),
    );
  };

  async end(fails = false): Promise<void> {
    this.ends.shift()?.(fails);
    await Bun.sleep(0);
  }
}

test("whoever comes during a run shares the next one, and keys do not wait for each other", async () => {
  const [shared, one, other] = [new SharedRuns<number>(), new Runs(), new Runs()];
  const first = shared.run("one", one.work);
  const later = [shared.run("one", one.work), shared.run("one", one.work)];
  const beside = shared.run("other", other.work);
  expect([one.begun, other.begun]).toEqual([1, 1]);
  await one.end();
  expect([await first, one.begun]).toEqual([1, 2]);
  // It came after the second run had begun.
  const latest = shared.run("one", one.work);
  await one.end();
  await one.end();
  await other.end();
  expect([await Promise.all(later), await latest, await beside]).toEqual([[2, 2], 3, 1]);
});

test("a run that fails tells those who share it alone, and the next begins", async () => {
  const [shared, runs] = [new SharedRuns<number>(), new Runs()];
  const first = shared.run("one", runs.work).catch(String);
  const second = shared.run("one", runs.work).catch(String);
  await runs.end(true);
  await runs.end();
  expect([await first, await second]).toEqual(["Error: away", 2]);
  const third = shared.run("one", runs.work);
  await runs.end();
  expect(await third).toBe(3);
});
