import { afterAll, afterEach, beforeAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { emailWithPass } from "../../../src/channels/email/carried-pass.ts";
import { emailContentKind } from "../../../src/channels/email/content-kind.ts";
import { MessagePasses } from "../../../src/channels/wallet/message-passes.ts";
import { PassFileLinks } from "../../../src/channels/wallet/pass-file-links.ts";
import type { Pass } from "../../../src/channels/wallet/passes.ts";
import { carriedPassCharges } from "../../../src/channels/wallet/retry-charges.ts";
import type { GoogleOutcome } from "../../../src/channels/wallet/sandbox/google-sandbox.ts";
import { type CarriedPasses, carrierPayload } from "../../../src/domain/channels/carried-pass.ts";
import type { PassType } from "../../../src/domain/channels/wallet.ts";
import { UnavailableError } from "../../../src/domain/errors.ts";
import type { QueuedJob } from "../../../src/domain/jobs/job.ts";
import type { Outcome } from "../../../src/domain/jobs/outcome.ts";
import { PassCarrier } from "../../../src/engine/channels/carried-passes.ts";
import { PayloadRoom } from "../../../src/engine/channels/payload-room.ts";
import { shownWithPass } from "../../../src/http/content-kind.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { aPass, GoogleWorld, ISSUER } from "../../channels/wallet/google-world.ts";
import { must } from "../../support/must.ts";
import { PASS_TYPE, PassWorld } from "../../support/pass-world.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { RecordingChannel } from "../../support/recording-channel.ts";

setDefaultTimeout(90_000);

const NEVER = new AbortController().signal;
const SENT: Outcome = { kind: "delivered", result: { relay: "there" } };
const LOST: Outcome = { kind: "retry", why: "the relay did not answer" };
const REFUSED: Outcome = { kind: "failed", error: "550 no" };
const links = new PassFileLinks([new Uint8Array(32).fill(9)], () => "https://api.test");
let passes: PassWorld;
let google: GoogleWorld;
let calls: string[] = [];
let outcomes: (GoogleOutcome | null)[] = [];
/** The messages that the relay received, and its answer. */
let got: string[] = [];
let answers: Outcome[] = [];
let carrier: PassCarrier;
let made = 0;

beforeAll(async () => {
  passes = await PassWorld.open();
});
afterAll(() => passes?.stop());

beforeEach(async () => {
  [calls, outcomes, got, answers] = [[], [], [], []];
  google = await GoogleWorld.open({
    outcomeFor: ({ method, path }) => {
      calls.push(`${method} ${path}`);
      return outcomes.shift() ?? null;
    },
  });
  carrier = anotherProcess();
});
afterEach(() => google.close());

/** A process without knowledge of the others' work. */
function anotherProcess(changes: Partial<CarriedPasses> = {}): PassCarrier {
  google.restart();
  const { passes: store } = passes.registry;
  const getBundle = (pass: Pass) => store.putBundle(pass.passId, pass.version, new TextEncoder().encode("signed"));
  const real = new MessagePasses({ passes: store, bundles: { getBundle }, google: google.wallet, fileLinks: links });
  const ports: CarriedPasses = {
    make: (...given) => real.make(...given),
    finish: (passId) => real.finish(passId),
    giveBack: (tenantId, jobId) => real.giveBack(tenantId, jobId),
    discard: (tenantId, jobId) => real.discard(tenantId, jobId),
    ...changes,
  };
  const fillers = new Map([["email", emailWithPass]]);
  return new PassCarrier({
    passes: ports,
    fillers,
    room: new PayloadRoom(systemClock),
    telemetry: new QuietTelemetry(),
  });
}

const channel = () =>
  carrier.over(
    new RecordingChannel((job) => {
      got.push(job.payload);
      return answers.shift() ?? SENT;
    }),
  );
const deliver = (job: QueuedJob) => channel().deliver(job, google.tenant, NEVER);
const readState = async (passId: string) => (await passes.registry.passes.find("acme", passId))?.state;
const tokens = async () => (await must(passes.registry.registry.tenant("acme"))).tokens;

/** The job of a message whose pass was stored and paid for. */
async function aMessage(type: PassType): Promise<QueuedJob & { readonly passId: string; readonly serial: string }> {
  made += 1;
  const hex = made.toString(16).padStart(4, "0");
  const passId = `01936f2e-7c1a-7b3e-9a55-2f1c8f0a${hex}`;
  const jobId = `01936f2e-7c1a-7b3e-9a55-2f1c8f0b${hex}`;
  const serial = `${ISSUER}.pass-${made}`;
  const isApple = type === "apple";
  const { content } = aPass({ serial });
  await passes.registry.passes.create({
    passId,
    tenantId: "acme",
    serial,
    content: isApple ? { type: "apple", style: "generic", pass: {}, images: {} } : content,
    passTypeId: isApple ? PASS_TYPE : null,
    authenticationToken: isApple ? "x".repeat(32) : null,
    jobId,
    images: new Map(),
  });
  const payload = carrierPayload({ passId, type }, JSON.stringify({ to: "ada@example.com", data: { name: "Ada" } }));
  const place = { tenantId: "acme", channel: "email", entryId: "1-0", attempts: 0, recipient: "ada@example.com" };
  return { jobId, ...place, suppressed: null, payload, passId, serial };
}

test("a later try sends the same link and makes no second object, also in another process once somebody has saved the pass", async () => {
  const job = await aMessage("google");
  answers = [LOST];
  expect(await deliver(job)).toEqual(LOST);
  const inserts = () => calls.filter((call) => /^POST .*genericObject$/.test(call)).length;
  const before = inserts();
  expect(before).toBeGreaterThan(0);
  google.sandbox.resources.set("genericObject", job.serial, { hasUsers: true });
  carrier = anotherProcess();
  expect(await readState(job.passId)).toBe("creating");
  expect(await deliver(job)).toEqual({ kind: "delivered", result: { relay: "there", pass_id: job.passId } });
  expect([inserts(), await readState(job.passId)]).toEqual([before, "ready"]);
  const [first, second] = got.map((payload) => JSON.parse(payload));
  expect(second).toEqual(first);
  expect(first.data).toMatchObject({ name: "Ada", pass: { pass_id: job.passId } });
  expect(first.data.pass.save_link).toBe(`https://pay.example.com/save/${first.data.pass.save_token}`);
});

test("a message waits while Google is away, which says nothing of its relay, and is not sent without its pass", async () => {
  const job = await aMessage("google");
  outcomes = Array.from({ length: 20 }, () => "broken" as const);
  const outcome = await deliver(job);
  expect(outcome).toMatchObject({ kind: "retry", isUncounted: true, isUnsent: true });
  outcomes = [];
  expect(got).toEqual([]);
  expect((await deliver(job)).kind).toBe("delivered");
});

test("a pass that Google refuses fails its message, and costs nothing", async () => {
  const before = await tokens();
  const job = await aMessage("google");
  outcomes = ["denied"];
  expect((await deliver(job)).kind).toBe("failed");
  await channel().giveBack?.(job);
  expect([got, await tokens(), await readState(job.passId)]).toEqual([[], before, "failed"]);
});

test("an Apple pass is a file of the message only while that is delivered", async () => {
  const job = await aMessage("apple");
  const contents = carrier.filesOver({ get: async () => null });
  const files: (Uint8Array | null)[] = [];
  const relay = new RecordingChannel(async ({ payload }) => {
    const [attached] = JSON.parse(payload).attachments;
    expect(attached).toMatchObject({ filename: `${job.serial}.pkpass`, bytes: 6 });
    files.push(await contents.get(job, attached.sha256), await contents.get(job, "another"));
    got.push(attached.sha256);
    return SENT;
  });
  expect((await carrier.over(relay).deliver(job, google.tenant, NEVER)).kind).toBe("delivered");
  expect(files).toEqual([new TextEncoder().encode("signed"), null]);
  expect(await contents.get(job, got[0] ?? "")).toBeNull();
});

test("a message that was sent is sent once, although its pass could not be finished", async () => {
  carrier = anotherProcess({ finish: () => Promise.reject(new UnavailableError("away")) });
  const job = await aMessage("apple");
  expect((await deliver(job)).kind).toBe("delivered");
  expect([got.length, await readState(job.passId)]).toEqual([1, "creating"]);
});

test("while the registry is away, a message waits and no try is counted", async () => {
  carrier = anotherProcess({ make: () => Promise.reject(new UnavailableError("away")) });
  expect(await deliver(await aMessage("apple"))).toMatchObject({ kind: "retry", isUncounted: true, isUnsent: true });
  expect(got).toEqual([]);
});

test("a message that certainly failed gives its token back once, and a retry takes it again", async () => {
  const before = await tokens();
  const job = await aMessage("google");
  answers = [REFUSED];
  expect(await deliver(job)).toEqual(REFUSED);
  for (const _ of [1, 2]) await channel().giveBack?.(job);
  expect([await tokens(), await readState(job.passId)]).toEqual([before, "failed"]);
  const charges = carriedPassCharges(passes.registry.passes);
  expect(await charges.take("acme", job, job.payload)).toEqual({ kind: "taken" });
  expect(await tokens()).toBe(before - 1);
  expect((await deliver(job)).kind).toBe("delivered");
  expect(await readState(job.passId)).toBe("ready");
});

const NOT_GIVEN_BACK = { kind: "refused" as const, why: expect.stringContaining("not given back yet") };

test("one that is given up without a clear answer, or was never offered, is left to the sweep", async () => {
  const job = await aMessage("apple");
  const before = await tokens();
  answers = [LOST];
  await deliver(job);
  await channel().giveBack?.(job);
  expect([await tokens(), await readState(job.passId)]).toEqual([before, "creating"]);
  const charges = carriedPassCharges(passes.registry.passes);
  expect(await charges.take("acme", job, job.payload)).toEqual(NOT_GIVEN_BACK);
});

test("of two retries at once only one takes the token, also if a stored payload does not say that there is a pass", async () => {
  const job = await aMessage("google");
  answers = [REFUSED];
  await deliver(job);
  await channel().giveBack?.(job);
  const charges = carriedPassCharges(passes.registry.passes);
  expect(await charges.take("acme", job, "")).toEqual({ kind: "taken" });
  expect(await charges.take("acme", job, "")).toEqual(NOT_GIVEN_BACK);
  expect(await charges.take("acme", { ...job, jobId: "job-of-no-pass" }, "")).toEqual({ kind: "free" });
});

test("a suppressed recipient's token is given back, also of a payload that is stored elsewhere; other messages have none", async () => {
  const before = await tokens();
  for (const stored of [undefined, { sha256: "", bytes: 1 }]) {
    const job = { ...(await aMessage("apple")), suppressed: "manual" as const };
    await channel().giveBack?.(stored === undefined ? job : { ...job, stored, payload: "" });
    // The job cannot be retried, so no trace of the pass is kept.
    expect([await tokens(), await readState(job.passId)]).toEqual([before, undefined]);
  }
  const nobodyAsks = () => Promise.reject(new Error("nobody asks"));
  carrier = anotherProcess({ giveBack: nobodyAsks, discard: nobodyAsks });
  await channel().giveBack?.({ ...(await aMessage("apple")), payload: "{}", suppressed: "manual" });
  expect(await carriedPassCharges(passes.registry.passes).take("acme", await aMessage("apple"), "{}")).toEqual({
    kind: "free",
  });
});

test("operators see what the message says, with values like those of its pass", async () => {
  const message = JSON.stringify({ to: "ada@example.com", html: "<p>{{.pass.save_link}}</p>" });
  const shown = shownWithPass(emailContentKind, emailWithPass);
  const payload = carrierPayload({ passId: "01936f2e-7c1a-7b3e-9a55-2f1c8f0a4d22", type: "google" }, message);
  const html = "<p>https://pay.google.com/gp/v/save/pass</p>";
  expect(await shown.show(google.tenant, payload)).toMatchObject({ to: "ada@example.com", html });
  expect(await shown.show(google.tenant, message)).toMatchObject({ to: "ada@example.com", html: "<p></p>" });
});
