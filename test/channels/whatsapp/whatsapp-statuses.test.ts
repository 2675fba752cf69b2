import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { CallbackData } from "../../../src/channels/whatsapp/callbacks/callback-keys.ts";
import { WhatsappStatuses } from "../../../src/channels/whatsapp/callbacks/statuses.ts";
import { readWhatsappWebhook } from "../../../src/channels/whatsapp/callbacks/webhook.ts";
import { chatLimits } from "../../../src/channels/whatsapp/limits.ts";
import { UnavailableError } from "../../../src/domain/errors.ts";
import type { EventReader } from "../../../src/domain/jobs/event-store.ts";
import type { JobRecord, JobStatus } from "../../../src/domain/jobs/job.ts";
import { FENCED } from "../../../src/domain/jobs/queue.ts";
import { limits } from "../../../src/domain/limits.ts";
import { isJsonObject } from "../../../src/domain/texts/json.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { PULL, ROOM } from "../../engine/queue/queue-pulls.ts";
import { accept, jobIds, queue, record, redis, useQueueWorld, world } from "../../engine/queue/queue-world.ts";
import { eventually } from "../../support/eventually.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { aTenant, createDirectory } from "../../support/tenants.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";
import { PHONE_NUMBER_ID, status, webhookBody } from "../../support/whatsapp-webhook.ts";

useQueueWorld();

const WORDS = ["sent", "delivered", "read", "failed"] as const;
type Word = (typeof WORDS)[number];
/** An event of a job: the provider reports, or our own note of the hand-over lands. */
type Step = Word | "hand-over";

const callbacks = new CallbackData([new Uint8Array(32).fill(9)]);
const platform = { whatsapp: { phoneNumberId: PHONE_NUMBER_ID, accessToken: "token" } };

type World = Awaited<ReturnType<typeof world>>;

let here: World;
let statuses: WhatsappStatuses;
const eventStoreJobs = new Map<string, JobRecord>();
const eventStore: Pick<EventReader, "job"> = { job: async (_tenantId, jobId) => eventStoreJobs.get(jobId) ?? null };

beforeAll(async () => {
  here = await world();
});
beforeEach(() => {
  statuses = statusesFor();
});
afterEach(() => statuses.stop());
afterAll(() => eventStoreJobs.clear());

function statusesFor(changes: Partial<ConstructorParameters<typeof WhatsappStatuses>[0]> = {}): WhatsappStatuses {
  const directory = createDirectory([aTenant({ ...here.tenant })]);
  const telemetry = new QuietTelemetry();
  return new WhatsappStatuses({
    queue,
    references: queue,
    callbacks,
    platform,
    directory,
    eventStore,
    clock: systemClock,
    random: systemRandom,
    telemetry,
    ...changes,
  });
}

/** A chat job, and the ids of its messages. */
interface Sent {
  readonly jobId: string;
  readonly wamid: string;
  /** Whether the provider returns the job's callback data. */
  readonly isNamed: boolean;
}

async function newChatJob(isNamed: boolean): Promise<Sent> {
  const jobId = await accept(here.tenant, { channel: "whatsapp", recipient: "5491122334455" });
  return { jobId, wamid: `wamid.${jobId}`, isNamed };
}

/** Takes one call of the provider. */
async function report(sent: readonly (readonly [Sent, Word])[], to: WhatsappStatuses = statuses): Promise<void> {
  const listed = sent.map(([{ jobId, wamid, isNamed }, word]) =>
    status(wamid, word, {
      ...(isNamed ? { biz_opaque_callback_data: signCallback(jobId) } : null),
      ...(word === "failed" ? { errors: [{ code: 131_026, title: "Undeliverable" }] } : null),
    }),
  );
  const body: unknown = JSON.parse(JSON.stringify(webhookBody({ statuses: listed })));
  if (!isJsonObject(body)) throw new Error("a body is an object");
  await to.take(readWhatsappWebhook(body).statuses);
}

/** The callback data that our channel sends along. */
function signCallback(jobId: string, tenantId = "acme", phoneNumberId = PHONE_NUMBER_ID): string {
  return callbacks.sign({ tenantId, jobId, phoneNumberId });
}

/** Pulls the jobs from the tenant queue and notes their hand-over. */
async function handOver(jobs: readonly Sent[]): Promise<void> {
  const tenantQueue = { tenantId: "acme", channel: "whatsapp" } as const;
  const tenantQueues = [{ tenantQueue, after: null, entriesMax: 1_000, bytesMax: ROOM }];
  const pulled = await queue.pull(here.lease, { ...PULL, tenantQueues });
  if (pulled === FENCED) throw new Error("fenced");
  const settlements = jobs.map(({ jobId, wamid }) => {
    const job = pulled.tenantQueues[0]?.jobs.find((each) => each.jobId === jobId);
    if (job === undefined) throw new Error("a job is not in its tenant queue");
    const event = { type: "sent", result: {} } as const;
    return { kind: "final", job, status: "success", result: {}, event, providerRef: wamid } as const;
  });
  expect(await queue.settle(here.lease, settlements)).toBe("settled");
}

async function readJob({ jobId }: Sent): Promise<JobRecord> {
  const job = await queue.job(here.tenant, jobId);
  if (job === null) throw new Error("the job is gone");
  return job;
}

const RANK: Readonly<Record<JobStatus, number>> = { pending: 0, running: 1, success: 2, failed: 2, suppressed: 2 };

/** Takes the steps one by one, and checks the job after each and at the end. */
async function live(sent: Sent, steps: readonly Step[]): Promise<void> {
  let rank = 0;
  for (const step of steps) {
    if (step === "hand-over") await handOver([sent]);
    else await report([[sent, step]]);
    const now = RANK[(await readJob(sent)).status];
    expect(now).toBeGreaterThanOrEqual(rank);
    rank = now;
  }
  await eventually("nothing is held", () => statuses.held === 0);
  await expectEnded(
    sent,
    steps.filter((step) => step !== "hand-over"),
  );
}

/** Exactly one event of each type that was reported, `sent` before all others, and success whatever was reported. */
async function expectEnded(sent: Sent, reported: readonly Word[]): Promise<void> {
  const { status: ended, events } = await readJob(sent);
  const types: readonly string[] = events.map(({ type }) => type);
  expect([sent.isNamed, reported, ended, types[0]]).toEqual([sent.isNamed, reported, "success", "sent"]);
  expect(types.toSorted()).toEqual([...new Set(["sent", ...reported])].toSorted());
}

describe("statuses of a job", () => {
  const orders = permutations<Step>(["hand-over", ...WORDS]);

  test.each([true, false])(
    "in every order around the hand-over make one event per type (named: %p)",
    async (isNamed) => {
      expect(orders).toHaveLength(120);
      const jobs: Sent[] = [];
      for (const _ of orders) jobs.push(await newChatJob(isNamed));
      // Side by side, and each report of a round in one call.
      for (let at = 0; at < 5; at += 1) {
        const getStep = (i: number): Step => orders[i]?.[at] ?? "hand-over";
        const reports = jobs.flatMap((job, i) => {
          const step = getStep(i);
          return step === "hand-over" ? [] : [[job, step] as const];
        });
        await report(reports);
        await report(reports);
        await handOver(jobs.filter((_, i) => getStep(i) === "hand-over"));
      }
      await eventually("nothing is held", () => statuses.held === 0);
      for (const job of jobs) await expectEnded(job, WORDS);
    },
    90_000,
  );

  test("of any selection, order and repetition make one event per type, and no status goes back", async () => {
    const words = fc.array(fc.constantFrom(...WORDS), { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(words, words, fc.boolean(), async (before, after, isNamed) => {
        await live(await newChatJob(isNamed), [...before, "hand-over", ...after]);
      }),
      { numRuns: 60 },
    );
  }, 300_000);

  test("are recorded with the provider's own time, which no answer shows", async () => {
    const job = await newChatJob(true);
    await report([[job, "read"]]);
    await handOver([job]);
    await report([[job, "delivered"]]);
    expect((await readJob(job)).events.map(({ result }) => result)).toEqual([{}, {}, {}]);
    const rows = (await record(here.recorder, null))?.rows.filter(({ jobId }) => jobId === job.jobId) ?? [];
    const times = rows.map(({ type, result, occurredAtMs }) => [type, result, occurredAtMs]);
    expect(times).toEqual([
      ["sent", {}, undefined],
      ["read", {}, 1_795_247_400_000],
      ["delivered", {}, 1_795_247_400_000],
    ]);
  });

  test("of several jobs in one call reach each their own", async () => {
    const jobs = [await newChatJob(true), await newChatJob(false), await newChatJob(true), await newChatJob(false)];
    const [one, two, three, four] = jobs;
    if (!one || !two || !three || !four) throw new Error("there are four");
    await report([
      [one, "delivered"],
      [two, "read"],
      [three, "failed"],
      [one, "delivered"],
    ]);
    await handOver(jobs);
    await report([
      [four, "read"],
      [four, "delivered"],
      [one, "read"],
      [three, "sent"],
    ]);
    await eventually("nothing is held", () => statuses.held === 0);
    await expectEnded(one, ["delivered", "read"]);
    await expectEnded(two, ["read"]);
    await expectEnded(three, ["failed"]);
    await expectEnded(four, ["read", "delivered"]);
    expect((await readJob(three)).events.find(({ type }) => type === "failed")?.result).toEqual({
      error: "error 131026: Undeliverable",
    });
  });

  test("that has left the queue are added to it as the event store has it", async () => {
    const sent = await newChatJob(true);
    await handOver([sent]);
    const known = await readJob(sent);
    const gone = { ...known, jobId: jobIds.next() };
    eventStoreJobs.set(gone.jobId, gone);
    await report([[{ ...sent, jobId: gone.jobId }, "read"]]);
    const { events } = await readJob({ ...sent, jobId: gone.jobId });
    expect(events.map(({ type }) => type)).toEqual(["sent", "read"]);
  });

  test("that are of another tenant's job, or of none, change nothing", async () => {
    const sent = await newChatJob(true);
    const before = await stored();
    const readStatuses = (callback: string) =>
      readWhatsappWebhook(buildWebhook([status("wamid.x", "read", { biz_opaque_callback_data: callback })])).statuses;
    await statuses.take(readStatuses(signCallback(sent.jobId, "globex")));
    await statuses.take(readStatuses(signCallback(jobIds.next())));
    expect(statuses.held).toBe(0);
    expect(await stored()).toEqual(before);
    expect((await readJob(sent)).events).toEqual([]);
  });
});

describe("statuses that the provider signed for somebody else's number", () => {
  /** A job that waits for its next try: any report of its message would end it. */
  async function parked(channel: "email" | "whatsapp"): Promise<string> {
    const recipient = channel === "email" ? "ann@example.com" : "5491122334455";
    const jobId = await accept(here.tenant, { channel, recipient });
    const tenantQueue = { tenantId: "acme", channel } as const;
    const tenantQueues = [{ tenantQueue, after: null, entriesMax: 1_000, bytesMax: ROOM }];
    const pulled = await queue.pull(here.lease, { ...PULL, tenantQueues });
    if (pulled === FENCED) throw new Error("fenced");
    const job = pulled.tenantQueues[0]?.jobs.find((each) => each.jobId === jobId);
    if (job === undefined) throw new Error("the job is not in its tenant queue");
    const retry = { kind: "retry", job, delayMs: 3_600_000, status: "running" } as const;
    expect(await queue.settle(here.lease, [retry], null)).toBe("settled");
    return jobId;
  }

  const say = (wamid: string, data: string | null, number: string) => {
    const more = data === null ? {} : { biz_opaque_callback_data: data };
    const body: unknown = JSON.parse(JSON.stringify(webhookBody({ statuses: [status(wamid, "read", more)] }, number)));
    if (!isJsonObject(body)) throw new Error("a body is an object");
    return statuses.take(readWhatsappWebhook(body).statuses);
  };

  test.each(["email", "whatsapp"] as const)("change no job of any tenant: %s", async (channel) => {
    const jobId = await parked(channel);
    const before = await queue.job(here.tenant, jobId);
    const mine = signCallback(jobIds.next(), "acme", "999");
    const forged = [
      `acme/${jobId}`,
      `acme/${jobId}/999`,
      `acme/${jobId}/999/`,
      `acme/${jobId}/999/${mine.split("/")[3]}`,
      `acme/${jobId}/${PHONE_NUMBER_ID}/${"A".repeat(22)}`,
      new CallbackData([new Uint8Array(32)]).sign({ tenantId: "acme", jobId, phoneNumberId: "999" }),
      // A message that was sent from one number is unknown at any other.
      signCallback(jobId),
    ];
    for (const [i, data] of forged.entries()) {
      for (const number of i === forged.length - 1 ? ["999"] : ["999", PHONE_NUMBER_ID]) {
        await say(`wamid.forged.${channel}.${i}`, data, number);
      }
    }
    expect(await queue.job(here.tenant, jobId)).toEqual(before);
  });

  test("do not follow another number's message by its id, and those of the right number do", async () => {
    const sent = await newChatJob(false);
    await handOver([sent]);
    await say(sent.wamid, null, "999");
    await say(sent.wamid, signCallback(sent.jobId), "999");
    expect((await readJob(sent)).events.map(({ type }) => type)).toEqual(["sent"]);
    await say(sent.wamid, "anything", PHONE_NUMBER_ID);
    expect((await readJob(sent)).events.map(({ type }) => type)).toEqual(["sent", "read"]);
  });

  test("that were held for their message do not join it either", async () => {
    const sent = await newChatJob(false);
    await say(sent.wamid, null, "999");
    expect(statuses.held).toBe(1);
    await handOver([sent]);
    await eventually("nothing is held", () => statuses.held === 0);
    expect((await readJob(sent)).events.map(({ type }) => type)).toEqual(["sent"]);
  });

  test("are told from the tenant's own number, and from calls that name none", async () => {
    const sender = { phoneNumberId: "777", accessToken: "token" };
    const own = aTenant({ ...here.tenant, whatsapp: { sender, aliases: new Map(), templates: null } });
    const [one, two] = [await newChatJob(false), await newChatJob(false)];
    await handOver([one, two]);
    statuses = statusesFor({ directory: createDirectory([own]), platform: { whatsapp: null } });
    await say(one.wamid, null, PHONE_NUMBER_ID);
    expect((await readJob(one)).events).toHaveLength(1);
    await say(one.wamid, null, "777");
    await say(two.wamid, null, "");
    for (const sent of [one, two])
      expect((await readJob(sent)).events.map(({ type }) => type)).toEqual(["sent", "read"]);
  });
});

describe("statuses of unknown messages", () => {
  const flood = (count: number, from = 0) =>
    readWhatsappWebhook(
      buildWebhook(Array.from({ length: count }, (_, i) => status(`wamid.flood.${from + i}`, "read"))),
    ).statuses;

  test("are held in bounded memory, leave nothing behind, and are dropped in the end", async () => {
    const clock = new VirtualClock();
    let looks = 0;
    const references = {
      findReferencedJobs: async (ids: readonly string[]) => ((looks += ids.length), ids.map(() => null)),
    };
    const held = statusesFor({ clock, references });
    const before = await stored();
    for (let call = 0; call < 13; call += 1) await held.take(flood(1_000, 1_000 * call));
    expect(held.held).toBe(chatLimits.earlyStatusesMax);
    // Repeating them takes no more memory.
    await held.take(flood(1_000));
    expect(held.held).toBe(chatLimits.earlyStatusesMax);
    looks = 0;
    await clock.advance(limits.earlyStatusMs - 10_000);
    expect(held.held).toBe(chatLimits.earlyStatusesMax);
    await clock.advance(20_000);
    expect(held.held).toBe(0);
    // At growing intervals: a flood of reports does not become one of queries.
    expect(looks).toBeLessThan(20 * chatLimits.earlyStatusesMax);
    expect(await stored()).toEqual(before);
    await held.stop();
  }, 90_000);

  test("are kept while the queue is away, once their message became known", async () => {
    const clock = new VirtualClock();
    const sent = await newChatJob(false);
    let isAway = false;
    let isKnown = false;
    const away = statusesFor({
      clock,
      references: {
        findReferencedJobs: async (ids) => ids.map(() => (isKnown ? { tenantId: "acme", jobId: sent.jobId } : null)),
      },
      queue: {
        observe: (tenant, observation) =>
          isAway ? Promise.reject(new UnavailableError("away")) : queue.observe(tenant, observation),
      },
    });
    await report([[sent, "delivered"]], away);
    [isAway, isKnown] = [true, true];
    await clock.advance(2 * limits.earlyStatusMs);
    expect(away.held).toBe(1);
    isAway = false;
    await clock.advance(chatLimits.earlyStatusRetry.maxMs + chatLimits.earlyStatusRetry.firstMs);
    await eventually("it is taken", () => away.held === 0);
    await handOver([sent]);
    await expectEnded(sent, ["delivered"]);
    await away.stop();
  });

  test("come before those that followed them, once their message is known", async () => {
    const sent = await newChatJob(false);
    const clock = new VirtualClock();
    const patient = statusesFor({ clock });
    await report([[sent, "read"]], patient);
    await report([[sent, "failed"]], patient);
    await handOver([sent]);
    await report([[sent, "delivered"]], patient);
    expect(patient.held).toBe(0);
    expect((await readJob(sent)).events.map(({ type }) => type)).toEqual(["sent", "read", "failed", "delivered"]);
    await clock.advance(chatLimits.earlyStatusRetry.firstMs);
    await patient.stop();
  });

  test("that name jobs somebody made up are not looked up by those names", async () => {
    let asked = 0;
    const directory = { byApiKey: () => null, byId: () => ((asked += 1), null) };
    const strangers = statusesFor({ directory });
    const named = Array.from({ length: 20 }, (_, i) =>
      status(`wamid.${i}`, "read", { biz_opaque_callback_data: `ghost${i}/${jobIds.next()}` }),
    );
    await strangers.take(readWhatsappWebhook(buildWebhook(named)).statuses);
    expect([asked, strangers.held]).toEqual([0, 20]);
    await strangers.stop();
  });

  test("are looked for once more at the end", async () => {
    const sent = await newChatJob(false);
    await report([[sent, "read"]]);
    expect(statuses.held).toBe(1);
    await handOver([sent]);
    await statuses.stop();
    await expectEnded(sent, ["read"]);
    await report([[{ ...sent, wamid: "wamid.late" }, "read"]]);
    expect(statuses.held).toBe(0);
  });

  test("are not asked for when the queue is away: the call fails and is repeated", async () => {
    const sent = await newChatJob(true);
    const away = statusesFor({ queue: { observe: () => Promise.reject(new UnavailableError("away")) } });
    await expect(report([[sent, "read"]], away)).rejects.toBeInstanceOf(UnavailableError);
    const lost = statusesFor({
      references: { findReferencedJobs: () => Promise.reject(new UnavailableError("away")) },
    });
    await expect(report([[{ ...sent, isNamed: false }, "read"]], lost)).rejects.toBeInstanceOf(UnavailableError);
    expect([away.held, lost.held]).toEqual([0, 0]);
    await handOver([sent]);
  });
});

function buildWebhook(listed: readonly object[]) {
  const body: unknown = JSON.parse(JSON.stringify(webhookBody({ statuses: listed })));
  if (!isJsonObject(body)) throw new Error("a body is an object");
  return body;
}

/** Returns the number of batches that wait for the event store, and of all keys. */
async function stored(): Promise<readonly number[]> {
  return [await redis.client.xlen(`${here.prefix}:outbox`), await redis.client.dbsize()];
}

function permutations<T>(items: readonly T[]): T[][] {
  if (items.length === 0) return [[]];
  return items.flatMap((item, i) => permutations(items.toSpliced(i, 1)).map((rest) => [item, ...rest]));
}
