import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "../support/command.ts";
import { Undo } from "../support/undo.ts";
import { type Answer, finalJob, startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

const undo = new Undo();

afterEach(() => undo.run());

async function newHome(): Promise<string> {
  return undo.add(await temporaryHome(), (home) => home.remove()).path;
}

const HTML = { to_address: "ann@example.com", subject: "Hi", html: "<p>Hi</p>" };

describe("on one folder, from start to start,", () => {
  let home: Awaited<ReturnType<typeof temporaryHome>>;
  let server: Waybill;
  let demoKey: string;

  beforeAll(async () => {
    home = await temporaryHome();
    server = await startWaybill(home.path);
    ({ demoKey } = server);
  }, 300_000);
  afterAll(async () => {
    await server?.kill();
    await home?.remove();
  }, 300_000);

  test("a second server on the same folder is refused, and the first goes on", async () => {
    const second = await runCommand(["serve"], { WAYBILL_HOME: home.path, PORT: "0" });
    expect(second.code).toBe(1);
    expect(second.errors).toContain(`in use by process ${server.pid}`);
    expect((await fetch(`${server.url}/ready`)).status).toBe(200);
  }, 300_000);

  test("the command line creates tenants and keys, also beside a running server", async () => {
    const environment = { WAYBILL_HOME: home.path };
    const tenant = await runCommand(
      ["tenant", "create", "Acme", "--id", "acme", "--permissions", "allow_raw_html", "--allow-custom", "email,wallet"],
      environment,
    );
    expect(tenant.code).toBe(0);
    expect(JSON.parse(tenant.output)).toMatchObject({ id: "acme", allow_custom: ["email", "wallet"] });
    const key = await runCommand(["key", "create", "acme"], environment);
    const { api_key } = JSON.parse(key.output);
    expect((await server.request(api_key, "POST", "/v1/send/email", HTML)).status).toBe(202);
    expect(await runCommand(["key", "create", "nobody"], environment)).toMatchObject({
      code: 1,
      errors: expect.any(String),
    });
    const { rows } = (await server.operator("GET", "/audit")).body;
    const calls = rows.map((row: Answer["body"]) => [row.operator, row.action, row.tenant, row.status]);
    expect(calls).toEqual([
      ["command line", "createKey", "nobody", 404],
      ["command line", "createKey", "acme", 201],
      ["command line", "createTenant", "acme", 201],
    ]);
    expect(JSON.stringify(rows)).not.toContain(api_key);
  }, 300_000);

  test("a start after kill -9 finds all data, prints no new key, and the old key works", async () => {
    const sent = await server.request(demoKey, "POST", "/v1/send/email", HTML);
    await finalJob(server, demoKey, sent.body.job_id);
    await server.kill();
    server = await startWaybill(home.path);
    expect(server.demoKey).toBe("");
    expect(server.screen).toContain("npm start -- key create demo");
    const job = await server.request(demoKey, "GET", `/v1/jobs/${sent.body.job_id}`);
    expect(job.body).toEqual({ job_id: sent.body.job_id, status: "success", result: {} });
  }, 300_000);

  test.each(["SIGINT", "SIGTERM"] as const)(
    "%s finishes the deliveries in flight and ends with code 0",
    async (signal) => {
      const ids: string[] = [];
      for (let i = 0; i < 50; i += 1) {
        const { body } = await server.request(demoKey, "POST", "/v1/send/email", HTML);
        ids.push(body.job_id);
      }
      expect(await server.stop(signal)).toBe(0);
      server = await startWaybill(home.path);
      for (const jobId of ids) expect((await finalJob(server, demoKey, jobId)).status).toBe("success");
    },
    300_000,
  );
});

test("an invalid configuration ends with code 2 and a line per problem", async () => {
  const home = await newHome();
  const { code, errors } = await runCommand([], {
    WAYBILL_HOME: home,
    PORT: "abc",
    MASTER_KEY: "short",
    ROLES: "cook",
  });
  expect(code).toBe(2);
  expect(errors).toContain('waybill: PORT is "abc"; it should be a whole number from 0 to 65535');
  expect(errors).toContain("waybill: MASTER_KEY is set; it should be 32 bytes in base64");
  expect(errors).toContain('waybill: ROLES is "cook"; it should be');
  expect(errors).not.toContain("short");
  expect(errors.trim().split("\n")).toHaveLength(3);
});

describe("an address that cannot be had", () => {
  const taken = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const port = String(taken.port);
  afterAll(() => taken.stop(true));

  const isTaken = (name: string) => `${name} is ${port}; it should be a port that is free`;
  test.each<readonly [Record<string, string>, string]>([
    [{ HOST: "192.0.2.1", ROLES: "dispatcher" }, 'HOST is "192.0.2.1"; it should be an address of this machine'],
    [{ METRICS_PORT: port }, isTaken("METRICS_PORT")],
    [{ ROLES: "api,smtp", SMTP_PORT: "0", SMTP_HOST: "no-such.invalid" }, 'SMTP_HOST is "no-such.invalid"; it should'],
  ])(
    "%j ends the start with code 2 and one line that names the setting",
    async (changes, line) => {
      const { code, errors } = await runCommand(["serve"], {
        WAYBILL_HOME: await newHome(),
        PROCESSES: "1",
        ...changes,
      });
      const lines = errors.split("\n").filter((text) => text.startsWith("waybill: "));
      expect(lines).toEqual([expect.stringContaining(line)]);
      expect(code).toBe(2);
    },
    300_000,
  );

  test("leaves the demo tenant to the next start, which shows its key", async () => {
    const home = await newHome();
    const failed = await runCommand(["serve"], { WAYBILL_HOME: home, PROCESSES: "1", PORT: port });
    expect(failed.errors).toContain(isTaken("PORT"));
    const server = undo.add(await startWaybill(home), (started) => started.kill());
    expect((await server.request(server.demoKey, "POST", "/v1/send/email", HTML)).status).toBe(202);
  }, 300_000);
});

test("a data folder that is a file ends a start with code 2 and one line", async () => {
  const file = join(await newHome(), "master-key");
  const secrets = { MASTER_KEY: Buffer.alloc(32, 7).toString("base64"), OPERATOR_TOKEN: "0".repeat(32) };
  const line = `WAYBILL_HOME is "${file}", which is no folder`;
  for (const given of [{}, { ...secrets, WEBHOOK_SECRET: "0".repeat(32) }]) {
    const { code, errors } = await runCommand(["serve"], { WAYBILL_HOME: file, ...given });
    expect(errors.trim().split("\n")).toEqual([expect.stringContaining(line)]);
    expect(code).toBe(2);
  }
}, 300_000);

test("check tries every address, and names those that do not answer", async () => {
  const home = await newHome();
  const nobody = "http://127.0.0.1:1";
  const bad = await runCommand(["check"], {
    WAYBILL_HOME: home,
    REDIS_URL: "redis://127.0.0.1:1",
    CLICKHOUSE_URL: nobody,
    SMTP_URL: "smtp://127.0.0.1:1",
    SPAM_FILTER: nobody,
    WHATSAPP_API_URL: nobody,
    GOOGLE_WALLET_API_URL: nobody,
    GOOGLE_TOKEN_URL: nobody,
    APNS_URL: nobody,
    OTEL_EXPORTER_OTLP_ENDPOINT: nobody,
  });
  expect(bad.code).toBe(1);
  const failed = bad.output.split("\n").flatMap((line) => /^(.*): FAILED/.exec(line)?.[1] ?? []);
  expect(failed.sort()).toEqual([
    "Apple push",
    "ClickHouse",
    "Google Wallet",
    "Google tokens",
    "Redis",
    "WhatsApp",
    "mail server",
    "spam filter",
    "traces",
  ]);
  expect(bad.output).toMatch(/^PostgreSQL: embedded/m);
  const good = await runCommand(["check"], { WAYBILL_HOME: home });
  expect(good.output).not.toContain("FAILED");
  for (const part of ["Google Wallet", "Google tokens", "Apple push"])
    expect(good.output).toContain(`${part}: sandbox`);
  expect(good.code).toBe(0);
  const nameless = await runCommand(["check"], { WAYBILL_HOME: home, DNS_SERVERS: "no-such.invalid:53" });
  expect(nameless.output).toContain('name servers: FAILED, DNS_SERVERS names "no-such.invalid:53"');
  expect(nameless.code).toBe(2);
}, 300_000);

test("a changed number of shards is refused", async () => {
  const home = await newHome();
  expect((await runCommand(["migrate"], { WAYBILL_HOME: home })).code).toBe(0);
  const created = await runCommand(["tenant", "create", "Acme", "Ltd", "--plan", "pro"], { WAYBILL_HOME: home });
  expect(JSON.parse(created.output)).toMatchObject({ id: "acme-ltd", name: "Acme Ltd", plan: "pro" });
  const { code, errors } = await runCommand(["serve"], { WAYBILL_HOME: home, SHARDS: "8", PORT: "0" });
  expect(code).toBe(2);
  expect(errors).toContain("SHARDS is 8, but the data was created with 16");
}, 300_000);

test("a command where there is no Waybill names the folder, and makes nothing there", async () => {
  const elsewhere = await newHome();
  const home = join(elsewhere, ".waybill");
  const main = join(import.meta.dir, "../../src/main.ts");
  for (const args of [
    ["tenant", "create", "Acme"],
    ["key", "create", "acme"],
  ]) {
    const command = Bun.spawn([process.execPath, main, ...args], { cwd: elsewhere, env: {}, stderr: "pipe" });
    expect(await command.stderr.text()).toContain(
      `there is no Waybill in ${home}: run this where the server was started`,
    );
    expect(await command.exited).toBe(2);
  }
  expect(existsSync(home)).toBe(false);
});

test.each([[["cook"]], [["serve", "soup"]], [["--soup"]], [["tenant"]], [["tenant", "create"]]])(
  "%j is refused with code 2",
  async (args) => {
    const { code, errors } = await runCommand(args, { WAYBILL_HOME: await newHome() });
    expect(code).toBe(2);
    expect(errors).toContain("waybill --help");
  },
);

test.each([
  [["serve", "--id", "x"], '"serve" takes no options, and was given --id'],
  [["check", "--tokens", "5"], '"check" takes no options, and was given --tokens'],
  [["key", "create", "demo", "--channels", "email"], '"key create" takes no options, and was given --channels'],
  [["tenant", "create", "Acme", "--queued", "send"], '"tenant create" takes --id, '],
  [["tenant", "create", "Acme", "--id", "Bad Id"], "--id takes 1-63 of a-z, 0-9 and -"],
  [
    ["tenant", "create", "Acme", "--allow-custom", "fax"],
    "--allow-custom takes a selection of email, whatsapp, wallet",
  ],
])("%j is refused with code 2 and says why", async (args, why) => {
  const { code, errors } = await runCommand(args, { WAYBILL_HOME: await newHome() });
  expect(errors).toStartWith(`waybill: ${why}`);
  expect(code).toBe(2);
});

test("help lists every command", async () => {
  const { code, output } = await runCommand(["--help"], {});
  expect(code).toBe(0);
  for (const command of ["serve", "check", "migrate", "tenant create", "key create"]) expect(output).toContain(command);
});
