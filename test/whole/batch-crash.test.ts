import { afterAll, beforeAll, expect, test } from "bun:test";
import { createTenants, type LoadTenant } from "../support/load.ts";
import { recordProof } from "../support/proof.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

const MESSAGES = 1_000;
const API_ONLY = { ROLES: "api" };

let home: Awaited<ReturnType<typeof temporaryHome>>;
let redis: RedisServer;
let waybill: Waybill;
let tenant: LoadTenant;

const start = () => startWaybill(home.path, { ...API_ONLY, REDIS_URL: redis.url });

beforeAll(async () => {
  home = await temporaryHome();
  redis = await startRedis();
  waybill = await start();
  const [first] = await createTenants(waybill, 1);
  if (first === undefined) throw new Error("no tenant was created");
  tenant = first;
}, 300_000);

afterAll(async () => {
  await waybill?.kill();
  await redis?.stop();
  await home?.remove();
}, 90_000);

// Long enough that its pieces wait in turn: the process dies between two of them.
const HTML = `<p>Hello</p><p>${"All the best. ".repeat(300)}</p>`;
const BODY = JSON.stringify({
  defaults: { subject: "Hello", html: HTML },
  messages: Array.from({ length: MESSAGES }, (_, i) => ({ to_address: `u${i}@example.com` })),
});

async function send(body = BODY): Promise<{ status: number; replayed: string | null; text: string }> {
  const headers = { "x-api-key": tenant.apiKey, "content-type": "application/json", "idempotency-key": "newsletter 7" };
  const response = await fetch(`${waybill.url}/v1/send/email/batch`, { method: "POST", headers, body });
  const { status } = response;
  return { status, replayed: response.headers.get("idempotency-replayed"), text: await response.text() };
}

/** The tenant's queue; no process delivers here. */
async function queue(): Promise<string> {
  const [key] = await redis.client.keys(`*:box:${tenant.id}/e`);
  return key ?? "";
}

/** Recipients in it. */
async function queued(): Promise<readonly string[]> {
  const key = await queue();
  const entries = await redis.client.xrange(key, "-", "+");
  return entries.map(([, [, entry = ""]]) => entry.slice(0, entry.indexOf("\n")).split(/[ \t]/)[2] ?? "");
}

test("a batch whose process is killed half-way is finished by its repeat, and each message is queued once", async () => {
  const broken = send().catch(() => null);
  // A queue exists once it holds an entry. The answer is not read: the kill has to come before the other pieces.
  while ((await queue()) === "") await Bun.sleep(0);
  await waybill.kill();
  expect(await broken).toBeNull();
  const half = (await queued()).length;
  expect(half).toBeGreaterThan(0);
  expect(half).toBeLessThan(MESSAGES);

  waybill = await start();
  const finished = await send();
  expect([finished.status, finished.replayed]).toEqual([202, null]);
  const recipients = await queued();
  recordProof({
    fault: "kill -9 of the server between two pieces of a batch",
    accepted: MESSAGES,
    lost: MESSAGES - new Set(recipients).size,
    sentTwice: recipients.length - new Set(recipients).size,
    sentTwiceAllowed: 0,
    note: `${half} of ${MESSAGES} messages were queued when it died`,
  });
  expect([recipients.length, new Set(recipients).size]).toEqual([MESSAGES, MESSAGES]);
  // The request that the test just sent has this form.
  const { jobs, errors } = JSON.parse(finished.text) as { jobs: { index: number }[]; errors: unknown[] };
  expect([jobs.map(({ index }) => index), errors]).toEqual([Array.from({ length: MESSAGES }, (_, i) => i), []]);

  const again = await send();
  expect([again.status, again.replayed, again.text]).toEqual([202, "true", finished.text]);
  expect((await send(BODY.replace("Hello", "Hi"))).status).toBe(422);
  expect((await queued()).length).toBe(MESSAGES);
}, 300_000);
