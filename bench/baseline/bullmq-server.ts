/** The baseline: the same route, with BullMQ's `add` awaited before the 202. Prints its address. */
import { Queue } from "bullmq";
import { Elysia, t } from "elysia";
import { Redis } from "ioredis";
import { sendBody } from "./send-body.ts";

const [, , redisUrl = "", keyList = ""] = process.argv;
const keys = new Map(keyList.split(",").map((key, i) => [key, `tenant-${i}`]));
const queue = new Queue("email", { connection: new Redis(redisUrl, { maxRetriesPerRequest: null }) });

const app = new Elysia().post(
  "/v1/send/email",
  async ({ headers, body, status }) => {
    const tenant = keys.get(headers["x-api-key"] ?? "");
    if (tenant === undefined) return status(401, { error: "unknown key" });
    const jobId = crypto.randomUUID();
    await queue.add(
      "email",
      { tenant, ...body },
      { jobId, attempts: 12, backoff: { type: "exponential", delay: 1000 } },
    );
    return status(202, { job_id: jobId, status: "pending" });
  },
  { body: sendBody(t) },
);
const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: app.fetch });
console.log(server.url.href);
