import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { unzipSync } from "fflate";
import { AppleBundles } from "../../../src/channels/wallet/apple/apple-bundles.ts";
import { PassSigners } from "../../../src/channels/wallet/apple/pass-signers.ts";
import type { NewPass, Pass, PassStore } from "../../../src/channels/wallet/passes.ts";
import { Turns, WalletChannel, type WalletChannelOptions } from "../../../src/channels/wallet/wallet-channel.ts";
import type { AppleSigner, PassContent } from "../../../src/domain/channels/wallet.ts";
import { UnavailableError } from "../../../src/domain/errors.ts";
import type { QueuedJob } from "../../../src/domain/jobs/job.ts";
import type { Outcome } from "../../../src/domain/jobs/outcome.ts";
import { must } from "../../support/must.ts";
import { PASS_TYPE, PassWorld } from "../../support/pass-world.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { aTenant } from "../../support/tenants.ts";
import { AppleAuthority } from "./apple-authority.ts";
import { usable } from "./usable.ts";

setDefaultTimeout(90_000);

const NEVER = new AbortController().signal;
const PLATFORM = { whatsapp: null, apple: null, google: null };

let authority: AppleAuthority;
let world: PassWorld;
let apple: AppleSigner;
let signed = 0;
/** Version of the stored bundle at the moment of each push. */
let pushed: (number | undefined)[] = [];
let jobs = 0;

const telemetry = new (class extends QuietTelemetry {
  override count(name?: string): void {
    if (name === "passes_signed") signed += 1;
  }
})();

beforeAll(async () => {
  authority = await AppleAuthority.make();
  apple = await authority.signer({ passTypeId: PASS_TYPE });
  world = await PassWorld.open();
});

afterAll(() => world.stop());

beforeEach(() => {
  signed = 0;
  pushed = [];
});

function aChannel(overrides: Partial<WalletChannelOptions> = {}): WalletChannel {
  const { passes } = world.registry;
  const bundles = createBundles(passes);
  const push = async ({ passId }: Pick<Pass, "passId">) => void pushed.push((await passes.bundle(passId))?.version);
  const google = { deliver: () => Promise.reject(new Error("no pass here is Google's")) };
  return new WalletChannel({
    passes,
    bundles,
    pusher: { push, stop: () => undefined },
    google,
    telemetry,
    ...overrides,
  });
}

function createBundles(passes: PassStore): AppleBundles {
  const nowMs = () => Date.now();
  const signers = new PassSigners({ telemetry, nowMs });
  const publicUrl = "https://send.example.com";
  return new AppleBundles({ passes, signers, platform: PLATFORM, publicUrl, telemetry, nowMs });
}

const tenantWith = (signer: AppleSigner | null) =>
  aTenant({ wallet: { apple: signer, google: null, templates: new Map(), webhookUrl: null } });

function aJob(payload: unknown, jobId = `job-${(jobs += 1)}`): QueuedJob {
  const text = typeof payload === "string" ? payload : JSON.stringify(payload);
  const common = { channel: "wallet", entryId: "1-0", attempts: 0, recipient: "", suppressed: null } as const;
  return { ...common, jobId, tenantId: "acme", payload: text };
}

/** A pass that was accepted: its job waits. */
async function aNewPass(content: PassContent = contentSaying("one"), images: NewPass["images"] = new Map()) {
  const passId = `new-${(jobs += 1)}`;
  const job = aJob({ action: "create", passId, version: 1 });
  const isApple = content.type === "apple";
  await world.registry.passes.create({
    passId,
    tenantId: "acme",
    serial: `serial-of-${passId}`,
    content,
    passTypeId: isApple ? PASS_TYPE : null,
    authenticationToken: isApple ? "0123456789abcdef0123456789abcdef" : null,
    jobId: job.jobId,
    images,
  });
  return { passId, job };
}

function contentSaying(description: string): PassContent {
  return { type: "apple", style: "generic", pass: { description, generic: {} }, images: {} };
}

/** Stores the next version, and answers its job. */
async function anUpdate(passId: string, description: string): Promise<QueuedJob> {
  const jobId = `update-${(jobs += 1)}`;
  const change = () => contentSaying(description);
  const common = { notificationKind: null, notifyMessage: null, images: new Map() };
  const { version } = usable(await world.registry.passes.update("acme", { ...common, passId, jobId, change }));
  return aJob({ action: "update", passId, version }, jobId);
}

async function descriptionIn(passId: string): Promise<unknown> {
  const bundle = await world.registry.passes.bundle(passId);
  const text = new TextDecoder().decode(unzipSync(bundle?.bytes ?? new Uint8Array())["pass.json"]);
  return JSON.parse(text).description;
}

test("a pass is signed, kept and ready, and nobody is told of it", async () => {
  const { passId, job } = await aNewPass();
  const outcome = await aChannel().deliver(job, tenantWith(apple), NEVER);
  expect(outcome).toEqual({ kind: "delivered", result: { pass_id: passId } });
  expect((await world.registry.passes.find("acme", passId))?.state).toBe("ready");
  expect(await descriptionIn(passId)).toBe("one");
  expect(pushed).toEqual([]);
});

test("a delivery that is repeated signs nothing again", async () => {
  const { passId, job } = await aNewPass();
  for (const channel of [aChannel(), aChannel()]) {
    expect(await channel.deliver(job, tenantWith(apple), NEVER)).toMatchObject({ result: { pass_id: passId } });
  }
  expect(signed).toBe(1);
});

test("a pass whose new version a restored registry does not have yet waits, and is neither sent nor ended", async () => {
  const { passId, job } = await aNewPass();
  const behind: Outcome = { kind: "retry", why: "the registry is behind", isUncounted: true };
  expect(await aChannel().deliver(aJob({ action: "create", passId, version: 2 }), tenantWith(apple), NEVER)).toEqual(
    behind,
  );
  expect((await world.registry.passes.find("acme", passId))?.state).toBe("creating");
  await aChannel().deliver(job, tenantWith(apple), NEVER);
  const update = aJob({ action: "update", passId, version: 2 });
  expect(await aChannel().deliver(update, tenantWith(apple), NEVER)).toEqual(behind);
  expect({ signed, pushed }).toEqual({ signed: 1, pushed: [] });
});

test("an update that takes an image away while its version is about to be signed has the newest version signed", async () => {
  const { passes } = world.registry;
  const having = (hash: string): PassContent =>
    ({ ...contentSaying(hash), images: { "icon.png": hash } }) as PassContent;
  const images = (hash: string) => new Map([[hash, new TextEncoder().encode(hash)]]);
  const { passId } = await aNewPass(having("u-former"), images("u-former"));
  const found = usable(await passes.find("acme", passId));
  const change = () => having("u-latter");
  const update = { passId, jobId: `update-${(jobs += 1)}`, notificationKind: null, notifyMessage: null };
  usable(await passes.update("acme", { ...update, images: images("u-latter"), change }));
  const bundle = usable(await createBundles(passes).getBundle(found, tenantWith(apple)));
  expect(bundle.version).toBe(2);
  expect(unzipSync(bundle.bytes)["icon.png"]).toEqual(new TextEncoder().encode("u-latter"));
});

test("twenty updates in a row are signed once and pushed once, after the newest bundle is stored", async () => {
  const { passId, job } = await aNewPass();
  const channel = aChannel();
  await channel.deliver(job, tenantWith(apple), NEVER);
  const updates: QueuedJob[] = [];
  for (let i = 2; i <= 21; i += 1) updates.push(await anUpdate(passId, `number ${i}`));
  signed = 0;
  const outcomes = await Promise.all(updates.map((update) => channel.deliver(update, tenantWith(apple), NEVER)));
  expect(outcomes.every(({ kind }) => kind === "delivered")).toBe(true);
  expect({ signed, pushed }).toEqual({ signed: 1, pushed: [21] });
  expect(await descriptionIn(passId)).toBe("number 21");
  await channel.deliver(await anUpdate(passId, "number 22"), tenantWith(apple), NEVER);
  expect({ signed, pushed }).toEqual({ signed: 2, pushed: [21, 22] });
});

test("a version that was signed but not yet pushed is pushed by the next owner of the job", async () => {
  const { passId, job } = await aNewPass();
  await aChannel().deliver(job, tenantWith(apple), NEVER);
  const update = await anUpdate(passId, "two");
  const broken = aChannel({ pusher: { push: () => Promise.reject(new UnavailableError("away")), stop() {} } });
  expect(await broken.deliver(update, tenantWith(apple), NEVER)).toMatchObject({ kind: "retry" });
  expect(await aChannel().deliver(update, tenantWith(apple), NEVER)).toMatchObject({ kind: "delivered" });
  expect(pushed).toEqual([2]);
});

test("an update that changed nothing pushes nothing, and one of a version that was never signed is pushed", async () => {
  const { passId, job } = await aNewPass();
  await aChannel().deliver(job, tenantWith(apple), NEVER);
  const same = { passId, notificationKind: null, notifyMessage: null, images: new Map(), change: () => null };
  const again = usable(await world.registry.passes.update("acme", { ...same, jobId: `update-${(jobs += 1)}` }));
  expect(again).toMatchObject({ version: 1, unchanged: "told" });
  const current = aJob({ action: "update", passId, version: 1, isCurrent: true });
  expect(await aChannel().deliver(current, tenantWith(apple), NEVER)).toMatchObject({ kind: "delivered" });
  expect({ signed, pushed }).toEqual({ signed: 1, pushed: [] });
  await anUpdate(passId, "two");
  const untold = usable(await world.registry.passes.update("acme", { ...same, jobId: `update-${(jobs += 1)}` }));
  expect(untold).toMatchObject({ version: 2, unchanged: "untold" });
  await aChannel().deliver(aJob({ action: "update", passId, version: 2 }), tenantWith(apple), NEVER);
  expect({ signed, pushed }).toEqual({ signed: 2, pushed: [2] });
});

test("a push that fails does not fail the update", async () => {
  const { passId, job } = await aNewPass();
  const channel = aChannel({ pusher: { push: () => Promise.reject(new Error("broken")), stop() {} } });
  await channel.deliver(job, tenantWith(apple), NEVER);
  const outcome = await channel.deliver(await anUpdate(passId, "two"), tenantWith(apple), NEVER);
  expect(outcome.kind).toBe("delivered");
  expect(await descriptionIn(passId)).toBe("two");
});

test("without credentials a pass fails, and its token and its serial are free again", async () => {
  const { registry, passes } = world.registry;
  const before = (await must(registry.tenant("acme"))).tokens;
  const { passId, job } = await aNewPass();
  const channel = aChannel();
  const outcome = await channel.deliver(job, tenantWith(null), NEVER);
  expect(outcome).toEqual({
    kind: "failed",
    error:
      "the wallet channel has no credentials for Apple's passes; they are set by " +
      "PUT /dash/api/tenants/acme/credentials/apple",
  });
  expect((await must(registry.tenant("acme"))).tokens).toBe(before - 1);
  await channel.giveBack(job);
  await channel.giveBack(job);
  expect((await must(registry.tenant("acme"))).tokens).toBe(before);
  expect((await passes.find("acme", passId))?.state ?? "gone").not.toBe("ready");
  // A retry of the job does not create the pass that was undone.
  expect(await channel.deliver(job, tenantWith(apple), NEVER)).toEqual({
    kind: "failed",
    error: "the pass does not exist any more",
  });
});

test("of a pass whose job is cancelled nothing is kept", async () => {
  const { passes } = world.registry;
  const { passId, job } = await aNewPass();
  await aChannel().giveBack({ ...job, suppressed: "canceled" });
  expect(await passes.find("acme", passId)).toBeNull();
});

test("a pass is not signed for another pass type than it was made for", async () => {
  const other = { ...(await authority.signer({ passTypeId: "pass.test.other" })), passTypeId: "pass.test.other" };
  const { passId, job } = await aNewPass();
  expect(await aChannel().deliver(job, tenantWith(other), NEVER)).toEqual({
    kind: "failed",
    error: `the pass was made for the pass type ${PASS_TYPE}, and the credentials are for pass.test.other`,
  });
  expect(await world.registry.passes.bundle(passId)).toBeNull();
});

test("credentials that expired fail the job, and say so", async () => {
  const day = 24 * 60 * 60 * 1000;
  const past = { notBeforeMs: Date.now() - 30 * day, notAfterMs: Date.now() - day };
  const expired = await authority.signer({ passTypeId: PASS_TYPE, ...past });
  const { job } = await aNewPass();
  const outcome = await aChannel().deliver(job, tenantWith(expired), NEVER);
  expect(outcome.kind === "failed" && outcome.error).toMatch(/cannot sign: the certificate expired on/);
});

test("a job waits while the registry is away, and costs no attempt", async () => {
  const passes = { ...NOTHING, find: () => Promise.reject(new UnavailableError("away")) };
  const outcome = await aChannel({ passes }).deliver(
    aJob({ action: "create", passId: "p", version: 1 }),
    aTenant(),
    NEVER,
  );
  expect(outcome).toEqual({ kind: "retry", why: "the registry cannot be reached", isUncounted: true });
});

test("a job that cannot be read fails, whatever is in it", async () => {
  for (const payload of ["", "{", "null", "[]", { action: "delete", passId: "p", version: 1 }, { action: "create" }]) {
    const outcome = await aChannel().deliver(aJob(payload), aTenant(), NEVER);
    expect(outcome).toEqual({ kind: "failed", error: "the job of the pass cannot be read" });
  }
});

test("another tenant's pass is not found", async () => {
  const { passId } = await aNewPass();
  const job = { ...aJob({ action: "create", passId, version: 1 }), tenantId: "globex" };
  const outcome = await aChannel().deliver(job, { ...tenantWith(apple), tenantId: "globex" }, NEVER);
  expect(outcome).toEqual({ kind: "failed", error: "the pass does not exist any more" });
});

test("Google's passes go to Google, and are ready when it has them", async () => {
  const content = { type: "google", kind: "generic", classId: "1.class", object: { id: "1.object" } } as const;
  const { passId, job } = await aNewPass(content);
  let outcome: Outcome = { kind: "retry", why: "not yet" };
  const channel = aChannel({ google: { deliver: async () => outcome } });
  expect(await channel.deliver(job, tenantWith(null), NEVER)).toEqual(outcome);
  expect((await world.registry.passes.find("acme", passId))?.state).toBe("creating");
  outcome = { kind: "delivered", result: { pass_id: passId } };
  expect(await channel.deliver(job, tenantWith(null), NEVER)).toEqual(outcome);
  expect((await world.registry.passes.find("acme", passId))?.state).toBe("ready");
});

test("one delivery at a time works on a pass, and delays no other pass", async () => {
  const turns = new Turns();
  const order: string[] = [];
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  const work = (name: string, wait: Promise<void>) => async () => {
    order.push(`${name} begins`);
    await wait;
    order.push(`${name} ends`);
  };
  const first = turns.take("a", work("first", held));
  const failing = turns.take("a", () => Promise.reject(new Error("broken")));
  const last = turns.take("a", work("last", Promise.resolve()));
  await turns.take("b", work("other", Promise.resolve()));
  expect(order).toEqual(["first begins", "other begins", "other ends"]);
  release();
  await expect(failing).rejects.toThrow("broken");
  await Promise.all([first, last]);
  expect(order.slice(3)).toEqual(["first ends", "last begins", "last ends"]);
});

const NOTHING = {
  find: () => Promise.resolve(null),
  finishCreate: () => Promise.resolve(),
  undoCreate: () => Promise.resolve(),
  discard: () => Promise.resolve(),
};
