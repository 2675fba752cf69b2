import { afterAll, beforeAll, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { Front } from "../http/support/front.ts";

let front: Front;
beforeAll(async () => {
  front = await Front.start();
  await front.addTenant("other", "free");
});
afterAll(() => front.stop(), 90_000);

const path = (address: string, tenant = "acme") => `/tenants/${tenant}/suppressions/${encodeURIComponent(address)}`;

test("an operator puts an address on the list and takes it off again, in whatever case it is written", async () => {
  const put = await front.operate("PUT", path("Ann+Shop@Example.com"), { reason: "complained" });
  expect([put.status, put.body]).toEqual([
    200,
    { address: "ann+shop@example.com", reason: "complained", created_at: expect.any(String) },
  ]);
  expect([...front.queue.suppressed]).toEqual(["acme ann+shop@example.com"]);
  expect((await front.operate("PUT", path("ann+shop@example.com"), {})).body["reason"]).toBe("manual");
  const listed = await front.operate("GET", "/tenants/acme/suppressions");
  expect(listed.body).toEqual({
    suppressions: [{ address: "ann+shop@example.com", reason: "manual", created_at: expect.any(String) }],
    next_cursor: null,
  });
  expect((await front.operate("GET", "/tenants/other/suppressions")).body["suppressions"]).toEqual([]);
  expect((await front.operate("DELETE", path("ANN+shop@example.com"))).status).toBe(204);
  expect((await front.operate("DELETE", path("ann+shop@example.com"))).status).toBe(404);
  expect([...front.queue.suppressed]).toEqual([]);
});

test("a suppression for a topic is put, listed, looked up and taken off beside the one for all messages", async () => {
  const ofTopic = `${path("ann@x.example")}?topic=${encodeURIComponent("Product News")}`;
  await front.operate("PUT", path("ann@x.example"), { reason: "bounced" });
  const put = await front.operate("PUT", path("Ann@x.example"), { reason: "unsubscribed", topic: " Product  News" });
  const entry = {
    address: "ann@x.example",
    topic: "product news",
    reason: "unsubscribed",
    created_at: expect.any(String),
  };
  expect([put.status, put.body]).toEqual([200, entry]);
  expect([...front.queue.suppressed]).toEqual(["acme ann@x.example", "acme ann@x.example\tproduct news"]);
  await front.operate("PUT", path("anna@x.example"), {});
  const found = await front.operate("GET", "/tenants/acme/suppressions?address=ANN@x.example");
  const forAll = { address: "ann@x.example", reason: "bounced", created_at: expect.any(String) };
  expect(found.body).toEqual({ suppressions: [forAll, entry], next_cursor: null });
  expect((await front.operate("GET", "/tenants/acme/suppressions?address=ann")).status).toBe(400);
  expect((await front.operate("GET", path("ANN@x.example"))).body).toEqual(forAll);
  expect((await front.operate("GET", ofTopic)).body).toEqual(entry);
  const unknown = await front.operate("GET", `${path("ann@x.example")}?topic=other`);
  expect([unknown.status, unknown.body["error"]]).toEqual([404, "this address is not suppressed for this topic"]);
  expect((await front.operate("GET", path("nobody"))).status).toBe(404);
  const own = await front.fetch(`/v1/suppressions/ann@x.example`, {
    method: "PUT",
    headers: { "X-API-Key": front.apiKey, "Content-Type": "application/json" },
    body: JSON.stringify({ topic: "receipts" }),
  });
  expect([own.status, own.body["topic"]]).toEqual([200, "receipts"]);
  expect((await front.operate("PUT", path("ann@x.example"), { topic: "a@b" })).status).toBe(400);
  expect((await front.operate("DELETE", `${path("ann@x.example")}?topic=a%40b`)).status).toBe(400);
  expect((await front.operate("DELETE", `${path("ann@x.example")}?topic=other`)).status).toBe(404);
  expect([(await front.operate("DELETE", ofTopic)).status, (await front.operate("DELETE", ofTopic)).status]).toEqual([
    204, 404,
  ]);
  expect([...front.queue.suppressed]).toEqual([
    "acme ann@x.example",
    "acme anna@x.example",
    "acme ann@x.example\treceipts",
  ]);
  for (const address of ["ann@x.example", "anna@x.example"]) await front.operate("DELETE", path(address));
  expect((await front.operate("DELETE", `${path("ann@x.example")}?topic=receipts`)).status).toBe(204);
});

test("addresses with a slash, quotes or a percent sign are taken as they are", async () => {
  for (const address of ["a/b@x.example", '"a b"@x.example', "100%@x.example", "a?b=c@x.example", "a#b@x.example"]) {
    expect((await front.operate("PUT", path(address), { reason: "manual" })).body["address"]).toBe(address);
    expect((await front.operate("DELETE", path(address))).status).toBe(204);
  }
});

test("a list is paged", async () => {
  for (const name of ["c", "a", "b"]) await front.operate("PUT", path(`${name}@x.example`), {});
  const first = await front.operate("GET", "/tenants/acme/suppressions?limit=2");
  expect(first.body["suppressions"]).toHaveLength(2);
  const cursor = encodeURIComponent(String(first.body["next_cursor"]));
  const second = await front.operate("GET", `/tenants/acme/suppressions?limit=2&cursor=${cursor}`);
  expect(second.body).toMatchObject({ suppressions: [{ address: "c@x.example" }], next_cursor: null });
});

test("an invalid address, reason or tenant is refused, and so is a caller without the token", async () => {
  for (const address of ["ann", "a@x.example,b@x.example", " ", "a@x.example\n"]) {
    expect((await front.operate("PUT", path(address), { reason: "manual" })).status).toBe(400);
    expect((await front.operate("DELETE", path(address))).status).toBe(404);
  }
  expect((await front.operate("PUT", path("a@x.example"), { reason: "bored" })).status).toBe(400);
  expect((await front.operate("PUT", path("a@x.example"), { reason: "manual", more: 1 })).status).toBe(400);
  expect((await front.operate("PUT", `${path("a@x.example")}?more=1`, { reason: "manual" })).status).toBe(400);
  expect((await front.operate("PUT", path("a@x.example", "nobody"), { reason: "manual" })).status).toBe(404);
  expect((await front.operate("DELETE", path("a@x.example", "nobody"))).status).toBe(404);
  expect((await front.operate("GET", "/tenants/nobody/suppressions")).status).toBe(404);
  expect((await front.fetch("/dash/api/tenants/acme/suppressions")).status).toBe(401);
});

test("an unknown tenant is 404 whatever else is wrong", async () => {
  expect((await front.operate("PUT", path("ann", "nobody"), { reason: "bored" })).status).toBe(404);
  expect((await front.operate("PUT", path("a@x.example", "nobody"), "no object")).status).toBe(404);
  expect((await front.operate("PUT", path("ann"), { reason: "bored" })).body["error"]).toStartWith("the last part");
});

test("a tenant has a share of addresses that it adds, which operators go beyond", async () => {
  await front.operate("POST", "/tenants", { id: "full", name: "Full" });
  const apiKey = String((await front.operate("POST", "/tenants/full/keys")).body["api_key"]);
  const headers = { "X-API-Key": apiKey, "Content-Type": "application/json" };
  const own = (method: "PUT" | "DELETE", name: string) =>
    front.fetch(`/v1/suppressions/${name}@x.example`, { method, headers, ...(method === "PUT" && { body: "{}" }) });
  await front.database.db.execute(sql`update tenants set own_suppressions = 999999 where id = 'full'`);
  expect((await own("PUT", "a")).status).toBe(200);
  const full = await own("PUT", "b");
  expect([full.status, full.body["error"]]).toEqual([
    409,
    "A tenant has at most 1000000 suppressions that it added itself: delete one that is not used.",
  ]);
  expect([...front.queue.suppressed]).not.toContain("full b@x.example");
  expect((await own("PUT", "a")).status).toBe(200);
  expect((await front.operate("PUT", path("b@x.example", "full"), {})).status).toBe(200);
  expect((await own("DELETE", "a")).status).toBe(204);
  expect((await own("PUT", "c")).status).toBe(200);
});
