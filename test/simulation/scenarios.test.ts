import { describe, expect, test } from "bun:test";
import { limits } from "../../src/core/limits.ts";
import { Story } from "./story.ts";

/*
 * Stories of one fault each, on the simulator and under all of its checkers. Where one is told of a mistake that was found
 * in the engine, it fails without the correction.
 */

const ONCE = { status: "success", handOvers: 1, ledger: ["sent"] } as const;
const TWICE = { status: "success", handOvers: 2, ledger: ["sent"] } as const;

describe("nothing that was accepted is lost", () => {
  test("when a process dies with a message in its hands, another takes over and hands it over again", () => {
    const story = new Story({ processes: 2 });
    story.plotProvider("takes silently", "takes");
    story.slow("acme", 2_000);
    const jobId = story.accept();
    story.until("the provider has it", () => story.fateOf(jobId).handOvers === 1);
    story.crash(story.ownerOf());
    const diedAtMs = story.nowMs;
    story.until("it is delivered", () => story.fateOf(jobId).status === "success");
    expect(story.nowMs - diedAtMs).toBeLessThan(limits.takeoverMsMax + 5_000);
    story.end();
    expect(story.fateOf(jobId)).toEqual(TWICE);
  });

  test("when the journal restarts under load, what was answered is not handed over again", () => {
    const story = new Story();
    const jobs = story.acceptMany(60);
    story.until("some are delivered", () => story.world.provider.taken > 10);
    story.world.setJournalUp(false);
    story.advance(5_000);
    story.world.setJournalUp(true);
    story.end();
    for (const jobId of jobs) expect(story.fateOf(jobId)).toEqual(ONCE);
  });

  test("when a pull takes effect after its owner has asked again, the mail that it was told of is found all the same", () => {
    const story = new Story();
    story.loseHints();
    const pulls = story.plotCalls("pull", { lateMs: 150 });
    story.until("the owner has asked again", () => pulls.count === 2);
    story.advance(20);
    const jobId = story.accept();
    story.until("it is delivered", () => story.fateOf(jobId).status === "success");
    story.end();
    expect(story.fateOf(jobId)).toEqual(ONCE);
  });
});

describe("a message is handed over again only where that cannot be avoided", () => {
  test("an answer is written until it lands, however often the journal's reply is lost", () => {
    const story = new Story();
    story.plotCalls("settle", "lost reply", "lost request", "lost reply", "lost request", "lost reply");
    const jobId = story.accept();
    story.end();
    expect(story.fateOf(jobId)).toEqual(ONCE);
  });
});
