import { afterAll, beforeAll, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { firstEventIdAt } from "../../src/domain/jobs/event.ts";
import { webhookAttempts, webhooks } from "../../src/webhooks/tables.ts";
import { Front } from "../http/support/front.ts";

const JOB = "01936f2e-7c1a-7b3e-9a55-2f1c8f0a4d11";
const NOW_MS = Date.now();

let front: Front;
const made: Record<string, string> = {};
beforeAll(async () => {
  front = await Front.start();
  for (const name of ["well", "failing", "disabled"]) {
    const { status, body } = await front.post("/v1/webhooks", { url: `https://hooks.example.com/${name}` });
    expect(status).toBe(201);
    made[name] = String(body["webhook_id"]);
  }
  const { db } = front.database;
  const at = new Date(NOW_MS - 60_000);
  const failing = { failures: 2, failingSince: at, nextAt: new Date(NOW_MS + 60_000), lastError: "it answered 503" };
  await db
    .update(webhooks)
    .set(failing)
    .where(eq(webhooks.id, must("failing")));
  const disabled = { failures: 9, disabledReason: "gone", disabledAt: at } as const;
  await db
    .update(webhooks)
    .set(disabled)
    .where(eq(webhooks.id, must("disabled")));
  const call = { tenantId: "acme", webhookId: must("failing"), isTest: false, messageId: "m", events: 1, ms: 5 };
  const answers = [500, 503].map((status) => ({ ...call, at, status, error: `the receiver answered ${status}` }));
  await db.insert(webhookAttempts).values(answers);
}, 300_000);
afterAll(() => front.stop(), 90_000);

function must(name: string): string {
  return made[name] ?? "";
}

async function list(query = "") {
  const { status, body } = await front.operate("GET", `/webhooks${query}`);
  expect([status, body["error"]]).toEqual([200, undefined]);
  return body["webhooks"] as readonly Readonly<Record<string, unknown>>[];
}

test("operators see every tenant's webhooks, their states and what their receivers said last", async () => {
  const states = (await list()).map(({ tenant_id, url, state }) => [tenant_id, url, state]);
  expect(states).toEqual([
    ["acme", "https://hooks.example.com/well", "enabled"],
    ["acme", "https://hooks.example.com/failing", "failing"],
    ["acme", "https://hooks.example.com/disabled", "disabled"],
  ]);
  const [failing] = await list("?state=failing");
  expect(failing).toMatchObject({ last_call: { status: 503, error: "the receiver answered 503" } });
  expect(failing).not.toHaveProperty("secret");
  expect(await list("?tenant=globex")).toEqual([]);
  const first = await front.operate("GET", "/webhooks?limit=2");
  const rest = await list(`?limit=2&cursor=${String(first.body["next_cursor"])}`);
  expect(rest.map(({ state }) => state)).toEqual(["disabled"]);
  expect((await front.operate("GET", "/webhooks?cursor=x")).status).toBe(400);
  expect((await front.operate("GET", "/webhooks?state=lazy")).status).toBe(400);
});

test("a webhook is behind by the age of what it was told last", async () => {
  const position = firstEventIdAt(NOW_MS - 90_000);
  await front.database.db.update(webhooks).set({ position });
  expect((await list()).map(({ behind_seconds }) => behind_seconds)).toEqual([0, 0, 0]);
  const event = { tenantId: "acme", jobId: JOB, channel: "email", type: "sent", result: {} } as const;
  front.eventStore.events.push({ ...event, eventId: firstEventIdAt(NOW_MS) });
  expect((await list()).map(({ behind_seconds }) => behind_seconds)).toEqual([90, 90, 90]);
});

test("an operator enables one, has it told again, and looks at its calls", async () => {
  const path = `/tenants/acme/webhooks/${must("disabled")}`;
  const enabled = await front.operate("POST", `${path}/enable`);
  expect([enabled.status, enabled.body["status"]]).toEqual([200, "enabled"]);
  expect((await list("?state=disabled")).length).toBe(0);
  const after = firstEventIdAt(NOW_MS - 3_600_000);
  const replayed = await front.operate("POST", `${path}/replay`, { after_event_id: after });
  expect([replayed.status, replayed.body["last_event_id"]]).toEqual([202, after]);
  expect((await front.operate("POST", `${path}/replay`, {})).status).toBe(400);
  const calls = await front.operate("GET", `/tenants/acme/webhooks/${must("failing")}/attempts`);
  expect([calls.status, (calls.body["attempts"] as unknown[]).length]).toEqual([200, 2]);
  for (const wrong of [`/tenants/globex/webhooks/${must("well")}`, `/tenants/acme/webhooks/${JOB}`]) {
    expect((await front.operate("POST", `${wrong}/enable`)).status).toBe(404);
  }
});

test("a plan says how many tenants have it, and leads to them", async () => {
  await front.operate("PUT", "/plans/narrow", { requests_per_minute: 7 });
  await front.operate("POST", "/tenants", { id: "thin", name: "Thin", plan: "narrow" });
  const { body } = await front.operate("GET", "/plans");
  expect(body["plans"]).toContainEqual(expect.objectContaining({ name: "narrow", tenants: 1 }));
  const found = await front.operate("GET", "/tenants?plan=narrow");
  expect((found.body["tenants"] as { id: string }[]).map(({ id }) => id)).toEqual(["thin"]);
});
