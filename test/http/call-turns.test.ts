import { expect, test } from "bun:test";
import { UnavailableError } from "../../src/domain/errors.ts";
import { CallTurns } from "../../src/http/call-turns.ts";
import { ManualClock } from "../support/manual-clock.ts";

/** Calls that end when the test says so. */
class Reads {
  readonly begun: string[] = [];
  private readonly ends: (() => void)[] = [];

  read(name: string): Promise<string> {
    this.begun.push(name);
    return new Promise((resolve) => this.ends.push(() => resolve(name)));
  }

  /** The one that began first. */
  async end(): Promise<void> {
    this.ends.shift()?.();
    await Bun.sleep(0);
  }
}

const clock = new ManualClock();
const BOUNDS = { all: 2, each: 1, waitingMax: 3, waitMs: 1_000, retrySeconds: 7 };

test("owners take turns, however many calls one of them has waiting", async () => {
  const [turns, reads] = [new CallTurns(BOUNDS, clock), new Reads()];
  const asked = ["a1", "a2", "a3", "b1", "b2", "c1"].map((name) => turns.inTurn(name[0] ?? "", () => reads.read(name)));
  expect(reads.begun).toEqual(["a1", "b1"]);
  for (let n = 0; n < 5; n += 1) await reads.end();
  expect(reads.begun).toEqual(["a1", "b1", "a2", "b2", "c1", "a3"]);
  await reads.end();
  expect(await Promise.all(asked)).toEqual(["a1", "a2", "a3", "b1", "b2", "c1"]);
});

test("a call beyond those that may wait is refused at once, and others of its owner go on", async () => {
  const [turns, reads] = [new CallTurns(BOUNDS, clock), new Reads()];
  const asked = ["a1", "a2", "a3", "a4"].map((name) => turns.inTurn("a", () => reads.read(name)));
  const refused = { status: 429, retryAfterSeconds: 7 };
  await expect(turns.inTurn("a", () => reads.read("a5"))).rejects.toMatchObject(refused);
  for (let n = 0; n < 4; n += 1) await reads.end();
  expect(await Promise.all(asked)).toEqual(["a1", "a2", "a3", "a4"]);
});

test("a call that has waited for too long is refused, and not begun when its turn comes", async () => {
  const [turns, reads] = [new CallTurns(BOUNDS, clock), new Reads()];
  const first = turns.inTurn("a", () => reads.read("a1"));
  const second = turns.inTurn("a", () => reads.read("a2"));
  clock.forward(BOUNDS.waitMs);
  await expect(second).rejects.toMatchObject({ status: 429 });
  await reads.end();
  expect(await first).toBe("a1");
  const third = turns.inTurn("a", () => reads.read("a3"));
  expect(reads.begun).toEqual(["a1", "a3"]);
  await reads.end();
  expect(await third).toBe("a3");
});

test("a call that others have held up alone fails as in an outage, and is not told that its owner has too many", async () => {
  const [turns, reads] = [new CallTurns(BOUNDS, clock), new Reads()];
  const others = ["a", "b"].map((owner) => turns.inTurn(owner, () => reads.read(owner)));
  const alone = turns.inTurn("c", () => reads.read("c"));
  clock.forward(BOUNDS.waitMs);
  await expect(alone).rejects.toBeInstanceOf(UnavailableError);
  await reads.end();
  await reads.end();
  await Promise.all(others);
});

test("a call that fails, or throws, gives its turn on", async () => {
  const turns = new CallTurns(BOUNDS, clock);
  await expect(turns.inTurn("a", () => Promise.reject(new Error("away")))).rejects.toThrow("away");
  const thrown = turns.inTurn("a", () => {
    throw new Error("thrown");
  });
  await expect(thrown).rejects.toThrow("thrown");
  expect(await turns.inTurn("a", async () => "fine")).toBe("fine");
});
