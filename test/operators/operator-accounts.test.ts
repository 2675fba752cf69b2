import { afterEach, describe, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { AUDIT_KEPT_DAYS, AuditRepository } from "../../src/operators/audit-log.ts";
import { Database } from "../../src/storage/postgres/database.ts";
import { Front } from "../http/support/front.ts";
import { eventually } from "../support/eventually.ts";
import { LONGEST_WAITS } from "../support/longest-waits.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";
import { recently } from "../support/recent-days.ts";
import { SkippingClock } from "../tenants/machine.ts";
import { openTestRegistry } from "../tenants/open-test-registry.ts";

const fronts: Front[] = [];
afterEach(async () => {
  for (const front of fronts.splice(0)) await front.stop();
});

async function start(): Promise<Front> {
  const front = await Front.start();
  fronts.push(front);
  return front;
}

async function add(front: Front, name: string, role: "read" | "write") {
  const { status, body } = await front.operate("POST", "/operators", { name, role });
  expect(status).toBe(201);
  return { id: String(body["operator_id"]), token: String(body["token"]) };
}

function as(front: Front, token: string, method: string, path: string, body?: unknown) {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  return front.fetch(`/dash/api${path}`, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

describe("operators", () => {
  test("are added with a token that works at once, listed without it, and refused as soon as they are deleted", async () => {
    const front = await start();
    const { id, token } = await add(front, "ann", "write");
    expect((await as(front, token, "PATCH", "/tenants/acme", { name: "Acme II" })).status).toBe(200);
    const { body, text } = await front.operate("GET", "/operators");
    expect(body).toMatchObject({ operators: [{ operator_id: id, name: "ann", role: "write", last_used_at: null }] });
    expect(text).not.toContain(token);
    expect((await front.operate("DELETE", `/operators/${id}`)).status).toBe(204);
    expect((await as(front, token, "GET", "/tenants")).status).toBe(401);
    expect((await front.operate("DELETE", `/operators/${id}`)).status).toBe(404);
  });

  test("that may only read are told so in a sentence, and nothing is changed", async () => {
    const front = await start();
    const { token } = await add(front, "bob", "read");
    expect((await as(front, token, "GET", "/tenants/acme")).status).toBe(200);
    const refused = await as(front, token, "PATCH", "/tenants/acme", { name: "Bob's" });
    expect([refused.status, refused.body]).toEqual([
      403,
      { error: "this operator may only read: the call needs an operator with the role write" },
    ]);
    expect((await front.operate("GET", "/tenants/acme")).body["name"]).toBe("Acme");
  });

  test.each(["ann", "root"])("have names of their own: %s is taken", async (name) => {
    const front = await start();
    await add(front, "ann", "read");
    const { status, body } = await front.operate("POST", "/operators", { name, role: "write" });
    expect([status, body]).toEqual([409, { error: "there is an operator of this name already" }]);
  });

  test("of another process are known, and forgotten, within a second", async () => {
    const front = await start();
    const other = await openTestRegistry(front.database);
    other.start();
    try {
      const { id, token } = await add(front, "ann", "write");
      const known = () => other.operators.byToken(token);
      await eventually("it knows the new operator", async () => known() ?? undefined);
      await front.operate("DELETE", `/operators/${id}`);
      await eventually("it knows that the operator is gone", async () => (known() === null ? true : undefined));
    } finally {
      await other.stop();
    }
  });

  test("cost the registry no statement a call, and the root token works while the registry is away", async () => {
    const front = await start();
    const { token } = await add(front, "ann", "write");
    front.database.isAway = true;
    // It needs the registry only to look for the tenant.
    expect((await as(front, token, "GET", "/sandbox/messages")).status).toBe(404);
    expect((await front.operate("GET", "/sandbox/messages")).status).toBe(404);
    expect((await as(front, `wbo_${"x".repeat(43)}`, "GET", "/sandbox/messages")).status).toBe(401);
  });

  test("show when they were last used", async () => {
    const front = await start();
    const { token } = await add(front, "ann", "read");
    await as(front, token, "GET", "/tenants");
    // Stopping writes the remaining rows.
    await front.stores.stop();
    const [operator] = await front.stores.operatorAccounts.all();
    expect(Date.now() - Date.parse(operator?.last_used_at ?? "")).toBeLessThan(60_000);
  });
});

describe("the audit log", () => {
  test("says who did what to what, newest first, by operator, tenant, action and time", async () => {
    const front = await start();
    const { token } = await add(front, "ann", "write");
    await as(front, token, "POST", "/tenants", { name: "Globex", plan: "pro" });
    await as(front, token, "PUT", "/tenants/acme/suppressions/eve%40example.com", { reason: "manual" });
    const rows = async (query: string) => (await front.operate("GET", `/audit?${query}`)).body["rows"];
    expect(await rows("operator=ann")).toMatchObject([
      { action: "putSuppression", tenant: "acme", target: "…@example.com", status: 200 },
      { action: "createTenant", tenant: "globex", detail: { body: { name: "Globex", plan: "pro" } }, status: 201 },
    ]);
    expect(await rows("tenant=acme&action=putSuppression")).toBeArrayOfSize(1);
    expect(await rows(`operator=ann&${recently()}`)).toBeArrayOfSize(2);
    expect(await rows("operator=ann&to=2020-01-01")).toEqual([]);
    expect((await front.operate("GET", "/audit?from=2026-02-30")).status).toBe(400);
    expect((await front.operate("GET", "/audit?cursor=x")).status).toBe(400);
    for (const name of ["operator", "tenant", "action"]) {
      const { status, body } = await front.operate("GET", `/audit?${name}=a%00b`);
      expect([status, body["error"]]).toEqual([400, `${name} must not contain control characters`]);
    }
  });

  test("refuses a change that it cannot take, before anything is changed", async () => {
    const front = await start();
    await front.database.db.execute(sql`alter table audit rename to audit_away`);
    try {
      expect((await front.operate("PATCH", "/tenants/acme", { name: "Unseen" })).status).toBe(500);
    } finally {
      await front.database.db.execute(sql`alter table audit_away rename to audit`);
    }
    expect((await front.operate("GET", "/tenants/acme")).body["name"]).toBe("Acme");
  });

  test("keeps the row of a call whose end nobody could write, without a status", async () => {
    const front = await start();
    const { audit } = front.stores;
    const operator = { id: "root", name: "root", role: "write" } as const;
    const call = { operator, action: "changeTenant", tenantId: "acme", target: null, requestId: "r" };
    const end = await audit.begin(call);
    front.database.isAway = true;
    await end({ status: 200, detail: {}, newTenantId: null });
    front.database.isAway = false;
    expect((await front.operate("GET", "/audit?tenant=acme")).body["rows"]).toMatchObject([
      { request_id: "r", status: null },
    ]);
  });

  test("forgets rows after 400 days", async () => {
    const front = await start();
    await front.operate("PATCH", "/tenants/acme", { name: "Acme II" });
    const sweptAfter = async (days: number) => {
      const clock = Object.assign(new SkippingClock(), { nowMs: () => Date.now() + days * 86_400_000 });
      const database = new Database(front.database.db, clock);
      await new AuditRepository({ database, clock, random: LONGEST_WAITS, telemetry: new QuietTelemetry() })
        .oldRows(() => Promise.resolve(clock.nowMs()))
        .sweep();
      return (await front.operate("GET", "/audit")).body["rows"];
    };
    expect(await sweptAfter(AUDIT_KEPT_DAYS - 1)).toBeArrayOfSize(1);
    expect(await sweptAfter(AUDIT_KEPT_DAYS + 1)).toEqual([]);
  });
});
