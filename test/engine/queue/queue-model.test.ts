import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import { SeededRandom } from "../../support/seeded-random.ts";
import { type Command, commands, requests } from "./queue-commands.ts";
import { QueuePair } from "./queue-pair.ts";
import { TimedRedis } from "./timed-redis.ts";

/** One more seed to run: QUEUE_MODEL_SEED; lists of commands per seed: QUEUE_MODEL_RUNS. */
const { QUEUE_MODEL_SEED: wantedSeed, QUEUE_MODEL_PATH: wantedPath, QUEUE_MODEL_RUNS: runs } = Bun.env;
const RUNS = Number(runs ?? 100);
/** A busy machine takes its time to start and stop a server. */
const HOOK_MS = 60_000;
/** The failure is reported, as far as it is shrunk, before the test runs out of time. */
const SHRINK_MS = 90_000;
const SEEDS = wantedPath === undefined ? [1, 2] : [];

let tokenChance = new SeededRandom(1);
let redis: TimedRedis;

beforeAll(async () => {
  redis = await TimedRedis.start({ next: () => tokenChance.next(), fill: (bytes) => tokenChance.fill(bytes) });
}, HOOK_MS);

afterAll(async () => {
  await redis.stop();
}, HOOK_MS);

async function runOnBoth(list: readonly Command[]): Promise<void> {
  tokenChance = new SeededRandom(1);
  const pair = await QueuePair.start(redis, new SeededRandom(1));
  for (const command of list) await pair.run(command);
}

/** Tests one kind of lists; a failure shrinks to the shortest one and says how to run it again. */
function testLists(guarantee: string, lists: fc.Arbitrary<Command[]>): void {
  for (const seed of [...SEEDS, ...(wantedSeed === undefined ? [] : [Number(wantedSeed)])]) {
    test(`${guarantee} (seed ${seed})`, async () => {
      const path = wantedPath === undefined ? {} : { path: wantedPath };
      const details = await fc.check(fc.asyncProperty(lists, runOnBoth), {
        seed,
        numRuns: RUNS,
        interruptAfterTimeLimit: SHRINK_MS,
        ...path,
      });
      expect(details.failed ? reportOf(details, `QUEUE_MODEL_SEED=${seed}`, guarantee) : "").toBe("");
    }, 300_000);
  }
}

testLists("whatever is asked, Redis and memory answer the same and hold the same", commands);
testLists("a tenant that keeps asking is counted the same, however its requests and pauses fall", requests);

function reportOf(details: fc.RunDetails<[readonly Command[]]>, seed: string, guarantee: string): string {
  const replay = `${seed} QUEUE_MODEL_PATH=${details.counterexamplePath} bun test ${import.meta.path} -t "${guarantee}"`;
  const list = details.counterexample?.[0].map((command) => JSON.stringify(command)).join("\n");
  return `${String(details.errorInstance)}\nafter the last of:\n${list}\nReplay: ${replay}`;
}
