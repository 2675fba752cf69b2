import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkAppleSigner, permitsNfc } from "../../src/channels/wallet/apple/check-apple-signer.ts";
import { platformApple } from "../../src/channels/wallet/wiring/apple.ts";
import { providerParts } from "../../src/commands/check.ts";
import { loadConfig } from "../../src/config/config.ts";
import type { AppleSigner } from "../../src/domain/channels/wallet.ts";
import { AppleAuthority, PASS_TYPE, TEAM } from "../channels/wallet/apple-authority.ts";

setDefaultTimeout(90_000);

let home: string;
let good: AppleSigner;
let environment: Readonly<Record<string, string>>;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "waybill-apple-"));
  good = await (await AppleAuthority.make()).signer();
  await Bun.write(join(home, "key.pem"), good.privateKeyPem);
  environment = {
    WAYBILL_HOME: home,
    APPLE_CERTIFICATE: good.certificatePem.replaceAll("\n", "\\n"),
    APPLE_PRIVATE_KEY: join(home, "key.pem"),
    APPLE_WWDR: good.wwdrPem ?? "",
    APPLE_PASS_TYPE_ID: PASS_TYPE,
    APPLE_TEAM_ID: TEAM,
  };
});

afterAll(() => rm(home, { recursive: true, force: true }));

test("the platform's own signer comes from PEM text or files", async () => {
  const signer = await platformApple(loadConfig(environment));
  expect(signer).toMatchObject({ passTypeId: PASS_TYPE, teamId: TEAM, passphrase: null });
  expect(signer !== null && checkAppleSigner(signer, Date.now())).toEqual({ problem: null, warnings: [] });
});

test("a signer that cannot sign stops the start, with the reason and without the key", async () => {
  const config = loadConfig({ ...environment, APPLE_TEAM_ID: "ZZZZZ99999" });
  await expect(platformApple(config)).rejects.toThrow(
    `APPLE_CERTIFICATE and what is set with it cannot sign passes: the certificate belongs to the team "${TEAM}"`,
  );
});

test("half a signer stops the start and names the missing part, without showing what was mistaken for it", () => {
  const { APPLE_PRIVATE_KEY: _, ...half } = environment;
  expect(() => loadConfig(half)).toThrow(/^APPLE_PRIVATE_KEY: unset; all of APPLE_CERTIFICATE, /);
  expect(() => loadConfig({ ...environment, APPLE_CERTIFICATE: good.privateKeyPem })).toThrow(
    "APPLE_CERTIFICATE is set; it should be PEM with a CERTIFICATE, or the path of a file with it",
  );
});

test("the sandbox creates a signer per data folder, readable by nobody else", async () => {
  const config = loadConfig({ WAYBILL_HOME: home });
  const [one, other] = await Promise.all([platformApple(config), platformApple(config)]);
  expect(one).not.toBeNull();
  expect(other).toEqual(one);
  expect(one !== null && checkAppleSigner(one, Date.now())).toEqual({ problem: null, warnings: [] });
  expect(one !== null && permitsNfc(one)).toBe(true);
  expect((await stat(join(home, "apple-sandbox.pem"))).mode & 0o777).toBe(0o600);
});

test("with live providers and no configuration there is no signer", async () => {
  const config = loadConfig({ WAYBILL_HOME: home, PROVIDERS: "live", SMTP_URL: "smtp://127.0.0.1:25" });
  expect(await platformApple(config)).toBeNull();
});

test("check fails where phones could never ask for updates, and says so to tenants with credentials of their own", async () => {
  const said = (settings: Readonly<Record<string, string>>) =>
    providerParts(loadConfig({ PROVIDERS: "live", SMTP_URL: "smtp://127.0.0.1:25", ...settings }))["Apple passes"]?.();
  const why = "PUBLIC_URL is not https: Apple's devices ask for updates over https alone";
  await expect(said({ ...environment, PUBLIC_URL: "http://send.example.com" })).rejects.toThrow(why);
  await expect(said(environment)).rejects.toThrow(why);
  expect(await said({ ...environment, PUBLIC_URL: "https://send.example.com" })).toBe(
    "the certificate is in order, and may not sign passes with nfc",
  );
  const own = { WAYBILL_HOME: home, PUBLIC_URL: "http://send.example.com" };
  expect(await said(own)).toContain(`WARNING, ${why}`);
  expect(await said({ ...own, PUBLIC_URL: "https://send.example.com" })).not.toContain("WARNING");
  expect(await said({ ...own, PROVIDERS: "sandbox" })).toBe("sandbox");
});
