import { afterAll, beforeAll, expect, test } from "bun:test";
import { LastUses, type Use } from "../../src/storage/last-uses.ts";
import { Front } from "../http/support/front.ts";
import { eventually } from "../support/eventually.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";
import { SkippingClock } from "./machine.ts";

let front: Front;
beforeAll(async () => {
  front = await Front.start();
});
afterAll(() => front.stop(), 90_000);

const keyed = (apiKey: unknown) => front.fetch("/v1/domains", { headers: { "x-api-key": String(apiKey) } });
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();

test("a key has a name and an expiry, which the list shows, and needs neither", async () => {
  const made = await front.operate("POST", "/tenants/acme/keys", {
    name: "shop",
    expires_at: "2126-01-01T00:00:00+01:00",
  });
  expect(made.status).toBe(201);
  expect((await front.operate("POST", "/tenants/acme/keys")).status).toBe(201);
  expect((await front.operate("POST", "/tenants/acme/keys", { name: null })).status).toBe(201);
  const { body } = await front.operate("GET", "/tenants/acme/keys");
  expect(body["keys"]).toContainEqual(
    expect.objectContaining({
      key_id: made.body["key_id"],
      name: "shop",
      last_used_at: null,
      expires_at: "2125-12-31T23:00:00Z",
    }),
  );
  expect(body["keys"]).toContainEqual(expect.objectContaining({ name: null, expires_at: null }));
});

test.each<[unknown, string]>([
  [{ expires_at: "2020-01-01T00:00:00Z" }, "expires_at is over already"],
  [{ expires_at: "tomorrow" }, "expires_at must be a time to come, as 2027-01-01T00:00:00Z"],
  [{ expires_at: "2126-99-01T00:00:00Z" }, "expires_at must be a time to come, as 2027-01-01T00:00:00Z"],
  [{ name: " " }, "name must not be blank"],
  [{ label: "x" }, "unknown field: label"],
])("a key is not made of %j", async (body, error) => {
  const answer = await front.operate("POST", "/tenants/acme/keys", body);
  expect([answer.status, answer.body]).toEqual([400, { error }]);
});

test("a key is refused from its expiry on, by the process that has it in memory and by one that has not", async () => {
  const expires_at = inMs(5_000);
  const { body } = await front.operate("POST", "/tenants/acme/keys", { expires_at });
  const unused = await front.operate("POST", "/tenants/acme/keys", { expires_at });
  expect((await keyed(body["api_key"])).status).toBe(200);
  await eventually("it is refused", async () => ((await keyed(body["api_key"])).status === 401 ? true : undefined));
  expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expires_at));
  expect((await keyed(unused.body["api_key"])).status).toBe(401);
});

test("a key in memory is used without asking the registry, and its last use is written later", async () => {
  const { body } = await front.operate("POST", "/tenants/acme/keys", { name: "used" });
  expect((await keyed(body["api_key"])).status).toBe(200);
  front.database.isAway = true;
  const holder = await front.stores.directory.byApiKey(String(body["api_key"]));
  front.database.isAway = false;
  expect(holder?.tenant.tenantId).toBe("acme");
  await front.stores.stop();
  const { body: list } = await front.operate("GET", "/tenants/acme/keys");
  expect(list["keys"]).toContainEqual(expect.objectContaining({ name: "used", last_used_at: expect.any(String) }));
});

test("last uses are written at most once a minute each, all in one go, and again when they could not be written", async () => {
  const clock = new SkippingClock();
  const written: string[][] = [];
  const state = { isAway: false };
  const write = async (uses: readonly Use[]) => {
    if (state.isAway) throw new Error("away");
    written.push(uses.map(({ id }) => id));
  };
  const uses = new LastUses({ write, clock, telemetry: new QuietTelemetry() });
  for (let at = 0; at < 1_000; at += 1) uses.note(`key-${at % 2}`);
  await uses.write();
  uses.note("key-0");
  await uses.write();
  expect(written).toEqual([["key-0", "key-1"]]);
  clock.skip(60_000);
  uses.note("key-0");
  state.isAway = true;
  await uses.write();
  state.isAway = false;
  await uses.write();
  expect(written.slice(1)).toEqual([["key-0"]]);
});
