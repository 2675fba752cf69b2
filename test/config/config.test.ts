import { afterEach, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { configTable, doubtsAbout, loadConfig } from "../../src/config/config.ts";
import { ConfigurationError } from "../../src/domain/errors.ts";

const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function freshHome(): string {
  const parent = mkdtempSync(join(tmpdir(), "waybill-config-"));
  folders.push(parent);
  return join(parent, "home");
}

function findProblems(environment: Record<string, string>): readonly string[] {
  const home = freshHome();
  try {
    loadConfig({ WAYBILL_HOME: home, ...environment });
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return error.problems.map((problem) => problem.replaceAll(home, "HOME"));
  }
  return [];
}

const KEY = Buffer.alloc(32, 7).toString("base64");

test("with no configuration everything has its documented default", () => {
  const home = freshHome();
  const config = loadConfig({ WAYBILL_HOME: home });
  expect(config).toMatchObject({
    port: 3000,
    host: "127.0.0.1",
    publicUrl: null,
    roles: ["api", "dispatcher", "recorder"],
    home,
    redis: null,
    databaseUrl: null,
    clickhouseUrl: null,
    clickhouseDatabase: "waybill",
    providers: "sandbox",
    outboundAllow: ["127.0.0.0/8", "::1/128"],
    mailFrom: { address: "no-reply@waybill.test", name: "Waybill" },
    spamFilter: "builtin",
    spamThreshold: 5,
    shards: 16,
    logLevel: "info",
  });
});

test("a log to follow adds its role, whatever other roles are named", () => {
  const loadRoles = (environment: Record<string, string>) =>
    loadConfig({ WAYBILL_HOME: freshHome(), MAIL_LOG: "/var/log/maillog", ...environment }).roles;
  expect(loadRoles({})).toEqual(["api", "dispatcher", "recorder", "maillog"]);
  expect(loadRoles({ ROLES: "maillog,api" })).toEqual(["maillog", "api"]);
});

test("each well-formed value becomes a typed one", () => {
  const config = loadConfig({
    WAYBILL_HOME: freshHome(),
    PORT: " 0 ",
    HOST: "::1",
    PUBLIC_URL: "https://send.example.com/base/",
    ROLES: "api, recorder,api",
    REDIS_URL: "redis://a:1, redis://b:2",
    DATABASE_URL: "postgres://u:p@db/waybill",
    CLICKHOUSE_URL: "http://ch:8123",
    CLICKHOUSE_CLUSTER: "main-1",
    MASTER_KEY: `${KEY},${Buffer.alloc(32, 8).toString("base64")}`,
    OPERATOR_TOKEN: "0123456789abcdef",
    PROVIDERS: "live",
    OUTBOUND_ALLOW: "10.0.0.0/8, fd00::/8, 127.0.0.1",
    SMTP_URL: "smtps://user:password@mail:465",
    MAIL_LOG: "/var/log/mail.log",
    MAIL_FROM: '"Waybill, the sender" <no-reply@example.com>',
    SPAM_FILTER: "http://127.0.0.1:11333",
    SPAM_THRESHOLD: "6.5",
    DNS_SERVERS: "10.0.0.2, 10.0.0.3:5353, [::1]:53, ::1, localhost:53, dns-1.example.com:5353",
    SHARDS: "256",
    LOG_LEVEL: "",
  });
  expect(config).toMatchObject({
    port: 0,
    host: "::1",
    publicUrl: "https://send.example.com/base",
    roles: ["api", "recorder", "maillog"],
    redis: { kind: "cluster", urls: ["redis://a:1", "redis://b:2"] },
    databaseUrl: "postgres://u:p@db/waybill",
    operatorToken: "0123456789abcdef",
    outboundAllow: ["10.0.0.0/8", "fd00::/8", "127.0.0.1/32"],
    smtpUrl: "smtps://user:password@mail:465",
    mailLog: "/var/log/mail.log",
    mailFrom: { address: "no-reply@example.com", name: "Waybill, the sender" },
    spamFilter: "http://127.0.0.1:11333",
    spamThreshold: 6.5,
    dnsServers: ["10.0.0.2:53", "10.0.0.3:5353", "[::1]:53", "[::1]:53", "localhost:53", "dns-1.example.com:5353"],
    shards: 256,
    logLevel: "info",
  });
  expect(config.masterKeys.map((key) => [key.length, key[0]])).toEqual([
    [32, 7],
    [32, 8],
  ]);
});

test("one Redis URL is a single server", () => {
  const { redis } = loadConfig({ WAYBILL_HOME: freshHome(), REDIS_URL: "rediss://user:pw@redis:6380/0" });
  expect(redis).toEqual({ kind: "url", url: "rediss://user:pw@redis:6380/0" });
});

test.each([
  ["PORT", "abc", 'PORT is "abc"; it should be a whole number from 0 to 65535'],
  ["PORT", "65536", 'PORT is "65536"; it should be a whole number from 0 to 65535'],
  ["PORT", "-1", 'PORT is "-1"; it should be a whole number from 0 to 65535'],
  ["PORT", "0x10", 'PORT is "0x10"; it should be a whole number from 0 to 65535'],
  ["HOST", "a b", 'HOST is "a b"; it should be a host name or an IP address'],
  ["PUBLIC_URL", "send.example.com", 'PUBLIC_URL is "send.example.com"; it should be a web address like'],
  ["PUBLIC_URL", "https://a.example/?x=1", "it should be a web address like https://send.example.com"],
  [
    "ROLES",
    "api,worker",
    'ROLES is "api,worker"; it should be a comma-separated selection of api, dispatcher, recorder, maillog, smtp',
  ],
  ["ROLES", "api,", 'ROLES is "api,"; it should be'],
  ["CLICKHOUSE_DATABASE", "a; DROP", 'CLICKHOUSE_DATABASE is "a; DROP"; it should be a name of letters'],
  ["CLICKHOUSE_CLUSTER", "a'b", 'CLICKHOUSE_CLUSTER is "a\'b"; it should be a name of letters'],
  ["CLICKHOUSE_HTTP_PORT", "99999", 'CLICKHOUSE_HTTP_PORT is "99999"; it should be a whole number from 0 to 65535'],
  ["PROVIDERS", "production", 'PROVIDERS is "production"; it should be sandbox or live'],
  ["OUTBOUND_ALLOW", "10.0.0.0/33", 'OUTBOUND_ALLOW is "10.0.0.0/33"; it should be networks like 10.0.0.0/8'],
  ["OUTBOUND_ALLOW", "localhost", 'OUTBOUND_ALLOW is "localhost"; it should be networks like 10.0.0.0/8'],
  ["MAIL_FROM", "nobody", 'MAIL_FROM is "nobody"; it should be an address like'],
  ["MAIL_FROM", "A\nBcc: x <a@b.example>", 'MAIL_FROM is "A\\nBcc: x <a@b.example>"; it should be an address like'],
  ["WHATSAPP_API_URL", "graph", 'WHATSAPP_API_URL is "graph"; it should be a web address like'],
  ["GOOGLE_WALLET_API_URL", "ftp://x", 'GOOGLE_WALLET_API_URL is "ftp://x"; it should be a web address like'],
  ["GOOGLE_TOKEN_URL", "http://", 'GOOGLE_TOKEN_URL is "http://"; it should be a web address like'],
  ["APNS_URL", "apns", 'APNS_URL is "apns"; it should be a web address like'],
  ["SAVE_URL_BASE", "pay", 'SAVE_URL_BASE is "pay"; it should be a web address like'],
  ["WHATSAPP_PHONE_NUMBER_ID", "+49", 'WHATSAPP_PHONE_NUMBER_ID is "+49"; it should be the digits'],
  ["SPAM_FILTER", "on", 'SPAM_FILTER is "on"; it should be off, builtin or the URL of an rspamd worker'],
  ["SPAM_THRESHOLD", "high", 'SPAM_THRESHOLD is "high"; it should be a number from 0 to 1000'],
  ["DNS_SERVERS", "dns.example", 'DNS_SERVERS is "dns.example"; it should be hosts with a port'],
  ["DNS_SERVERS", "10.0.0.300:53", 'DNS_SERVERS is "10.0.0.300:53"; it should be hosts with a port'],
  ["DNS_SERVERS", "10.0.0.2:0", 'DNS_SERVERS is "10.0.0.2:0"; it should be hosts with a port'],
  ["SHARDS", "0", 'SHARDS is "0"; it should be a whole number from 1 to 256'],
  ["SHARDS", "257", 'SHARDS is "257"; it should be a whole number from 1 to 256'],
  ["LOG_LEVEL", "loud", 'LOG_LEVEL is "loud"; it should be debug, info, warn, error'],
])("%s=%j is refused with a line that says what it should be", (name, value, line) => {
  const problems = findProblems({ [name]: value });
  expect(problems).toHaveLength(1);
  expect(problems[0]).toContain(line);
});

test.each([
  ["REDIS_URL", "http://user:hunter2@redis"],
  ["REDIS_URL", "redis://:hunter2@a,unix:///hunter2"],
  ["DATABASE_URL", "mysql://user:hunter2@db"],
  ["CLICKHOUSE_URL", "clickhouse://user:hunter2@ch"],
  ["SMTP_URL", "mail.example.com:hunter2"],
  ["OPERATOR_TOKEN", "hunter2"],
  ["METRICS_TOKEN", "hunter2"],
  ["MASTER_KEY", "hunter2"],
  ["MASTER_KEY", `${KEY},hunter2`],
  ["WEBHOOK_SECRET", "hunter2"],
  ["WHATSAPP_ACCESS_TOKEN", "hunter2 hunter2"],
])("%s is a secret: a refusal says that it is set and never shows it (%j)", (name, value) => {
  const problems = findProblems({ [name]: value });
  expect(problems[0]).toStartWith(`${name} is set; it should be `);
  expect(problems.join("\n")).not.toContain("hunter2");
});

test.each([
  ["PUBLIC_URL", "ftp://user:hunter2@send.example.com", "ftp://…@send.example.com"],
  ["PUBLIC_URL", "https://user:a/hunter2@send.example.com?x", "https://…@send.example.com?…"],
  ["PUBLIC_URL", "https:/user:hunter2@send.example.com?x", "https:/…@send.example.com?…"],
  ["WHATSAPP_API_URL", "https://user:hunter2@graph.example/x?token=hunter2", "https://…@graph.example/x?…"],
  ["PUBLIC_URL", "user:a/hunter2@send.example.com", "…@send.example.com"],
  ["PUBLIC_URL", "https://user:<hunter2@send.example.com?x", "https://…@send.example.com?…"],
  ["WHATSAPP_API_URL", "graph.example/x?token=hunter2", "graph.example/x?…"],
  ["GOOGLE_TOKEN_URL", "https://user:a?hunter2@token.example", "https://…"],
  ["GOOGLE_TOKEN_URL", "https://token.example#key=a@hunter2", "https://…"],
  ["SPAM_FILTER", "htp://user:a/hunter2@spam.example", "htp://…@spam.example"],
  ["OTEL_EXPORTER_OTLP_ENDPOINT", "https://otel.example/v1?api-key=hunter2", "https://otel.example/v1?…"],
])("%s=%j is shown without user, password and query", (name, value, shown) => {
  expect(findProblems({ [name]: value }).map((line) => line.split("; it should be ")[0])).toEqual([
    `${name} is "${shown}"`,
  ]);
});

test("all problems are named at once, and nothing is written while there is one", () => {
  const home = freshHome();
  expect(() => loadConfig({ WAYBILL_HOME: home, PORT: "abc", SHARDS: "0" })).toThrow(
    'PORT is "abc"; it should be a whole number from 0 to 65535\nSHARDS is "0"; it should be a whole number from 1 to 256',
  );
  expect(() => statSync(home)).toThrow("ENOENT");
});

test.each([
  [{ PROVIDERS: "live" }, "SMTP_URL is unset"],
  [
    { PROVIDERS: "live", SMTP_URL: "smtp://mta", GOOGLE_CALLBACK_KEYS_URL: "https://keys.example.com/" },
    "GOOGLE_CALLBACK_KEYS_URL is set; with PROVIDERS=live",
  ],
  [{ CLICKHOUSE_CLUSTER: "main" }, "CLICKHOUSE_URL is unset"],
  [{ ROLES: "maillog" }, "MAIL_LOG is unset"],
  [{ SMTP_TLS_CERT: "/etc/cert.pem" }, "SMTP_TLS_KEY is unset"],
  [{ SMTP_TLS_KEY: "/etc/key.pem" }, "SMTP_TLS_CERT is unset"],
  [{ METRICS_HOST: "10.0.0.1" }, "METRICS_PORT is unset"],
  [{ ADMIN_HOST: "10.0.0.1" }, "ADMIN_PORT is unset"],
  [{ ADMIN_PORT: "3000" }, "ADMIN_PORT is 3000, as is PORT"],
  [{ WHATSAPP_PHONE_NUMBER_ID: "123" }, "WHATSAPP_ACCESS_TOKEN is unset"],
  [{ WHATSAPP_ACCESS_TOKEN: "token" }, "WHATSAPP_PHONE_NUMBER_ID is unset"],
])("%j alone contradicts what is missing", (environment, line) => {
  expect(findProblems(environment)).toEqual([expect.stringContaining(line)]);
});

test("generated secrets are the owner's alone, and the same at the next start", () => {
  const home = freshHome();
  const first = loadConfig({ WAYBILL_HOME: home });
  expect(readdirSync(home).sort()).toEqual(["master-key", "operator-token", "webhook-secret"]);
  for (const file of readdirSync(home)) expect(statSync(join(home, file)).mode & 0o777).toBe(0o600);
  expect(statSync(home).mode & 0o777).toBe(0o700);
  expect(loadConfig({ WAYBILL_HOME: home })).toEqual(first);
  expect(loadConfig({ WAYBILL_HOME: freshHome() }).operatorToken).not.toBe(first.operatorToken);
});

test("a secret that is set is used, and none is generated", () => {
  const home = freshHome();
  const config = loadConfig({ WAYBILL_HOME: home, OPERATOR_TOKEN: "0123456789abcdef", MASTER_KEY: KEY });
  expect(config.operatorToken).toBe("0123456789abcdef");
  expect(readdirSync(home)).toEqual(["webhook-secret"]);
});

test("a short operator token is enough if nobody else can connect, or no request is served", () => {
  const short = { OPERATOR_TOKEN: "0123456789abcdef" };
  for (const HOST of ["127.0.0.1", "127.9.8.7", "::1", "localhost"])
    expect(findProblems({ ...short, HOST })).toEqual([]);
  expect(findProblems({ ...short, HOST: "0.0.0.0", ROLES: "dispatcher" })).toEqual([]);
  expect(findProblems({ OPERATOR_TOKEN: "0123456789abcdef".repeat(2), HOST: "0.0.0.0" })).toEqual([]);
  // The generated one is long enough anywhere; a hand-written one in its file may not be.
  const home = freshHome();
  loadConfig({ WAYBILL_HOME: home, HOST: "0.0.0.0" });
  writeFileSync(join(home, "operator-token"), "0123456789abcdef\n");
  expect(() => loadConfig({ WAYBILL_HOME: home, HOST: "0.0.0.0" })).toThrow("OPERATOR_TOKEN has 16 characters");
});

test("a short operator token behind a proxy is accepted with a warning", () => {
  const doubts = (environment: Record<string, string>) =>
    doubtsAbout(loadConfig({ WAYBILL_HOME: freshHome(), OPERATOR_TOKEN: "0123456789abcdef", ...environment }));
  expect(doubts({ PUBLIC_URL: "https://send.example.com" })).toEqual([
    expect.stringContaining("OPERATOR_TOKEN has 16 characters, and PUBLIC_URL is an address that others reach"),
  ]);
  expect(doubts({ PUBLIC_URL: "https://send.example.com", OPERATOR_TOKEN: "0123456789abcdef".repeat(2) })).toEqual([]);
  for (const PUBLIC_URL of ["", "http://127.0.0.1:3000", "http://[::1]:3000", "http://localhost"])
    expect(doubts({ PUBLIC_URL })).toEqual([]);
});

test("the password of the analysts' port is generated only if there is such a port", () => {
  const home = freshHome();
  expect(loadConfig({ WAYBILL_HOME: home }).clickhouseHttpPassword).toBeNull();
  const { clickhouseHttpPassword } = loadConfig({ WAYBILL_HOME: home, CLICKHOUSE_HTTP_PORT: "8123" });
  const file = join(home, "clickhouse-http-password");
  expect(clickhouseHttpPassword).toBe(readFileSync(file, "utf8").trim());
  expect(clickhouseHttpPassword?.length).toBeGreaterThanOrEqual(32);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const given = loadConfig({ WAYBILL_HOME: freshHome(), CLICKHOUSE_HTTP_PASSWORD: "0123456789abcdef" });
  expect(given.clickhouseHttpPassword).toBe("0123456789abcdef");
  expect(findProblems({ CLICKHOUSE_HTTP_PASSWORD: "short" })).toEqual([
    expect.stringContaining("CLICKHOUSE_HTTP_PASSWORD is set; it should be at least 16"),
  ]);
});

test("processes that start together get the same secrets", async () => {
  const home = freshHome();
  const script = `import { loadConfig } from ${JSON.stringify(join(import.meta.dir, "../../src/config/config.ts"))};
    const { operatorToken, masterKeys, webhookSecrets } = loadConfig({ WAYBILL_HOME: ${JSON.stringify(home)} });
    console.log(JSON.stringify([operatorToken, [...masterKeys[0]], webhookSecrets]));`;
  const processes = Array.from({ length: 4 }, () => Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" }));
  const secrets = await Promise.all(processes.map((each) => new Response(each.stdout).text()));
  expect(secrets[0]).toContain("[");
  expect(new Set(secrets).size).toBe(1);
  expect(readdirSync(home).sort()).toEqual(["master-key", "operator-token", "webhook-secret"]);
});

test("a damaged secret file is named, and not replaced", () => {
  const home = freshHome();
  loadConfig({ WAYBILL_HOME: home });
  writeFileSync(join(home, "master-key"), "spoilt\n");
  expect(() => loadConfig({ WAYBILL_HOME: home })).toThrow(
    `MASTER_KEY is read from ${home}/master-key; it should be 32 bytes in base64`,
  );
  expect(readFileSync(join(home, "master-key"), "utf8")).toBe("spoilt\n");
});

test("an unusable data folder is named", () => {
  const home = freshHome();
  mkdirSync(join(home, ".."), { recursive: true });
  writeFileSync(home, "a file");
  chmodSync(home, 0o600);
  expect(() => loadConfig({ WAYBILL_HOME: home })).toThrow(`WAYBILL_HOME is "${home}"; it should be a folder`);
});

test("the configuration is frozen through and through", () => {
  const config = loadConfig({ WAYBILL_HOME: freshHome() });
  for (const part of [config, config.roles, config.mailFrom, config.outboundAllow, config.masterKeys]) {
    expect(Object.isFrozen(part)).toBe(true);
  }
});

test("the documentation's table has a row for every setting", () => {
  const rows = configTable().split("\n");
  expect(rows).toContain("| `PORT` | `3000` | port of the HTTP listener, which every role has; `0` takes a free one |");
  expect(rows).toContain(
    "| `OPERATOR_TOKEN` | generated, in `WAYBILL_HOME/operator-token` | bearer token of `/dash/api`: 16 characters at least, and more where `HOST` is not loopback (docs/tls.md) |",
  );
  for (const row of rows) expect(row.split("|")).toHaveLength(5);
  for (const name of ["REDIS_URL", "MASTER_KEY", "SMTP_URL", "SHARDS"])
    expect(configTable()).toContain(`| \`${name}\` |`);
});
