/**
 * The upper bound on accepting: the same script, driver and group commit behind a bare Bun route, without Waybill's
 * validation, headers and metrics. `bun bench/load/lean-server.ts <redis url> <keys>` prints its address.
 */
import { JobIds } from "../../src/domain/ids.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { openBenchQueue } from "./bench-queue.ts";
import { benchTenants } from "./bench-world.ts";

const [, , redisUrl = "", keyList = ""] = process.argv;
const keys = keyList.split(",");
const tenants = new Map(benchTenants(keys.length).map((tenant, i) => [keys[i] ?? "", tenant]));
const queue = await openBenchQueue(redisUrl);
const ids = new JobIds(systemClock, systemRandom);

async function accept(request: Request): Promise<Response> {
  const tenant = tenants.get(request.headers.get("x-api-key") ?? "");
  if (tenant === undefined) return Response.json({ error: "unknown key" }, { status: 401 });
  // The driver sends objects with these members.
  const { to_address: to, to_name: toName, ...rest } = (await request.json()) as Record<string, string>;
  const jobId = ids.next();
  const payload = JSON.stringify({ to, toName, ...rest });
  const job = { jobId, channel: "email", recipient: to ?? "", payload, idempotency: null } as const;
  const answer = await queue.accept(tenant, tenant.plan.requestsPerMinute, job);
  const isAccepted = answer.kind === "accepted";
  return Response.json({ job_id: jobId, status: "pending" }, { status: isAccepted ? 202 : 503 });
}

const server = Bun.serve({ port: 0, hostname: "127.0.0.1", routes: { "/v1/send/email": { POST: accept } } });
console.log(server.url.href);
