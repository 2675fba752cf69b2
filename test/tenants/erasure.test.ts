import { afterAll, beforeAll, expect, test } from "bun:test";
import { MessageRing } from "../../src/domain/channels/sandbox.ts";
import type { SandboxInbox } from "../../src/domain/jobs/report.ts";
import type { ErasedHistory } from "../../src/domain/tenants/erasure.ts";
import { type ErasurePorts, eraseRecipient } from "../../src/tenants/erasure.ts";
import { Front } from "../http/support/front.ts";
import { eventually } from "../support/eventually.ts";
import { must } from "../support/must.ts";
import { VirtualClock } from "../support/virtual-clock.ts";

const ring = new MessageRing(10, 1_000);
const sandbox: SandboxInbox = ring;
let history: () => Promise<ErasedHistory>;
const asked: string[] = [];
let front: Front;
beforeAll(async () => {
  front = await Front.start({
    sandbox,
    history: {
      eraseRecipient(tenantId, recipient) {
        asked.push(`${tenantId} ${recipient}`);
        return history();
      },
    },
  });
});
afterAll(() => front.stop(), 90_000);

const PATH = "/tenants/acme/erasures";
const erase = (body: unknown) => front.operate("POST", PATH, body);
const done = { finishedJobs: 2, events: 3, payloads: 0, isComplete: true };

test("an operator erases a recipient, and the audit log names its hash alone", async () => {
  history = async () => done;
  await front.send({ to_address: "Ann@Example.com", subject: "Hi", html: "<p>Hi</p>" });
  await front.operate("PUT", "/tenants/acme/suppressions/ann%40example.com", { reason: "complained" });
  for (const to of ["Ann@example.com", "bob@example.com"]) ring.add({ to, bytes: 1, show: () => ({}) as never });
  const answer = await erase({ recipient: " ANN@example.com " });
  expect([answer.status, answer.body]).toEqual([
    200,
    {
      recipient_hash: front.stores.recipients.hashRecipient("ann@example.com"),
      complete: true,
      unfinished_left: 0,
      erased: { unfinished_jobs: 1, finished_jobs: 2, events: 3, payloads: 0, suppressions: 1, sandbox_messages: 1 },
    },
  ]);
  expect(asked).toEqual(["acme ann@example.com"]);
  expect(ring.messages(null, 9)).toHaveLength(1);
  const list = await front.operate("GET", "/tenants/acme/suppressions");
  expect(list.body["suppressions"]).toMatchObject([{ address: "(erased)", reason: "complained" }]);
  expect(JSON.stringify([...front.queue.suppressed])).not.toContain("ann@");
  const audit = await front.operate("GET", "/audit?tenant=acme&action=eraseRecipient");
  expect(JSON.stringify(audit.body).toLowerCase()).not.toContain("ann");
  expect(JSON.stringify(audit.body)).toContain(String(answer.body["recipient_hash"]));
  expect(JSON.stringify(front.logs).toLowerCase()).not.toContain("ann@");
  // Known again, under its name: the list does not return the address to any caller.
  const put = await front.operate("PUT", "/tenants/acme/suppressions/ann%40example.com", {});
  expect(put.body).toMatchObject({ address: "(erased)", reason: "manual" });
  expect((await front.operate("DELETE", "/tenants/acme/suppressions/ann%40example.com")).status).toBe(204);
});

test("repeating it is harmless, and what is not finished is said", async () => {
  history = async () => ({ ...done, isComplete: false });
  expect((await erase({ recipient: "+34 600 123 456", suppress: true })).status).toBe(202);
  history = async () => ({ finishedJobs: 0, events: 0, payloads: 0, isComplete: true });
  const again = await erase({ recipient: "34600123456" });
  expect([again.status, again.body]).toMatchObject([200, { complete: true, erased: { suppressions: 0 } }]);
  const page = await must(front.registry.suppressions("acme", null, 10));
  expect(page.items).toMatchObject([{ reason: "manual", address: expect.stringMatching(/^sha:/) }]);
});

test("the queue says that a recipient was erased before the list is looked through", async () => {
  const order: string[] = [];
  const ports: ErasurePorts = {
    suppressions: {
      erase: async () => {
        order.push("list");
        return { kind: "done", value: 0 };
      },
    },
    queue: {
      eraseJobs: async () => {
        order.push("queue");
        return { unfinished: 0, unrecorded: 0, isIncomplete: false };
      },
    },
    history: { eraseRecipient: async () => ({ finishedJobs: 0, events: 0, payloads: 0, isComplete: true }) },
    sandbox: null,
    recipients: front.stores.recipients,
    clock: new VirtualClock(),
  };
  await eraseRecipient(ports, { tenantId: "acme", shard: 0 }, "a@example.com", { isSuppressed: false });
  expect(order).toEqual(["queue", "list"]);
});

test("the queue is asked again while jobs have not ended, for four seconds, and not at all where none is left", async () => {
  const asks = async (answers: readonly number[]) => {
    const clock = new VirtualClock();
    let asked = 0;
    const ports: ErasurePorts = {
      suppressions: { erase: async () => ({ kind: "done", value: 0 }) },
      queue: {
        eraseJobs: async () => {
          const unfinished = answers[Math.min(asked, answers.length - 1)] ?? 0;
          asked += 1;
          return { unfinished, unrecorded: 0, isIncomplete: false };
        },
      },
      history: { eraseRecipient: async () => ({ finishedJobs: 0, events: 0, payloads: 0, isComplete: true }) },
      sandbox: null,
      recipients: front.stores.recipients,
      clock,
    };
    let end: Awaited<ReturnType<typeof eraseRecipient>> | null = null;
    void eraseRecipient(ports, { tenantId: "acme", shard: 0 }, "a@example.com", { isSuppressed: false }).then(
      (erasure) => {
        end = erasure;
      },
    );
    await eventually("it has ended", async () => {
      await clock.advance(end === null ? 200 : 0);
      return end;
    });
    return [asked, end];
  };
  const left = (unfinishedLeft: number) =>
    expect.objectContaining({ value: expect.objectContaining({ unfinishedLeft, isComplete: unfinishedLeft === 0 }) });
  expect(await asks([0])).toEqual([1, left(0)]);
  expect(await asks([3, 1, 0])).toEqual([3, left(0)]);
  expect(await asks([1])).toEqual([21, left(1)]);
});

test("more at one time than the event store should rewrite are asked to come again", async () => {
  const release = Promise.withResolvers<ErasedHistory>();
  history = () => release.promise;
  const running = [erase({ recipient: "a@example.com" }), erase({ recipient: "b@example.com" })];
  const hasAsked = (name: string) => asked.some((call) => call.endsWith(` ${name}@example.com`));
  await eventually("both are running", () => hasAsked("a") && hasAsked("b"));
  const third = await erase({ recipient: "c@example.com" });
  expect([third.status, third.headers.get("retry-after")]).toEqual([503, "5"]);
  release.resolve(done);
  expect((await Promise.all(running)).map(({ status }) => status)).toEqual([200, 200]);
});

test("who is no recipient, an unknown tenant and a stranger are refused", async () => {
  for (const recipient of ["", "ann", "a@b, c@d", "12", "x".repeat(500), 7, null]) {
    expect([recipient, (await erase({ recipient })).status]).toEqual([recipient, 400]);
  }
  expect((await erase({})).status).toBe(400);
  expect((await erase({ recipient: "a@example.com", tenant: "x" })).status).toBe(400);
  expect((await front.operate("POST", "/tenants/nobody/erasures", { recipient: "a@example.com" })).status).toBe(404);
  expect((await front.fetch(`/dash/api${PATH}`, { method: "POST", body: "{}" })).status).toBe(401);
});
