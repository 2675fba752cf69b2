import { afterEach, expect, test } from "bun:test";
import { rm } from "node:fs/promises";
import { Undo } from "../support/undo.ts";
import { startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

const LIVE = { PROVIDERS: "live", SMTP_URL: "smtp://127.0.0.1:9" };

const undo = new Undo();

afterEach(() => undo.run());

async function start(home: string, environment: Record<string, string>): Promise<Waybill> {
  // Holds for this start alone.
  await rm(`${home}.log`, { force: true });
  return undo.add(await startWaybill(home, environment), (server) => server.kill());
}

async function newHome(): Promise<string> {
  return undo.add(await temporaryHome(), (home) => home.remove()).path;
}

test("with real providers there is no demo tenant, and the first screen says how to make a tenant", async () => {
  const waybill = await start(await newHome(), LIVE);
  expect(waybill.demoKey).toBe("");
  expect(waybill.screen).toContain("npm start -- tenant create");
  expect(waybill.screen).not.toContain("demo");
  expect((await waybill.operator("GET", "/tenants")).body).toMatchObject({ tenants: [] });
  expect(waybill.log()).not.toContain("demo");
});

test("the program warns of a demo tenant whose keys would send real messages, until its keys are revoked", async () => {
  const home = await newHome();
  const sandbox = await start(home, {});
  expect(sandbox.demoKey).toStartWith("wb_");
  expect(sandbox.log()).not.toContain("demo");
  await sandbox.stop();

  const live = await start(home, LIVE);
  const warnings = live
    .log()
    .split("\n")
    .filter((line) => line.includes("demo"));
  expect(warnings.map((line) => JSON.parse(line))).toMatchObject([
    { level: 40, revoke: "DELETE /dash/api/tenants/demo/keys/{key_id}" },
  ]);
  const { keys } = (await live.operator("GET", "/tenants/demo/keys")).body;
  for (const { key_id } of keys) await live.operator("DELETE", `/tenants/demo/keys/${key_id}`);
  await live.stop();

  const clean = await start(home, LIVE);
  expect(clean.log()).not.toContain("demo");
  expect((await clean.request(sandbox.demoKey, "GET", "/v1/domains")).status).toBe(401);
}, 300_000);
