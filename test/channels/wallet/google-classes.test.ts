import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { GoogleOutcome } from "../../../src/channels/wallet/sandbox/google-sandbox.ts";
import type { PlatformCredentials } from "../../../src/domain/channels/platform.ts";
import { ALL_SCOPES, type Tenant, type TenantDirectory } from "../../../src/domain/tenants/tenant.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { Front } from "../../http/support/front.ts";
import { NO_WALLET } from "../../http/support/no-wallet.ts";
import { aTenant } from "../../support/tenants.ts";
import { GOOGLE_ISSUER, GoogleWorld, ISSUER, text } from "./google-world.ts";
import { TestOwners } from "./test-owners.ts";

const SLOW_MS = 30_000;
const NO_OWN = { apple: null, google: null, templates: new Map(), webhookUrl: null };
const OWN = { ...NO_OWN, google: GOOGLE_ISSUER };
const LONG_HOST = `https://${"ü".repeat(64)}.test/hero.png`;
/** The issuer that tenants without their own share. */
const COMMON = "3388000000000000009";
const platform: PlatformCredentials = {
  whatsapp: null,
  apple: null,
  google: { ...GOOGLE_ISSUER, issuerId: COMMON },
};
const channels = new Set(["wallet"] as const);
/** By API key. */
const TENANTS: Readonly<Record<string, Tenant>> = {
  own: aTenant({ channels, wallet: OWN }),
  beta: aTenant({ tenantId: "beta", channels, wallet: NO_OWN }),
  gamma: aTenant({ tenantId: "gamma", channels, wallet: NO_OWN }),
  mail: aTenant({ tenantId: "mail", wallet: OWN }),
};
const directory: TenantDirectory = {
  byApiKey(apiKey) {
    const tenant = TENANTS[apiKey];
    return tenant === undefined ? null : { tenant, key: { keyId: apiKey, scopes: ALL_SCOPES } };
  },
  byId: () => null,
};

let owners: TestOwners;
let world: GoogleWorld;
let front: Front;
let outcome: GoogleOutcome | null = null;
beforeAll(async () => {
  owners = await TestOwners.open(["beta", "gamma"]);
  world = await GoogleWorld.open({ outcomeFor: () => outcome }, { platform, classOwners: owners.all });
}, SLOW_MS);
beforeEach(async () => {
  front = await Front.start({
    directory,
    platform,
    wallet: { ...NO_WALLET, classes: world.wallet.classes },
  });
});
afterEach(async () => {
  outcome = null;
  await front.stop();
});
afterAll(async () => {
  await world?.close();
  await owners?.close();
}, SLOW_MS);

let serials = 0;
function anEvent(members: object = {}) {
  serials += 1;
  const id = `${ISSUER}.event-${serials}`;
  return {
    class_type: "eventTicket",
    class_data: { id, issuerName: "Acme", eventName: text("The final"), ...members },
  };
}

async function call(method: string, path: string, body?: unknown, key = "own") {
  const headers = { "X-API-Key": key, "Content-Type": "application/json" };
  const init = body === undefined ? { method, headers } : { method, headers, body: JSON.stringify(body) };
  const { status, body: answer } = await front.fetch(`/v1/google/classes${path}`, init);
  return [status, answer] as const;
}

const refusal = (status: number, words: string) => [status, { error: expect.stringContaining(words) }] as const;

describe("a class", () => {
  test("is created as it is given, and submitted for review", async () => {
    const body = anEvent({ venue: { name: text("Centre court"), address: text("1 Racket Road") } });
    const { id } = body.class_data;
    expect(await call("POST", "", body)).toEqual([201, { status: "created", class_id: id }]);
    expect(world.sandbox.resources.data("eventTicketClass", id)).toEqual({
      ...body.class_data,
      hexBackgroundColor: "#1A56DB",
      reviewStatus: "UNDER_REVIEW",
    });
    const [status, held] = await call("GET", `/${id}?class_type=eventTicket`);
    expect(status).toBe(200);
    expect(held).toMatchObject({ ...body.class_data, reviewStatus: "UNDER_REVIEW" });
  });

  test("changes in the parts that are given, and is submitted again, whatever its status was", async () => {
    const body = anEvent({ hexBackgroundColor: "#0B1F3A" });
    const { id } = body.class_data;
    await call("POST", "", body);
    for (const reviewStatus of [undefined, "APPROVED", "approved", "underReview", "REJECTED"]) {
      const change = { class_type: "eventTicket", class_data: { eventName: text("Semifinal"), reviewStatus } };
      expect(await call("PUT", `/${id}`, change)).toEqual([200, { status: "updated", class_id: id }]);
    }
    expect(world.sandbox.resources.data("eventTicketClass", id)).toMatchObject({
      eventName: text("Semifinal"),
      hexBackgroundColor: "#0B1F3A",
    });
  });

  test("keeps the members of venue and dateTime that a change leaves out, and loses those that it sets to null", async () => {
    const dateTime = { doorsOpen: "2026-12-05T17:30:00", start: "2026-12-05T18:30:00", end: "2026-12-05T21:30:00" };
    const body = anEvent({ dateTime, venue: { name: text("Centre court"), address: text("1 Racket Road") } });
    const { id } = body.class_data;
    await call("POST", "", body);
    const later = { dateTime: { doorsOpen: null, end: "2026-12-05T22:00:00" }, venue: { name: text("Court 1") } };
    const change = { class_type: "eventTicket", class_data: later };
    expect(await call("PUT", `/${id}`, change)).toEqual([200, { status: "updated", class_id: id }]);
    expect(world.sandbox.resources.data("eventTicketClass", id)).toMatchObject({
      dateTime: { start: "2026-12-05T18:30:00", end: "2026-12-05T22:00:00" },
      venue: { name: text("Court 1"), address: text("1 Racket Road") },
    });
    expect(world.sandbox.resources.data("eventTicketClass", id)?.["dateTime"]).not.toHaveProperty("doorsOpen");
  });

  test("may stay a draft, and be a generic one, which nobody reviews", async () => {
    const draft = anEvent({ reviewStatus: "draft" });
    expect((await call("POST", "", draft))[0]).toBe(201);
    expect(world.sandbox.resources.data("eventTicketClass", draft.class_data.id)).toMatchObject({
      reviewStatus: "DRAFT",
    });
    const id = `${ISSUER}.members-${serials}`;
    expect((await call("POST", "", { class_type: "generic", class_data: { id } }))[0]).toBe(201);
    expect(world.sandbox.resources.data("genericClass", id)).toEqual({ id });
    expect((await call("GET", `/${id}?class_type=generic`))[0]).toBe(200);
    expect((await call("GET", `/${id}?class_type=eventTicket`))[0]).toBe(404);
  });

  test("has nothing of what is null in its creation, and no review status if it is a generic one", async () => {
    const body = anEvent({ venue: null, homepageUri: null, reviewStatus: null, hexBackgroundColor: null });
    const { id } = body.class_data;
    expect(await call("POST", "", body)).toEqual([201, { status: "created", class_id: id }]);
    expect(world.sandbox.resources.data("eventTicketClass", id)).toEqual({
      ...anEvent().class_data,
      id,
      hexBackgroundColor: "#1A56DB",
      reviewStatus: "UNDER_REVIEW",
    });
    const generic = `${ISSUER}.null-${serials}`;
    const nothing = { class_type: "generic", class_data: { id: generic, reviewStatus: null, classTemplateInfo: null } };
    expect(await call("POST", "", nothing)).toEqual([201, { status: "created", class_id: generic }]);
    const change = { class_type: "generic", class_data: { reviewStatus: null } };
    expect(await call("PUT", `/${generic}`, change)).toEqual([200, { status: "updated", class_id: generic }]);
    expect(world.sandbox.resources.data("genericClass", generic)).toEqual({ id: generic });
  });

  test("that Google has already, does not have or does not take is answered as such", async () => {
    const body = anEvent();
    await call("POST", "", body);
    expect(await call("POST", "", body)).toEqual(refusal(400, "already"));
    const missing = `/${ISSUER}.nothing`;
    expect(await call("PUT", missing, { class_type: "eventTicket", class_data: {} })).toEqual(refusal(404, "no class"));
    expect(await call("GET", `${missing}?class_type=eventTicket`)).toEqual(refusal(404, "no class"));
    const change = { class_type: "eventTicket", class_data: { venue: null, reviewStatus: "DRAFT" } };
    expect(await call("PUT", `/${body.class_data.id}`, change)).toEqual(refusal(400, "UNDER_REVIEW"));
  });

  test("is answered 500 while Google does not do what it should, and no secret is told", async () => {
    for (const each of ["throttled", "broken", "denied", "lost"] as const) {
      outcome = each;
      const [status, body] = await call("POST", "", anEvent());
      expect(status).toBe(500);
      expect(JSON.stringify(body)).not.toContain("PRIVATE");
    }
  });
});

describe("a class request", () => {
  test("is refused with the field that is wrong", async () => {
    const event = anEvent().class_data;
    const cases: readonly (readonly [unknown, string])[] = [
      [[], "the body"],
      [{ class_data: event }, "class_type is required"],
      [{ class_type: "voucher", class_data: event }, "class_type"],
      [{ class_type: "eventTicket" }, "class_data is required"],
      [{ class_type: "eventTicket", class_data: "x" }, "class_data"],
      [anEvent({ id: undefined }), "class_data.id"],
      [anEvent({ id: `${ISSUER}.a b` }), "class_data.id"],
      [anEvent({ id: "3388000000000000002.event" }), `begin with ${ISSUER}.`],
      [anEvent({ id: `${ISSUER}0.event` }), `begin with ${ISSUER}.`],
      [anEvent({ issuerName: undefined }), "class_data.issuerName"],
      [anEvent({ eventName: "The final" }), "class_data.eventName"],
      [anEvent({ venue: { name: text("Centre court") } }), "class_data.venue.address"],
      [anEvent({ dateTime: { start: "tomorrow" } }), "class_data.dateTime.start"],
      [anEvent({ dateTime: { start: "2026-06-31T18:30:00" } }), "class_data.dateTime.start"],
      [anEvent({ hexBackgroundColor: "blue" }), "class_data.hexBackgroundColor"],
      [anEvent({ logo: { sourceUri: { uri: "file:///etc/passwd" } } }), "class_data.logo.sourceUri.uri"],
      [anEvent({ heroImage: { sourceUri: { uri: LONG_HOST } } }), "class_data.heroImage.sourceUri.uri"],
      [anEvent({ reviewStatus: "APPROVED" }), "class_data.reviewStatus"],
      [{ class_type: "generic", class_data: { id: `${ISSUER}.g`, reviewStatus: "DRAFT" } }, "class_data.reviewStatus"],
    ];
    for (const [body, words] of cases)
      expect([body, ...(await call("POST", "", body))]).toEqual([body, ...refusal(400, words)]);
    expect(await call("GET", `/${ISSUER}0.event?class_type=eventTicket`)).toEqual(refusal(404, "no such class"));
    const { id } = event;
    const elsewhere = { class_type: "eventTicket", class_data: { id: `${ISSUER}.other` } };
    expect(await call("PUT", `/${id}`, elsewhere)).toEqual(refusal(400, "class_data.id"));
    expect(await call("GET", `/${id}`)).toEqual(refusal(400, "class_type"));
    expect(await call("GET", `/${id}?class_type=voucher`)).toEqual(refusal(400, "class_type"));
    expect(await call("GET", `/${id}?colour=red`)).toEqual(refusal(400, "colour"));
  });

  test("needs a key and the channel, and is counted whatever its answer", async () => {
    expect((await call("POST", "", anEvent(), "nobody"))[0]).toBe(401);
    expect(await call("POST", "", anEvent(), "mail")).toEqual(refusal(403, "wallet"));
    expect(await call("GET", `/${ISSUER}.x?class_type=generic`, undefined, "mail")).toEqual(refusal(403, "wallet"));
    const counted = front.queue.counted;
    await call("POST", "", "no object");
    await call("POST", "", anEvent());
    expect(front.queue.counted).toBe(counted + 2);
  });

  test("without credentials is answered 500, and says where they are set", async () => {
    const bare = await Front.start({ directory, wallet: { ...NO_WALLET, classes: world.wallet.classes } });
    try {
      const headers = { "X-API-Key": "beta", "Content-Type": "application/json" };
      const answer = await bare.fetch("/v1/google/classes", {
        method: "POST",
        headers,
        body: JSON.stringify(anEvent()),
      });
      expect([answer.status, answer.body]).toEqual([...refusal(500, "credentials/google")]);
    } finally {
      await bare.stop();
    }
  });
});

describe("with the platform's issuer a class", () => {
  const aCommonEvent = () => {
    const event = anEvent();
    const id = event.class_data.id.replace(ISSUER, COMMON);
    return { id, body: { ...event, class_data: { ...event.class_data, id } } };
  };
  const change = { class_type: "eventTicket", class_data: { eventName: text("Cancelled") } };
  const created = (id: string) => [201, { status: "created", class_id: id }] as const;
  const updated = (id: string) => [200, { status: "updated", class_id: id }] as const;
  const get = (id: string, key: string) => call("GET", `/${id}?class_type=eventTicket`, undefined, key);

  test("has any id after the issuer's, and belongs to its creator alone", async () => {
    const { id, body } = aCommonEvent();
    expect(await call("POST", "", body, "beta")).toEqual(created(id));
    expect(await call("POST", "", body, "gamma")).toEqual(await call("POST", "", body, "beta"));
    expect(await call("POST", "", body, "gamma")).toEqual(refusal(400, "already"));
    const nothing = `${COMMON}.nothing`;
    const said = JSON.stringify(await call("PUT", `/${nothing}`, change, "gamma"));
    expect(JSON.stringify(await call("PUT", `/${id}`, change, "gamma"))).toBe(said.replace(nothing, id));
    expect(await get(id, "gamma")).toEqual(refusal(404, "no class"));
    expect(world.sandbox.resources.data("eventTicketClass", id)).toMatchObject({ eventName: text("The final") });
    expect(await call("PUT", `/${id}`, change, "beta")).toEqual(updated(id));
    expect((await get(id, "beta"))[1]).toMatchObject({ eventName: text("Cancelled") });
  });

  test("stays out of other tenants' reach when they ask for another kind", async () => {
    const { id, body } = aCommonEvent();
    await call("POST", "", body, "beta");
    const generic = { class_type: "generic", class_data: { id } };
    expect(await call("POST", "", generic, "gamma")).toEqual(refusal(400, "already"));
    expect(await call("PUT", `/${id}`, { class_type: "generic", class_data: {} }, "gamma")).toEqual(
      refusal(404, "no class"),
    );
    expect((await get(id, "gamma"))[0]).toBe(404);
  });

  test("that was created elsewhere is visible to all, and belongs to the first tenant that uses it", async () => {
    const { id, body } = aCommonEvent();
    world.sandbox.resources.insert("eventTicketClass", { ...body.class_data, reviewStatus: "UNDER_REVIEW" });
    for (const key of ["beta", "gamma"]) expect((await get(id, key))[0]).toBe(200);
    expect(await call("PUT", `/${id}`, change, "gamma")).toEqual(updated(id));
    expect((await get(id, "beta"))[0]).toBe(404);
    expect(await call("PUT", `/${id}`, change, "beta")).toEqual(refusal(404, "no class"));
  });

  test("that is not there is taken by no change of it", async () => {
    const { id, body } = aCommonEvent();
    expect(await call("PUT", `/${id}`, change, "beta")).toEqual(refusal(404, "no class"));
    expect(await call("POST", "", body, "gamma")).toEqual(created(id));
  });

  test("stays its creator's, even if the answer is lost", async () => {
    const lost = aCommonEvent();
    outcome = "lost";
    expect((await call("POST", "", lost.body, "beta"))[0]).toBe(500);
    outcome = null;
    expect(await call("POST", "", lost.body, "gamma")).toEqual(refusal(400, "already"));
    expect(await call("PUT", `/${lost.id}`, change, "gamma")).toEqual(refusal(404, "no class"));
    expect(await call("PUT", `/${lost.id}`, change, "beta")).toEqual(updated(lost.id));
    const unmade = aCommonEvent();
    outcome = "broken";
    expect((await call("POST", "", unmade.body, "beta"))[0]).toBe(500);
    outcome = null;
    expect(await call("POST", "", unmade.body, "beta")).toEqual(created(unmade.id));
  });

  test("is not claimed for a tenant with an issuer of its own", async () => {
    const body = anEvent();
    await call("POST", "", body);
    expect(await owners.all.findOwner(body.class_data.id)).toBeNull();
  });

  test("is claimed no faster than a tenant may change what is kept for it", async () => {
    let monotonicMs = 0;
    const clock = { ...systemClock, monotonicMs: () => monotonicMs };
    const still = await Front.start({
      clock,
      directory,
      platform,
      wallet: { ...NO_WALLET, classes: world.wallet.classes },
    });
    const headers = { "X-API-Key": "beta", "Content-Type": "application/json" };
    const create = async (body: object) =>
      (await still.fetch("/v1/google/classes", { method: "POST", headers, body: JSON.stringify(body) })).status;
    try {
      const statuses: number[] = [];
      const look = async () => {
        while (statuses.at(-1) !== 429 && statuses.length < 2_000) {
          statuses.push((await still.fetch("/v1/domains/none.example/verify", { method: "POST", headers })).status);
        }
      };
      await Promise.all(Array.from({ length: 16 }, look));
      expect(statuses.filter((status) => status === 404)).toHaveLength(1_000);
      const { id, body } = aCommonEvent();
      expect(await create(body)).toBe(429);
      expect(await owners.all.findOwner(id)).toBeNull();
      monotonicMs += 1_000;
      expect(await create(body)).toBe(201);
    } finally {
      await still.stop();
    }
  });
});
