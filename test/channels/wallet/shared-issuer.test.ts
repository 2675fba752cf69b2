import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import type { Pass } from "../../../src/channels/wallet/passes.ts";
import type { GoogleOutcome } from "../../../src/channels/wallet/sandbox/google-sandbox.ts";
import type { PlatformCredentials } from "../../../src/domain/channels/platform.ts";
import { UnavailableError } from "../../../src/domain/errors.ts";
import type { Tenant } from "../../../src/domain/tenants/tenant.ts";
import type { JsonObject } from "../../../src/domain/texts/json.ts";
import { aTenant } from "../../support/tenants.ts";
import { aPass, GOOGLE_ISSUER, GoogleWorld, getObject, ISSUER, ready, text } from "./google-world.ts";
import { TestOwners } from "./test-owners.ts";

const SLOW_MS = 60_000;
const CLASS = `${ISSUER}.members`;
const platform: PlatformCredentials = { whatsapp: null, apple: null, google: GOOGLE_ISSUER };
const beta = aTenant({ tenantId: "beta" });
const gamma = aTenant({ tenantId: "gamma" });
const DELIVERED = { kind: "delivered" };
let owners: TestOwners;
let world: GoogleWorld;
let outcomes: (GoogleOutcome | null)[] = [];
let calls: string[] = [];
/** Passes by their tenant and serial. */
const stored = new Map<string, Pass>();

beforeAll(async () => {
  owners = await TestOwners.open(["beta", "gamma"]);
}, SLOW_MS);
afterAll(() => owners?.close(), SLOW_MS);

/** Each test has classes of its own, which no other has claimed. */
let names = 0;
const aName = () => {
  names += 1;
  return `${ISSUER}.class-${names}`;
};

beforeEach(async () => {
  outcomes = [];
  calls = [];
  const outcomeFor = ({ method, path }: { readonly method: string; readonly path: string }) => {
    calls.push(`${method} ${path}`);
    return outcomes.shift() ?? null;
  };
  stored.clear();
  const passes = {
    holder: async ({ tenantId, serial }: Pick<Pass, "tenantId" | "serial">) =>
      stored.get(`${tenantId} ${serial}`) ?? null,
  };
  world = await GoogleWorld.open({ outcomeFor }, { platform, classOwners: owners.all, passes });
});
afterEach(() => world.close());

function buildPass({ tenantId }: Tenant, classId: string, kind: "generic" | "eventTicket" = "generic") {
  const serial = `${classId}-${tenantId}`;
  const { content, ...pass } = aPass({ tenantId, kind, serial, passId: serial });
  if (content.type !== "google") throw new Error("not a Google pass");
  return { ...pass, content: { ...content, classId, object: { ...content.object, classId } } };
}

const anEvent = (id: string) => ({
  id,
  issuerName: "Acme",
  eventName: text("The final"),
  reviewStatus: "UNDER_REVIEW",
});

test("a generic class that a pass needs is made for its tenant, and other tenants' passes stay out of it", async () => {
  const id = aName();
  expect(await world.create(buildPass(beta, id), beta)).toMatchObject(DELIVERED);
  expect(world.sandbox.resources.data("genericClass", id)).toEqual({ id });
  expect(await owners.all.findOwner(id)).toBe("beta");
  calls = [];
  const stranger = buildPass(gamma, id);
  expect(await world.create(stranger, gamma)).toEqual({
    kind: "failed",
    error: expect.stringContaining("another tenant's"),
  });
  expect(calls).toEqual([]);
  expect(world.held(stranger)).toBeNull();
});

test("a process that dies between the class and its answer leaves the class to its tenant", async () => {
  const id = aName();
  outcomes = [null, "lost"];
  const pass = buildPass(beta, id);
  expect(await world.create(pass, beta)).toMatchObject({ kind: "retry" });
  expect(world.sandbox.resources.data("genericClass", id)).toEqual({ id });
  world.restart();
  expect(await world.create(buildPass(gamma, id), gamma)).toMatchObject({ kind: "failed" });
  expect(await world.create(pass, beta)).toMatchObject(DELIVERED);
  expect(world.held(pass)).toEqual(getObject(pass));
});

test("an event ticket of a missing class fails, and leaves the class's id free", async () => {
  const id = aName();
  expect(await world.create(buildPass(beta, id, "eventTicket"), beta)).toEqual({
    kind: "failed",
    error: expect.stringContaining(`no event ticket class ${id}`),
  });
  await world.wallet.classes.create(gamma, { kind: "eventTicket", classId: id, data: anEvent(id) });
  expect(await world.create(buildPass(gamma, id, "eventTicket"), gamma)).toMatchObject(DELIVERED);
  expect(await world.create(buildPass(beta, id, "eventTicket"), beta)).toMatchObject({ kind: "failed" });
});

test("an event class that was made elsewhere goes to the tenant of its first ticket", async () => {
  const id = aName();
  world.sandbox.resources.insert("eventTicketClass", anEvent(id));
  outcomes = ["broken"];
  expect(await world.create(buildPass(beta, id, "eventTicket"), beta)).toMatchObject({ kind: "away" });
  expect(await owners.all.findOwner(id)).toBeNull();
  expect(await world.create(buildPass(beta, id, "eventTicket"), beta)).toMatchObject(DELIVERED);
  expect(await owners.all.findOwner(id)).toBe("beta");
  expect(await world.create(buildPass(gamma, id, "eventTicket"), gamma)).toMatchObject({ kind: "failed" });
});

test("a tenant whose own account acts for the platform's issuer shares it like all others", async () => {
  const id = aName();
  const account = { apple: null, google: GOOGLE_ISSUER, templates: new Map(), webhookUrl: null };
  const own = aTenant({ tenantId: "gamma", wallet: account });
  await world.create(buildPass(beta, id), beta);
  expect(await world.create(buildPass(own, id), own)).toMatchObject({ kind: "failed" });
  expect(await world.wallet.classes.isUsable(own, id)).toBe(false);
  expect(await world.wallet.classes.isUsable(beta, id)).toBe(true);
});

function linked(pass: Pass, links: JsonObject): Pass {
  if (pass.content.type !== "google") throw new Error("not a Google pass");
  return { ...pass, content: { ...pass.content, object: { ...pass.content.object, ...links } } };
}

test("a pass is not linked to another tenant's object, in whatever spelling, when made or changed", async () => {
  const theirs = buildPass(beta, aName());
  expect(await world.create(theirs, beta)).toMatchObject(DELIVERED);
  stored.set(`beta ${theirs.serial}`, ready(theirs));
  const mine = buildPass(gamma, aName());
  for (const name of [
    "linkedObjectIds",
    "linked_object_ids",
    "linkedOfferIds",
    "linked_offer_ids",
    "LinkedObjectIds",
  ]) {
    for (const value of [[theirs.serial], [mine.serial, theirs.serial], theirs.serial]) {
      calls = [];
      const hostile = linked(mine, { [name]: value });
      expect(await world.create(hostile, gamma)).toEqual({
        kind: "failed",
        error: `the linked object ${theirs.serial} is no pass of yours`,
      });
      expect(calls).toEqual([]);
    }
  }
  expect(world.held(mine)).toBeNull();
  expect(await world.create(mine, gamma)).toMatchObject(DELIVERED);
  const hostile = ready(linked({ ...mine, version: 2 }, { linkedObjectIds: [theirs.serial] }));
  expect(await world.update(hostile, undefined, gamma)).toMatchObject({ kind: "failed" });
  expect(world.held(mine)).not.toHaveProperty("linkedObjectIds");
});

test("a pass is linked to its tenant's own, once these are there", async () => {
  const [one, two] = [buildPass(gamma, aName()), buildPass(gamma, aName())];
  const both = linked(two, { linkedObjectIds: [one.serial, two.serial] });
  // A tenant that requests a pass with another tenant's id holds it only during the attempt.
  stored.set(`gamma ${one.serial}`, one);
  expect(await world.create(both, gamma)).toMatchObject({ kind: "retry" });
  expect(calls).toEqual([]);
  stored.set(`gamma ${one.serial}`, ready(one));
  expect(await world.create(both, gamma)).toMatchObject(DELIVERED);
  expect(world.held(two)).toMatchObject({ linkedObjectIds: [one.serial, two.serial] });
});

test("while the registry is away nothing is asked of Google", async () => {
  const away = () => Promise.reject(new UnavailableError("the registry cannot be reached"));
  const cut = await GoogleWorld.open(
    {
      outcomeFor: ({ method, path }) => {
        calls.push(`${method} ${path}`);
        return null;
      },
    },
    { platform, classOwners: { findOwner: away, claim: away } },
  );
  try {
    for (const kind of ["generic", "eventTicket"] as const) {
      await expect(cut.create(buildPass(beta, CLASS, kind), beta)).rejects.toThrow(UnavailableError);
    }
    await expect(
      cut.wallet.classes.create(beta, { kind: "eventTicket", classId: CLASS, data: anEvent(CLASS) }),
    ).rejects.toThrow(UnavailableError);
    await expect(cut.wallet.classes.read(beta, "generic", CLASS)).rejects.toThrow(UnavailableError);
    expect(calls).toEqual([]);
  } finally {
    await cut.close();
  }
});
