import { afterAll, beforeAll, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { sql } from "drizzle-orm";
import { passes } from "../../src/channels/wallet/tables.ts";
import { openPglite } from "../../src/storage/postgres/pglite.ts";
import { credentials } from "../../src/tenants/tables.ts";
import { runCommand } from "../support/command.ts";
import { finalJob, startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

const [OLD, NEW] = [randomBytes(32).toString("base64"), randomBytes(32).toString("base64")];
const PASSES = 130;

let home: Awaited<ReturnType<typeof temporaryHome>>;
let waybill: Waybill;
let apiKey: string;
let passId: string;

beforeAll(async () => {
  home = await temporaryHome();
  waybill = await startWaybill(home.path, { MASTER_KEY: OLD });
  const tenant = {
    id: "t",
    name: "T",
    plan: "pro",
    tokens: 1_000,
    allow_custom: ["email"],
    channels: ["email", "wallet"],
  };
  await waybill.operator("POST", "/tenants", tenant);
  apiKey = (await waybill.operator("POST", "/tenants/t/keys")).body.api_key;
  const own = { from_address: "a@own.example", smtp_url: "smtp://user:secret@127.0.0.1:1" };
  expect((await waybill.operator("PUT", "/tenants/t/credentials/email", own)).status).toBeLessThan(300);
  expect((await waybill.operator("POST", "/tenants/t/domains", { domain: "own.example" })).status).toBe(201);
  const jobs: string[] = [];
  for (let n = 0; n < PASSES; n += 1) {
    const pass_data = { serial_number: `serial-${n}`, organization_name: "Acme", description: "Ticket" };
    const made = await waybill.request(apiKey, "POST", "/v1/passes/create", { pass_type: "apple", pass_data });
    jobs.push(made.body.job_id);
  }
  for (const jobId of jobs) passId = (await finalJob(waybill, apiKey, jobId)).result.pass_id;
}, 300_000);

afterAll(async () => {
  await waybill.kill();
  await home.remove();
}, 90_000);

/** Beside the passes' tokens: credentials, a DKIM key, and the registry's two keys. */
const SECRETS = 4;
const rotate = (masterKey: string) => runCommand(["rotate-keys"], { WAYBILL_HOME: home.path, MASTER_KEY: masterKey });

test("after rotate-keys beside a running server, nothing needs the older key, and repeating it changes nothing", async () => {
  // Refused while the server still has the older key first.
  expect(await rotate(`${NEW},${OLD}`)).toMatchObject({ code: 1, errors: expect.stringContaining("restart it") });
  await waybill.stop();
  waybill = await startWaybill(home.path, { MASTER_KEY: `${NEW},${OLD}` });
  const rotated = await rotate(`${NEW},${OLD}`);
  expect(rotated).toMatchObject({ code: 0, errors: "" });
  expect(rotated.output).toContain(`${PASSES + SECRETS} secrets were sealed anew`);
  expect(rotated.output).toContain("can be removed from MASTER_KEY");
  expect((await rotate(`${NEW},${OLD}`)).output).toContain("0 secrets were sealed anew");
  await waybill.stop();
  // All secrets open with the new key alone.
  waybill = await startWaybill(home.path, { MASTER_KEY: NEW });
  const download = await waybill.request(apiKey, "GET", `/v1/passes/${passId}/download`);
  expect([download.status, download.headers.get("content-type")]).toEqual([200, "application/vnd.apple.pkpass"]);
  expect((await waybill.operator("GET", "/tenants/t/domains")).status).toBe(200);
}, 300_000);

test("a secret that does not open is named, and stays as it is", async () => {
  await waybill.stop();
  const { db, close } = await openPglite(join(home.path, "postgres"));
  const [kept] = await db.select().from(credentials);
  const forged = (kept?.sealed ?? "").replace(/^v1\.[0-9a-f]{8}/, "v1.00000000");
  await db.update(passes).set({ authenticationToken: forged }).where(sql`${passes.serial} = 'serial-7'`);
  await close();
  const rotated = await rotate(NEW);
  expect(rotated.code).toBe(1);
  expect(rotated.output).toContain("NOT OPENED");
  expect(rotated.output).toContain("1 secrets could not be opened");
  waybill = await startWaybill(home.path, { MASTER_KEY: NEW });
}, 300_000);
