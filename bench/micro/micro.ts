/** Micro-benchmarks of the code that every message passes through: `bun bench/micro/micro.ts` prints mitata's table. */

import { bench, do_not_optimize, run, summary } from "mitata";
import { checkHtml } from "../../src/channels/email/content/html-rules.ts";
import { Template } from "../../src/channels/email/content/template.ts";
import { acceptEmail } from "../../src/channels/email/request.ts";
import { JobIds } from "../../src/domain/ids.ts";
import { nextEventId } from "../../src/domain/jobs/event.ts";
import { ChannelLetters, decodeEntry, decodeRecord, decodeRow } from "../../src/engine/queue/codec.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { benchTenants, QUEUE_CHANNELS, SEND_BODY, SEND_PAYLOAD } from "../load/bench-world.ts";

const [tenant] = benchTenants(1);
if (tenant === undefined) throw new Error("one tenant was asked for");
const body: unknown = JSON.parse(SEND_BODY);
const source = "<h1>Hello {{.name}}</h1><p>Order {{.order}} arrives {{.day}}.</p>".repeat(8);
const template = Template.parse(source);
const data = { name: "Ann <b>", order: "4711", day: "on Tuesday" };
const page = `<html><head><style>p{margin:0}</style></head><body>${"<p>Hello &amp; welcome</p>".repeat(200)}</body></html>`;
const jobId = "019b0c5e-7a00-7000-8000-000000000001";
const entry = `${jobId} e0 ann@example.com\n${SEND_PAYLOAD}`;
const record = `bench-0 es1 1763700000000-0\ns243948655087616\nd243948655087617`;
const row = `["bench-0","${jobId}","e",243948655087616,"s",{},"s",1,{}]`;
const letters = new ChannelLetters(QUEUE_CHANNELS);
const ours = { letters, tenantId: "bench-0" };
const ids = new JobIds(systemClock, systemRandom);

summary(() => {
  bench("validate: a send of 300 bytes", () => do_not_optimize(acceptEmail(tenant, body)));
  bench("validate: inline HTML of 5 KB", () => do_not_optimize(checkHtml(page)));
});
summary(() => {
  bench("render: compiled template, 24 values", () => do_not_optimize(template.render(data, "html", 1_000_000)));
  bench("render: compile the template", () => do_not_optimize(Template.parse(source)));
});
summary(() => {
  bench("encode: queue entry to job", () => do_not_optimize(decodeEntry(ours, "1-0", entry, "")));
  bench("encode: job record", () => do_not_optimize(decodeRecord(letters, jobId, record, () => "")));
  bench("encode: outbox row", () => do_not_optimize(decodeRow(letters, row)));
});
summary(() => {
  bench("event clock: next id", () => do_not_optimize(nextEventId(243948655087616, systemClock.nowMs())));
  bench("job id (UUIDv7)", () => do_not_optimize(ids.next()));
});

await run(process.argv.includes("--json") ? { format: "json" } : {});
