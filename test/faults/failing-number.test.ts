import { afterEach, expect, test } from "bun:test";
import { summarise } from "../../bench/load/latency.ts";
import { startGraphSandbox } from "../../src/channels/whatsapp/sandbox/graph-sandbox.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { CHAT, createChatTenants, formatNumber, readChats, type SentChat } from "../support/chat-load.ts";
import { eventually } from "../support/eventually.ts";
import type { LoadTenant } from "../support/load.ts";
import { recordProof } from "../support/proof.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";
import type { Waybill } from "../support/waybill.ts";
import { boundMs, FaultWorld, readSize, TEST_LIMIT_MS } from "./fault-world.ts";

const SECRET = "a webhook secret of the fault test";
const QUEUED = readSize("FAILING_NUMBER_QUEUED", 200);
const SECONDS = readSize("FAILING_NUMBER_SECONDS", 12);
const PER_SECOND = 10;
/**
 * From the request until the provider has the message: milliseconds alone, and ten seconds where all share a verdict.
 */
const NEIGHBOUR_MS_MAX = 2_000;
const CALLS_PER_SECOND_MAX = 2;
const FIRST_ANSWERS_MS = 500;

const world = new FaultWorld();
afterEach(() => world.undo.run(), 90_000);

test(
  "a tenant whose phone number fails at the provider is asked about rarely, and slows down no other",
  async () => {
    let isFailing = false;
    const callsAtMs: number[] = [];
    const sandbox = startGraphSandbox({
      webhookSecret: SECRET,
      clock: systemClock,
      random: systemRandom,
      telemetry: new QuietTelemetry(),
      findTrouble: (phoneNumberId) => {
        if (!isFailing || phoneNumberId !== formatNumber(0)) return null;
        callsAtMs.push(Date.now());
        return "failing";
      },
    });
    world.undo.add(sandbox, (running) => running.stop());
    const waybill = await world.start(await world.home(), { WHATSAPP_API_URL: sandbox.url, WEBHOOK_SECRET: SECRET });
    sandbox.callBack(waybill.url);
    const [failing, ...healthy] = await createChatTenants(waybill, 4);
    if (failing === undefined) throw new Error("a tenant was created");
    // The first messages of a process measure compilation, so they do not count.
    await sendChats(waybill, healthy, 1);
    const aloneFromMs = Date.now();
    await sendChats(waybill, healthy, 3);

    isFailing = true;
    const queued = await Promise.all(Array.from({ length: QUEUED }, () => sendChat(waybill, failing)));
    const besideFromMs = Date.now();
    const beside = await sendChats(waybill, healthy, SECONDS);
    // Attempts that were in flight together before the first answer do not predict the later ones.
    const [firstMs = 0, untilMs] = [callsAtMs[0], Date.now()];
    const later = callsAtMs.filter((atMs) => atMs > firstMs + FIRST_ANSWERS_MS);
    const callsPerSecond = (later.length * 1000) / (untilMs - firstMs);
    isFailing = false;

    const all = await untilRead(waybill, healthy, (1 + 3 + SECONDS) * PER_SECOND);
    const recovered = await untilRead(waybill, [failing], QUEUED);
    const waits = (jobs: readonly SentChat[]) => summarise(jobs.map((job) => job.sentMs - job.acceptedMs));
    const alone = waits(all.filter(({ acceptedMs }) => acceptedMs >= aloneFromMs && acceptedMs < besideFromMs));
    const besideMs = waits(all.filter(({ acceptedMs }) => acceptedMs >= besideFromMs));
    recordProof({
      fault: `WhatsApp fails for one number with ${QUEUED} messages for ${SECONDS} s`,
      accepted: beside,
      lost: QUEUED - recovered.length,
      neighbourMs: besideMs.max,
      neighbourRatio: besideMs.p99 / alone.p99,
      note: `p99 ${besideMs.p99} ms beside ${alone.p99} ms alone; ${callsPerSecond.toFixed(1)} calls/s to the number`,
    });
    expect(queued).toEqual(queued.map(() => 202));
    expect(besideMs.p99).toBeLessThan(boundMs(NEIGHBOUR_MS_MAX, alone.max));
    expect(callsPerSecond).toBeLessThanOrEqual(CALLS_PER_SECOND_MAX);
  },
  TEST_LIMIT_MS,
);

async function sendChat(waybill: Waybill, { apiKey }: LoadTenant): Promise<number> {
  return (await waybill.request(apiKey, "POST", "/v1/send/whatsapp", CHAT)).status;
}

/** Sends in an open loop, to one tenant after the other. Returns how many were accepted. */
async function sendChats(waybill: Waybill, tenants: readonly LoadTenant[], seconds: number): Promise<number> {
  const startedMs = performance.now();
  const requests: Promise<number>[] = [];
  for (let i = 0; i < seconds * PER_SECOND; i += 1) {
    await Bun.sleep(Math.max(0, startedMs + (i * 1000) / PER_SECOND - performance.now()));
    const tenant = tenants[i % tenants.length];
    if (tenant !== undefined) requests.push(sendChat(waybill, tenant));
  }
  const statuses = await Promise.all(requests);
  return statuses.filter((status) => status === 202).length;
}

function untilRead(waybill: Waybill, tenants: readonly LoadTenant[], count: number): Promise<readonly SentChat[]> {
  return eventually(
    `${count} messages are in the event store`,
    async () => {
      const read = await Promise.all(tenants.map((tenant) => readChats(waybill, tenant)));
      return read.flat().length >= count ? read.flat() : null;
    },
    60_000,
  );
}
