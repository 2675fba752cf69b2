/**
 * BullMQ's worker with empty jobs: `bun bench/baseline/bullmq-worker.ts <redis url> <concurrency> <jobs>` prints the
 * milliseconds from its start to the last job.
 */
import { Worker } from "bullmq";
import { Redis } from "ioredis";

const [, , redisUrl = "", concurrency = "100", jobs = "0"] = process.argv;
const { promise, resolve } = Promise.withResolvers<void>();
let completed = 0;
const startedMs = performance.now();
const worker = new Worker("email", async () => ({}), {
  connection: new Redis(redisUrl, { maxRetriesPerRequest: null }),
  concurrency: Number(concurrency),
});
worker.on("completed", () => {
  completed += 1;
  if (completed === Number(jobs)) resolve();
});
await promise;
console.log(performance.now() - startedMs);
process.exit(0);
