import { afterAll, expect, test } from "bun:test";
import { createServer } from "node:net";
import { freePorts } from "../../src/app/listener.ts";
import { type Config, loadConfig } from "../../src/config/config.ts";
import { ConfigurationError } from "../../src/domain/errors.ts";
import { openListener } from "../../src/runtime/open-listener.ts";
import { temporaryHome } from "../support/waybill.ts";

const home = await temporaryHome({ hasPostgres: false });
const taken = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
const port = taken.port ?? 0;
afterAll(async () => {
  await taken.stop(true);
  await home.remove();
});

const AT = { host: "127.0.0.1", hostSetting: "SMTP_HOST", port, portSetting: "SMTP_PORT" };

function listen(at: { readonly host: string; readonly port: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer().on("error", reject);
    server.listen(at, () => server.close(() => resolve()));
  });
}

function loadTestConfig(environment: Readonly<Record<string, string>>): Config {
  return loadConfig({ WAYBILL_HOME: home.path, PORT: "0", ...environment });
}

test.each([
  [{ PORT: String(port) }, `PORT is ${port}; it should be a port that is free and that this user may take`],
  [{ ADMIN_PORT: String(port) }, `ADMIN_PORT is ${port}; it should be a port that is free`],
  [{ HOST: "192.0.2.1" }, 'HOST is "192.0.2.1"; it should be an address of this machine, or a name of one'],
  [{ ADMIN_PORT: "0", ADMIN_HOST: "192.0.2.1" }, 'ADMIN_HOST is "192.0.2.1"; it should be an address of this machine'],
])("%j, which cannot be had, is a mistake of that setting", async (environment, line) => {
  const config = loadTestConfig(environment);
  const error = await freePorts(config).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ConfigurationError);
  expect(String(error)).toContain(`: ${line}`);
});

test("a socket of Node's is told of in the same words", async () => {
  const isTaken = openListener(AT, () => listen(AT));
  await expect(isTaken).rejects.toThrow(`SMTP_PORT is ${port}; it should be a port that is free`);
  const nowhere = { ...AT, host: "no-such.invalid", port: 0 };
  const hasNoAddress = openListener(nowhere, () => listen(nowhere));
  await expect(hasNoAddress).rejects.toThrow('SMTP_HOST is "no-such.invalid"; it should be an address of this machine');
});

test("a port that this user may not take is the port's mistake, and anything else is none of the address", async () => {
  const failing = (code: string) => () => Promise.reject(Object.assign(new Error("refused"), { code }));
  await expect(openListener(AT, failing("EACCES"))).rejects.toThrow(`SMTP_PORT is ${port}`);
  await expect(openListener(AT, failing("EMFILE"))).rejects.toThrow(/^refused$/);
});
