import { afterAll, beforeAll, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { ChangePace } from "../../src/http/change-pace.ts";
import { AuditShares } from "../../src/operators/audit-shares.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { TemplateLists } from "../../src/tenants/endpoints/template-endpoints.ts";
import { type Answer, Front } from "../http/support/front.ts";
import { SkippingClock } from "./machine.ts";

/* Tenants' own management: their keys, with scopes, and settings that operators otherwise manage for them. */

let front: Front;
beforeAll(async () => {
  front = await Front.start();
  await front.addTenant("other", "free");
});
afterAll(() => front.stop(), 90_000);

/** A call with a key; by default, acme's first one, which allows everything. */
function own(method: string, path: string, body?: unknown, apiKey: string = front.apiKey): Promise<Answer> {
  const headers = { "x-api-key": apiKey, "content-type": "application/json" };
  return front.fetch(
    `/v1${path}`,
    body === undefined ? { method, headers } : { method, headers, body: JSON.stringify(body) },
  );
}

interface Made {
  readonly id: string;
  readonly key: string;
}

async function createKey(scopes: readonly string[], tenant = "acme"): Promise<Made> {
  const { body } = await front.operate("POST", `/tenants/${tenant}/keys`, { scopes });
  return { id: String(body["key_id"]), key: String(body["api_key"]) };
}

const getError = ({ status, body }: Answer) => [status, body["error"]];

test("a key of an operator allows what its scopes say, without any everything, and the list says so", async () => {
  const send = await createKey(["send"]);
  const all = await front.operate("POST", "/tenants/acme/keys", { scopes: null });
  const { body } = await front.operate("GET", "/tenants/acme/keys");
  expect(body["keys"]).toContainEqual(expect.objectContaining({ key_id: send.id, scopes: ["send"] }));
  expect(body["keys"]).toContainEqual(
    expect.objectContaining({ key_id: all.body["key_id"], scopes: ["send", "read", "manage"] }),
  );
  const message = { to_address: "ann@example.com", template_id: "welcome" };
  expect((await own("POST", "/send/email", message, send.key)).status).toBe(202);
  expect(getError(await own("GET", "/domains", undefined, send.key))).toEqual([
    403,
    "this API key lacks the scope read, which the call needs",
  ]);
  expect((await own("GET", "/domains", undefined, String(all.body["api_key"]))).status).toBe(200);
});

test.each<[unknown, string]>([
  [{ scopes: [] }, "scopes must be a list of send, read, manage, each once, at least one"],
  [{ scopes: ["send", "send"] }, "scopes must be a list of send, read, manage, each once, at least one"],
  [{ scopes: "send" }, "scopes must be a list of send, read, manage, each once, at least one"],
])("a key is not made of %j", async (given, error) => {
  expect(getError(await front.operate("POST", "/tenants/acme/keys", given))).toEqual([400, error]);
  expect(getError(await own("POST", "/keys", given))).toEqual([400, error]);
});

test("a call that lacks its scope is counted, and nothing of it is done or told", async () => {
  const read = await createKey(["read"]);
  const before = front.queue.queued.length;
  const { status, headers, body } = await own("POST", "/send/email", { to: 1 }, read.key);
  expect([status, body["error"], headers.has("ratelimit-remaining")]).toEqual([
    403,
    "this API key lacks the scope send, which the call needs",
    true,
  ]);
  expect(front.queue.queued.length).toBe(before);
});

test("a tenant makes keys with its own scopes at most, sees them without the keys, and revokes them", async () => {
  const manage = await createKey(["read", "manage"]);
  const made = await own("POST", "/keys", { name: "reports", scopes: ["read"] }, manage.key);
  expect([made.status, Object.keys(made.body)]).toEqual([201, ["key_id", "api_key"]]);
  const like = await own("POST", "/keys", undefined, manage.key);
  expect(getError(await own("POST", "/keys", { scopes: ["read", "send"] }, manage.key))).toEqual([
    403,
    "a key cannot give what it lacks itself: this one lacks the scope send",
  ]);
  const listed = await own("GET", "/keys", undefined, manage.key);
  expect(listed.text).not.toContain(String(made.body["api_key"]));
  const { key_id } = made.body;
  expect(listed.body["keys"]).toContainEqual(expect.objectContaining({ key_id, name: "reports", scopes: ["read"] }));
  expect(listed.body["keys"]).toContainEqual(
    expect.objectContaining({ key_id: like.body["key_id"], scopes: ["read", "manage"] }),
  );
  const mine = String(made.body["api_key"]);
  expect((await own("GET", "/domains", undefined, mine)).status).toBe(200);
  expect((await own("GET", "/keys", undefined, mine)).status).toBe(403);
  expect((await own("DELETE", `/keys/${String(key_id)}`)).status).toBe(204);
  expect((await own("GET", "/domains", undefined, mine)).status).toBe(401);
});

test("a tenant neither sees nor revokes another's keys", async () => {
  const { id } = await createKey(["send"], "other");
  expect((await own("GET", "/keys")).text).not.toContain(id);
  expect(getError(await own("DELETE", `/keys/${id}`))).toEqual([404, "there is no such key"]);
});

test("a tenant keeps one key that allows manage and has not expired; an operator may revoke that as well", async () => {
  await front.operate("POST", "/tenants", { id: "single", name: "Single" });
  const manage = await createKey(["manage"], "single");
  await createKey(["send", "read"], "single");
  expect(getError(await own("DELETE", `/keys/${manage.id}`, undefined, manage.key))).toEqual([
    409,
    "this is the last key that allows manage: make another one first, or ask an operator",
  ]);
  const another = await own("POST", "/keys", {}, manage.key);
  expect((await own("DELETE", `/keys/${String(another.body["key_id"])}`, undefined, manage.key)).status).toBe(204);
  expect((await front.operate("DELETE", `/tenants/single/keys/${manage.id}`)).status).toBe(204);
});

test("two keys that revoke each other at one time leave one", async () => {
  await front.operate("POST", "/tenants", { id: "duel", name: "Duel" });
  const [one, other] = [await createKey(["manage"], "duel"), await createKey(["manage"], "duel")];
  const ends = await Promise.all([
    own("DELETE", `/keys/${other.id}`, undefined, one.key),
    own("DELETE", `/keys/${one.id}`, undefined, other.key),
  ]);
  // The second one may find that its own key is gone.
  const refused = ends.map(({ status }) => status).filter((status) => status !== 204);
  expect([refused.length, [401, 409].includes(refused[0] ?? 0)]).toEqual([1, true]);
  expect((await front.operate("GET", "/tenants/duel/keys")).body["keys"]).toHaveLength(1);
});

test("a tenant has a share of keys and of templates, which operators may go beyond", async () => {
  await front.operate("POST", "/tenants", { id: "full", name: "Full" });
  const { key } = await createKey(["manage"], "full");
  const { db } = front.database;
  await db.execute(sql`
    insert into keys (id, tenant_id, hash, prefix, created_at)
    select 'full-' || n, 'full', 'hash-' || n, 'wb_', now() from generate_series(1, 99) n`);
  expect(getError(await own("POST", "/keys", {}, key))).toEqual([
    409,
    "A tenant has at most 100 keys: delete one that is not used.",
  ]);
  expect((await front.operate("POST", "/tenants/full/keys")).status).toBe(201);

  const template = { channel: "email", subject: "Hi", html: "<p>Hi</p>" };
  await db.execute(sql`
    insert into templates (tenant_id, slug, channel, body)
    select 'full', 't-' || n, 'email', '{"subject":"x","html":"x","text":null}'::jsonb from generate_series(1, 1000) n`);
  expect((await own("PUT", "/templates/t-1", template, key)).status).toBe(200);
  expect(getError(await own("PUT", "/templates/one-more", template, key))).toEqual([
    409,
    "A tenant has at most 1000 templates: delete one that is not used.",
  ]);
  expect((await front.operate("PUT", "/tenants/full/templates/one-more", template)).status).toBe(200);

  await db.execute(sql`delete from templates where tenant_id = 'full'`);
  await db.execute(sql`
    insert into templates (tenant_id, slug, channel, body)
    select 'full', 'large-' || n, 'email', jsonb_build_object('subject', 'x', 'html', repeat('x', 4200000))
    from generate_series(1, 2) n`);
  expect(getError(await own("PUT", "/templates/one-more", template, key))).toEqual([
    409,
    "A tenant has at most 8388608 bytes of templates: delete one that is not used.",
  ]);
});

test("a tenant keeps its templates, previews them, and sends one as a test within what it may send", async () => {
  const template = { channel: "email", subject: "Hi {{.name}}", html: "<p>Hi {{.name}}</p>" };
  const put = await own("PUT", "/templates/hello", template);
  expect([put.status, put.body]).toEqual([200, { slug: "hello", ...template, text: null }]);
  expect((await front.operate("GET", "/tenants/acme/templates/hello")).body).toEqual(put.body);
  expect((await own("GET", "/templates")).body["templates"]).toContainEqual(put.body);
  const preview = await own("POST", "/templates/hello/preview", { data: { name: "Ann" } });
  expect(preview.body).toMatchObject({ subject: "Hi Ann", html: "<p>Hi Ann</p>" });
  expect((await own("POST", "/templates/hello/test", { to_address: "ann@example.com" })).status).toBe(202);
  expect(getError(await own("PUT", "/templates/broken", { ...template, html: "{{name}}" }))[0]).toBe(400);
  expect((await own("GET", "/templates/broken")).status).toBe(404);

  await front.operate("POST", "/tenants/acme/hold", { channels: ["email"] });
  expect(getError(await own("POST", "/templates/hello/test", { to_address: "ann@example.com" }))).toEqual([
    403,
    "sends of this tenant on email are on hold",
  ]);
  await front.operate("POST", "/tenants/acme/release", {});
  expect((await own("DELETE", "/templates/hello")).status).toBe(204);
  expect((await own("POST", "/templates/hello/preview", {})).status).toBe(404);
});

test("a tenant puts recipients on its list of suppressions and takes them off again", async () => {
  const path = `/suppressions/${encodeURIComponent("Ann@Example.com")}`;
  const put = await own("PUT", path, { reason: "unsubscribed" });
  expect(put.body).toMatchObject({ address: "ann@example.com", reason: "unsubscribed" });
  expect([...front.queue.suppressed]).toEqual(["acme ann@example.com"]);
  expect((await own("GET", "/suppressions")).body).toEqual({ suppressions: [put.body], next_cursor: null });
  expect((await front.operate("GET", "/tenants/other/suppressions")).body["suppressions"]).toEqual([]);
  expect((await own("PUT", "/suppressions/ann", {})).status).toBe(400);
  expect((await own("DELETE", path)).status).toBe(204);
  expect(getError(await own("DELETE", path))).toEqual([404, "this address is not suppressed"]);
  expect([...front.queue.suppressed]).toEqual([]);
});

test("a tenant keeps its names for chat templates, and a send uses them", async () => {
  const put = await own("PUT", "/aliases/shipped", { meta_name: "order_shipped_hx0123", language_code: "en" });
  expect([put.status, put.body["meta_name"]]).toEqual([200, "order_shipped_hx0123"]);
  expect((await own("GET", "/aliases/shipped")).body).toEqual(put.body);
  expect((await own("GET", "/aliases")).body).toEqual({ aliases: [put.body] });
  const sent = await own("POST", "/send/whatsapp", { phone_number: "5491122334455", template_id: "shipped" });
  expect([sent.status, front.queue.queued.at(-1)?.job.payload]).toEqual([
    202,
    expect.stringContaining("order_shipped_hx0123"),
  ]);
  expect(
    getError(await own("PUT", "/aliases/shipped", { meta_name: "x", header: { type: "image", size: 1 } })),
  ).toEqual([400, "unknown field: header[size]"]);
  expect((await own("DELETE", "/aliases/shipped")).status).toBe(204);
  expect((await own("GET", "/aliases/shipped")).status).toBe(404);
});

test("a tenant's aliases take a bounded part of every process's memory, however few they are", async () => {
  await front.addTenant("wordy", "pro");
  const { key } = await createKey(["manage"], "wordy");
  const params = Array.from({ length: 200 }, () => "é".repeat(200));
  const put = (alias: string, given: readonly string[]) =>
    own("PUT", `/aliases/${alias}`, { meta_name: "m", params: given }, key);
  await front.database.db.execute(sql`
    insert into aliases (tenant_id, alias, meta_name, params)
    select 'wordy', 'alias-' || n, 'm', array_fill(repeat('é', 200), array[200]) from generate_series(0, 94) n`);
  expect((await put("alias-95", params)).status).toBe(200);
  expect(getError(await put("alias-96", params))).toEqual([
    409,
    "A tenant has at most 8388608 bytes of aliases: delete one that is not used.",
  ]);
  expect((await put("alias-0", ["short"])).status).toBe(200);
  expect((await put("alias-96", params.slice(0, 100))).status).toBe(200);
});

test("a change that a tenant makes is in the audit log as its key's, without secrets and people", async () => {
  const { id, key } = await createKey(["manage"]);
  const made = await own("POST", "/keys", { name: "audited" }, key);
  await own("PUT", "/suppressions/bob@example.com", {}, key);
  await own("DELETE", "/keys/none", undefined, key);
  await own("GET", "/keys", undefined, key);
  const { body } = await front.operate("GET", `/audit?operator=${id}`);
  const rows = body["rows"] as readonly Record<string, unknown>[];
  expect(rows.map(({ action, tenant, target, status }) => [action, tenant, target, status])).toEqual([
    ["revokeOwnKey", "acme", "none", 404],
    ["putOwnSuppression", "acme", "…@example.com", 200],
    ["createOwnKey", "acme", null, 201],
  ]);
  expect(rows.at(-1)?.["detail"]).toEqual({ body: { name: "audited" }, answer: { key_id: made.body["key_id"] } });
  expect(JSON.stringify(rows)).not.toContain(String(made.body["api_key"]));
});

test("a tenant's refused calls take a bounded number of rows of the audit log a day, which count them all", async () => {
  await front.addTenant("noisy", "pro");
  const { id, key } = await createKey(["manage"], "noisy");
  const second = await createKey(["manage"], "noisy");
  const noise = Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`member_${"x".repeat(30)}_${at}`, 1]));
  for (let call = 0; call < 130; call += 1) {
    expect((await own("DELETE", `/keys/none-${call}`, undefined, key)).status).toBe(404);
    expect((await own("PUT", "/templates/broken", noise, key)).status).toBe(400);
  }
  expect((await own("DELETE", "/keys/none", undefined, second.key)).status).toBe(404);
  await own("PUT", "/suppressions/bob@example.com", {}, key);
  const { body } = await front.operate("GET", "/audit?tenant=noisy&limit=500");
  const rows = (body["rows"] as readonly { action: string; status: number; calls: number; operator: string }[]).filter(
    ({ operator }) => operator !== "root",
  );
  expect(rows.length).toBe(103);
  const sums = rows
    .filter(({ calls }) => calls > 1)
    .map(({ action, status, calls, operator }) => [action, status, calls, operator]);
  expect(sums).toEqual([
    ["putOwnTemplate", 400, 80, id],
    ["revokeOwnKey", 404, 81, "several"],
  ]);
  expect(rows.reduce((sum, { calls }) => sum + calls, 0)).toBe(262);
});

test("of a tenant's changes ten thousand a day have rows of their own, whatever another tenant does, and each has a row", () => {
  let nowMs = 0;
  const shares = new AuditShares(Object.assign(new SkippingClock(), { nowMs: () => nowMs }));
  const findRow = (tenantId: string, id: number) =>
    shares.sumFor(tenantId, { action: "putOwnKey", status: 200, id }) ?? id;
  for (let id = 1; id <= 10_000; id += 1) expect(findRow("acme", id)).toBe(id);
  expect([10_001, 10_002, 10_003].map((id) => findRow("acme", id))).toEqual([10_001, 10_001, 10_001]);
  expect(findRow("other", 10_004)).toBe(10_004);
  expect(shares.sumFor("acme", { action: "putOwnKey", status: 404, id: 10_005 })).toBeNull();
  nowMs = 86_400_000;
  expect(findRow("acme", 10_006)).toBe(10_006);
});

test("a tenant that changes things without end waits, and another one does not", () => {
  let nowMs = 0;
  const clock = new SkippingClock();
  clock.monotonicMs = () => nowMs;
  const pace = new ChangePace(clock);
  let taken = 0;
  while (pace.waitSeconds("acme") === 0) taken += 1;
  expect([taken, pace.waitSeconds("acme"), pace.waitSeconds("other")]).toEqual([1_000, 1, 0]);
  nowMs = 1_000;
  for (taken = 0; pace.waitSeconds("acme") === 0; ) taken += 1;
  expect(taken).toBe(10);
});

test("a tenant reads a few lists of its templates at one time, and is told when to come back for more", async () => {
  const lists = new TemplateLists(systemClock);
  const order: string[] = [];
  const { promise: read, resolve } = Promise.withResolvers<string>();
  const list = (tenantId: string) => lists.of(tenantId, () => read.then(() => order.push(tenantId)));
  const four = Array.from({ length: 4 }, () => list("acme"));
  expect(() => list("acme")).toThrow(expect.objectContaining({ status: 429, retryAfterSeconds: 1 }));
  const other = list("other");
  resolve("");
  await Promise.all([...four, other]);
  expect(order.toSpliced(order.indexOf("other"), 1)).toEqual(["acme", "acme", "acme", "acme"]);
  expect(order.indexOf("other")).toBeLessThan(3);
  await list("acme");
});
