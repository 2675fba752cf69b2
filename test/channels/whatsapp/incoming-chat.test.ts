import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { CHANNELS } from "../../../src/app/channels.ts";
import type { OpenRegistry } from "../../../src/app/open-registry.ts";
import { IncomingChat } from "../../../src/channels/whatsapp/callbacks/incoming-chat.ts";
import { type ChatMessage, readWhatsappWebhook } from "../../../src/channels/whatsapp/callbacks/webhook.ts";
import { NumberOwners } from "../../../src/channels/whatsapp/number-owners.ts";
import { sleep } from "../../../src/domain/clock.ts";
import { UnavailableError } from "../../../src/domain/errors.ts";
import type { JobAddress } from "../../../src/domain/jobs/queue.ts";
import type { TenantNews } from "../../../src/domain/tenants/tenant-news.ts";
import { RedisQueue } from "../../../src/engine/queue/redis-queue.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { must } from "../../support/must.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { openRegistryDatabase, type RegistryDatabase } from "../../support/registry-database.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";
import { webhookBody } from "../../support/whatsapp-webhook.ts";
import { openTestRegistry } from "../../tenants/open-test-registry.ts";

const OWN = "777";
const SHARED = "888";
const PLATFORM = "555";
const JOB_ID = "01936f2e-7c1a-7b3e-9a55-2f1c8f0a4d11";

let redis: RedisServer;
let queue: RedisQueue;
let database: RegistryDatabase;
let stores: OpenRegistry;
beforeAll(async () => {
  redis = await startRedis();
  queue = new RedisQueue({
    channels: CHANNELS,
    address: { kind: "socket", path: redis.path },
    clock: systemClock,
    random: systemRandom,
    telemetry: new QuietTelemetry(),
  });
  await queue.start();
  database = await openRegistryDatabase();
  stores = await openTestRegistry(database);
  for (const [id, number] of [
    ["acme", OWN],
    ["beta", SHARED],
    ["gamma", SHARED],
    ["delta", PLATFORM],
    ["barred", "999"],
  ] as const) {
    await must(stores.registry.createTenant({ id, name: id, plan: "free" }));
    if (id !== "barred") await must(stores.registry.changeTenant(id, { allow_custom: ["whatsapp"] }));
    await must(stores.registry.putWhatsappCredentials(id, { phone_number_id: number, access_token: "t" }));
  }
}, 90_000);
afterAll(async () => {
  await queue.stop();
  await redis.stop();
  await stores.stop();
  await database.close();
});
beforeEach(async () => {
  await redis.client.flushall();
});

/** The service, the updates that it has sent, and the job that it finds by a message's id. */
function chat({ jobs = {}, isBroken = false }: { jobs?: Record<string, JobAddress>; isBroken?: boolean } = {}) {
  const news: TenantNews[] = [];
  const followed: unknown[] = [];
  const service = new IncomingChat({
    messages: queue.incomingMessages,
    windows: queue.replyWindows,
    suppressions: { follow: async (...asked) => void followed.push(asked) },
    owners: new NumberOwners({ read: () => stores.registry.ownNumbers(), clock: systemClock }),
    references: { findReferencedJobs: async (ids) => ids.map((id) => jobs[id] ?? null) },
    news: {
      async tell(told) {
        if (isBroken) throw new UnavailableError("the desk is away");
        news.push(...told);
      },
    },
    platform: { whatsapp: { phoneNumberId: PLATFORM, accessToken: "t" } },
    clock: systemClock,
    telemetry: new QuietTelemetry(),
  });
  return { service, news, followed };
}

function written(message: object, number: string): readonly ChatMessage[] {
  const seconds = String(Math.floor(Date.now() / 1_000));
  const whole = { from: "5491122334455", id: "wamid.in", timestamp: seconds, type: "text", ...message };
  return readWhatsappWebhook(JSON.parse(JSON.stringify(webhookBody({ messages: [whole] }, number)))).messages;
}

const recorded = async () => (await must(queue.incomingMessages.page(null, 10))).items.map(({ id }) => id);
const lastMs = (number: string) => queue.replyWindows.lastWrittenMs(number, ["5491122334455"]);

test("a message belongs to the tenant whose own number it came to, opens its window, and is recorded", async () => {
  const { service, news } = chat();
  const messages = written({ text: { body: "¡Hola!" } }, OWN);
  await service.take(messages);
  expect(news).toEqual([
    {
      tenantId: "acme",
      id: "whatsapp:wamid.in",
      type: "message.received",
      channel: "whatsapp",
      atMs: messages[0]?.writtenAtMs ?? 0,
      data: {
        message_id: "wamid.in",
        phone_number_id: OWN,
        from: "5491122334455",
        user_id: null,
        username: null,
        name: "Ada",
        type: "text",
        text: "¡Hola!",
        button: null,
        in_reply_to: null,
        content: messages[0]?.message.content ?? null,
      },
    },
  ]);
  expect(await lastMs(OWN)).toBe(messages[0]?.writtenAtMs ?? 0);
  expect(await recorded()).toEqual(["wamid.in"]);
});

test("a pressed button says what was given along, and which job's message it answers", async () => {
  const jobs = {
    "wamid.out": { tenantId: "acme", jobId: JOB_ID },
    "wamid.theirs": { tenantId: "beta", jobId: JOB_ID },
  };
  const { service, news } = chat({ jobs });
  const button = { payload: "stop-1042", text: "Stop" };
  await service.take(written({ type: "button", button, context: { from: "1", id: "wamid.out" } }, OWN));
  const reply = { type: "button_reply", button_reply: { id: "yes", title: "Yes" } };
  await service.take(written({ type: "interactive", interactive: reply, context: { id: "wamid.theirs" } }, OWN));
  expect(news.map(({ data }) => [data["button"], data["in_reply_to"], data["text"]])).toEqual([
    [button, { message_id: "wamid.out", job_id: JOB_ID }, null],
    // It ignores another tenant's job.
    [{ payload: "yes", text: "Yes" }, { message_id: "wamid.theirs", job_id: null }, null],
  ]);
});

test("each tenant that owns a number hears of it; the platform's number and a number of nobody belong to no tenant", async () => {
  const { service, news } = chat();
  await service.take(written({}, SHARED));
  expect(news.map(({ tenantId }) => tenantId)).toEqual(["beta", "gamma"]);
  for (const number of [PLATFORM, "123456", "999"]) await service.take(written({ id: `wamid.${number}` }, number));
  expect(news).toHaveLength(2);
  expect(await recorded()).toEqual(["wamid.999", "wamid.123456", "wamid.555", "wamid.in"]);
  // Only numbers that tenants send from are remembered, so others cannot fill Redis.
  expect((await redis.client.keys("wb:{incoming}:writers:*")).toSorted()).toEqual([
    `wb:{incoming}:writers:${PLATFORM}`,
    `wb:{incoming}:writers:${SHARED}`,
  ]);
});

test("a call that is repeated tells the same again under the same id, and one that was not told is not recorded", async () => {
  const messages = written({}, OWN);
  const broken = chat({ isBroken: true });
  await expect(broken.service.take(messages)).rejects.toBeInstanceOf(UnavailableError);
  expect(await recorded()).toEqual([]);
  const { service, news } = chat();
  await service.take(messages);
  await service.take(messages);
  expect(news).toHaveLength(2);
  expect(new Set(news.map(({ id }) => id)).size).toBe(1);
  expect(await recorded()).toEqual(["wamid.in"]);
});

test("what the provider itself says of a person opens no window, a late message none that is over", async () => {
  const { service } = chat();
  await service.take(written({ type: "system", system: { body: "Ada changed her number" } }, OWN));
  expect(await lastMs(OWN)).toBeNull();
  const days = String(Math.floor(Date.now() / 1_000) - 3 * 24 * 60 * 60);
  await service.take(written({ id: "wamid.late", timestamp: days }, OWN));
  expect(await lastMs(OWN)).toBeNull();
});

test("somebody without a number opens a window under each id, and a changed id or number keeps it and its suppressions", async () => {
  const { service, news, followed } = chat();
  await service.take(
    written({ from: undefined, from_user_id: "AR.1", from_parent_user_id: "AR.ENT.1", text: { body: "Hi" } }, OWN),
  );
  expect(news[0]?.data).toMatchObject({ from: null, user_id: "AR.1" });
  const last = async (id: string) => await queue.replyWindows.lastWrittenMs(OWN, [id]);
  const firstMs = await last("AR.1");
  expect([firstMs, await last("AR.ENT.1")]).toEqual([expect.any(Number), firstMs]);

  const system = { type: "user_changed_number", wa_id: "549119", user_id: "AR.2", previous_user_id: "AR.1" };
  await service.take(written({ id: "wamid.moved", type: "system", system }, OWN));
  expect([await last("AR.2"), await last("549119"), await last("5491122334455")]).toEqual([firstMs, firstMs, null]);
  expect(followed).toEqual([["acme", ["5491122334455", "AR.1"], ["549119", "AR.2"]]]);
  expect(news[1]?.data).toMatchObject({ type: "system", changed: { from: "549119", user_id: "AR.2" } });

  // Changes of users are not followed at a number that no tenant sends from.
  await service.take(written({ id: "wamid.other", type: "system", system }, "123456"));
  expect(followed).toHaveLength(1);
});

test("a text too long to keep is still told, without the whole message", async () => {
  const { service, news } = chat();
  await service.take(written({ text: { body: "x".repeat(9_000) } }, OWN));
  expect(news[0]?.data).toMatchObject({ text: "x".repeat(4_096), content: null });
});

test("owners are read once for a while, found anew at once when a number is unknown, and kept while the registry is away", async () => {
  const clock = new VirtualClock();
  let reads = 0;
  let numbers = new Map([["acme", OWN]]);
  let isAway = false;
  const owners = new NumberOwners({
    clock,
    async read() {
      reads += 1;
      if (isAway) throw new UnavailableError("the registry is away");
      return numbers;
    },
  });
  const own = new Set([OWN]);
  await Promise.all([owners.of(own), owners.of(own)]);
  await clock.advance(9_000);
  expect((await owners.of(own)).get(OWN)).toEqual(["acme"]);
  expect(reads).toBe(1);
  numbers = new Map([["beta", SHARED]]);
  expect((await owners.of(new Set([SHARED]))).get(SHARED)).toEqual(["beta"]);
  expect((await owners.of(own)).size).toBe(0);
  expect(reads).toBe(2);
  await clock.advance(10_000);
  isAway = true;
  expect((await owners.of(new Set([SHARED]))).get(SHARED)).toEqual(["beta"]);
  await expect(owners.of(own)).rejects.toBeInstanceOf(UnavailableError);
});

test("numbers that take long to read are read less often, whoever asks for one that nobody owns", async () => {
  const clock = new VirtualClock();
  let reads = 0;
  const owners = new NumberOwners({
    clock,
    async read() {
      reads += 1;
      await sleep(clock, 3_000);
      return new Map([["acme", OWN]]);
    },
  });
  const unknown = new Set([SHARED]);
  const first = owners.of(unknown);
  await clock.advance(3_000);
  expect((await first).size).toBe(0);
  await clock.advance(29_000);
  expect((await owners.of(unknown)).size).toBe(0);
  expect(reads).toBe(1);
  await clock.advance(1_000);
  const second = owners.of(unknown);
  await clock.advance(3_000);
  expect((await second).size).toBe(0);
  expect(reads).toBe(2);
});
