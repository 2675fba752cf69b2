import { expect, test } from "bun:test";
import { type Behaviour, REFUSES, RelayWorld, TAKES } from "./relay-world.ts";

const NOBODY = { tenantId: "nobody", channel: "email", jobId: "" };

test("an owner says what a job waits for, and nothing of jobs that are not its own", async () => {
  const behaviours: Readonly<Record<string, Behaviour>> = { away: REFUSES, hangs: "never answers" };
  const world = new RelayWorld(({ tenantId }) => behaviours[tenantId] ?? TAKES);
  const relay = (tenantId: string) => ({ fromAddress: "a@b.test", fromName: null, smtpUrl: `smtp://${tenantId}` });
  const { plan } = world.tenant("free");
  const warmUpFrom = new Date(world.clock.nowMs()).toISOString().slice(0, 10);
  const tenants = {
    relay_away: world.tenant("away", "smtp://away"),
    plan_pace: world.tenant("paced", null, { plan: { ...plan, deliveriesPerSecond: 0.5 } }),
    slowed: world.tenant("slowed", null, { reputation: "slowed" }),
    warm_up: world.tenant("new", null, { emailSender: { ...relay("new"), warmUpFrom } }),
    paused: world.tenant("paused", null, {
      steering: { paused: new Set(["email"]), held: new Set(), purgedBefore: new Map(), resumedAt: new Map() },
    }),
    delivery: world.tenant("hangs", "smtp://hangs"),
  };
  const last = Object.entries(tenants).map(([why, tenant]) => {
    const jobId = world.accept(tenant, why === "delivery" ? 1 : 60).at(-1) ?? "";
    return { why, asked: { tenantId: tenant.tenantId, channel: "email", jobId } };
  });
  const dispatcher = world.start();
  await world.advance(5_000);
  const answers = last.map(({ why, asked }) => [why, dispatcher.whyWaits(0, asked)?.waitsFor]);
  expect(answers).toEqual([
    ["relay_away", "relay_away"],
    ["plan_pace", "plan_pace"],
    ["slowed", "plan_pace"],
    ["warm_up", "warm_up"],
    ["paused", "paused"],
    ["delivery", null],
  ]);
  expect(dispatcher.held(10)).toEqual([
    { tenantId: "away", channel: "email", waits: "away" },
    { tenantId: "paced", channel: "email", waits: "pace" },
    { tenantId: "slowed", channel: "email", waits: "pace" },
    { tenantId: "new", channel: "email", waits: "warm_up" },
    { tenantId: "paused", channel: "email", waits: "paused" },
  ]);
  expect(dispatcher.held(2)).toHaveLength(2);
  expect(dispatcher.whyWaits(0, last[0]?.asked ?? NOBODY)?.why).toBe("the mail server refuses connections");
  const [, paced, slowed, fresh] = last.map(({ asked }) => dispatcher.whyWaits(0, asked)?.forMs ?? 0);
  expect(paced).toBeWithin(1, 2_001);
  expect(slowed).toBeWithin(1, 1_001);
  expect(fresh).toBeWithin(1, 24 * 3_600_000 + 1);
  const asked = { tenantId: "away", channel: "email", jobId: last[0]?.asked.jobId ?? "" };
  expect(dispatcher.whyWaits(1, asked)).toBeNull();
  expect(dispatcher.whyWaits(0, { ...asked, tenantId: "nobody" })).toBeNull();
  await world.stop(dispatcher);
});
