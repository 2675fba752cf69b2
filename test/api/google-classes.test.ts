import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { Tenant, TenantDirectory } from "../../src/core/tenant.ts";
import type { GoogleFate } from "../../src/sandbox/google-sandbox.ts";
import { aTenant } from "../support/tenants.ts";
import { GOOGLE_ISSUER, GoogleWorld, ISSUER, text } from "../wallet/google-world.ts";
import { Front } from "./support/front.ts";
import { NO_WALLET } from "./support/no-wallet.ts";

const SLOW_MS = 30_000;
const NO_OWN = { apple: null, google: null, templates: new Map(), webhookUrl: null };
const OWN = { ...NO_OWN, google: GOOGLE_ISSUER };
const channels = new Set(["wallet"] as const);
/** By API key. */
const TENANTS: Readonly<Record<string, Tenant>> = {
  own: aTenant({ channels, wallet: OWN }),
  shared: aTenant({ tenantId: "beta", channels, wallet: NO_OWN }),
  mail: aTenant({ tenantId: "mail", wallet: OWN }),
};
const directory: TenantDirectory = {
  byApiKey: (apiKey) => TENANTS[apiKey] ?? null,
  byId: () => null,
};

let world: GoogleWorld;
let front: Front;
let fate: GoogleFate | null = null;
beforeAll(async () => {
  world = await GoogleWorld.open({ fateOf: () => fate });
}, SLOW_MS);
beforeEach(async () => {
  front = await Front.start({
    directory,
    platform: { whatsapp: null, apple: null, google: GOOGLE_ISSUER },
    wallet: { ...NO_WALLET, classes: world.wallet.classes },
  });
});
afterEach(async () => {
  fate = null;
  await front.stop();
});
afterAll(() => world?.close(), SLOW_MS);

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
      fate = each;
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
      [{ class_type: "loyalty", class_data: event }, "class_type"],
      [{ class_type: "eventTicket" }, "class_data is required"],
      [{ class_type: "eventTicket", class_data: "x" }, "class_data"],
      [anEvent({ id: undefined }), "class_data.id"],
      [anEvent({ id: `${ISSUER}.a b` }), "class_data.id"],
      [anEvent({ id: "3388000000000000002.event" }), `begin with ${ISSUER}.`],
      [anEvent({ issuerName: undefined }), "class_data.issuerName"],
      [anEvent({ eventName: "The final" }), "class_data.eventName"],
      [anEvent({ venue: { name: text("Centre court") } }), "class_data.venue.address"],
      [anEvent({ dateTime: { start: "tomorrow" } }), "class_data.dateTime.start"],
      [anEvent({ hexBackgroundColor: "blue" }), "class_data.hexBackgroundColor"],
      [anEvent({ logo: { sourceUri: { uri: "file:///etc/passwd" } } }), "class_data.logo.sourceUri.uri"],
      [anEvent({ reviewStatus: "APPROVED" }), "class_data.reviewStatus"],
      [{ class_type: "generic", class_data: { id: `${ISSUER}.g`, reviewStatus: "DRAFT" } }, "class_data.reviewStatus"],
    ];
    for (const [body, words] of cases)
      expect([body, ...(await call("POST", "", body))]).toEqual([body, ...refusal(400, words)]);
    const { id } = event;
    const elsewhere = { class_type: "eventTicket", class_data: { id: `${ISSUER}.other` } };
    expect(await call("PUT", `/${id}`, elsewhere)).toEqual(refusal(400, "class_data.id"));
    expect(await call("GET", `/${id}`)).toEqual(refusal(400, "class_type"));
    expect(await call("GET", `/${id}?class_type=flight`)).toEqual(refusal(400, "class_type"));
    expect(await call("GET", `/${id}?colour=red`)).toEqual(refusal(400, "colour"));
  });

  test("needs a key and the channel, and is counted whatever comes of it", async () => {
    expect((await call("POST", "", anEvent(), "nobody"))[0]).toBe(401);
    expect(await call("POST", "", anEvent(), "mail")).toEqual(refusal(403, "wallet"));
    expect(await call("GET", `/${ISSUER}.x?class_type=generic`, undefined, "mail")).toEqual(refusal(403, "wallet"));
    const counted = front.journal.counted;
    await call("POST", "", "no object");
    await call("POST", "", anEvent());
    expect(front.journal.counted).toBe(counted + 2);
  });

  test("without credentials is answered 500, and says where they are set", async () => {
    const bare = await Front.start({ directory, wallet: { ...NO_WALLET, classes: world.wallet.classes } });
    try {
      const headers = { "X-API-Key": "shared", "Content-Type": "application/json" };
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

test("with the platform's issuer no tenant reaches another one's classes", async () => {
  const theirs = anEvent();
  await call("POST", "", theirs);
  const { id } = theirs.class_data;
  expect(await call("POST", "", anEvent(), "shared")).toEqual(refusal(400, `${ISSUER}.beta.`));
  expect((await call("PUT", `/${id}`, { class_type: "eventTicket", class_data: {} }, "shared"))[0]).toBe(404);
  expect((await call("GET", `/${id}?class_type=eventTicket`, undefined, "shared"))[0]).toBe(404);
});
