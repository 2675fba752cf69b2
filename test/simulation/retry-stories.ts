import { assert } from "../../src/domain/errors.ts";
import { Story } from "./story.ts";

/** A failed job that an operator retries. Each throws if it does not go as its name says. */
export const RETRY_STORIES = {
  "a settlement that arrives after its job was retried does not end the job again": () => {
    const story = new Story();
    story.plotProvider("refuses");
    // Its owner gives it up and repeats it at once.
    story.plotCalls("settle", { lateMs: 3_000 });
    const jobId = story.accept();
    story.until("it has failed", () => story.outcomeFor(jobId).status === "failed", 2_000);
    story.plotDelay("acme", 10_000);
    const { process } = story.house();
    process.enter(() => void story.house().retry(story.tenant("acme"), [jobId]), "answer");
    story.until("it is retried", () => story.outcomeFor(jobId).status !== "failed", 1_000);
    story.until("it is delivered or has failed", () => /^(success|failed)$/.test(story.outcomeFor(jobId).status));
    assert(story.outcomeFor(jobId).status === "success", "the settlement of its first life ended the second");
    story.end();
  },
} as const;
