import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join, relative } from "node:path";
import { AppleAuthority, PASS_TYPE, TEAM } from "../channels/wallet/apple-authority.ts";
import { Attacks } from "./support/attacks.ts";
import { startTarget, type Target } from "./support/target.ts";

/*
 * The program receives secrets and personal data, as canaries, by every possible way; calls succeed, fail and are
 * refused with them. Then the test looks for them in every output where they must not be.
 */

setDefaultTimeout(90_000);
const attacks = new Attacks("secrets");

const canary = (name: string) => `${name}canary7f3d9c51e8`;
const MASTER_KEY = Buffer.from("master-key-canary-of-32-bytes-ab").toString("base64");
const OPERATOR_TOKEN = `${canary("operator")}-a-token-that-is-long-enough`;
const WEBHOOK_SECRET = `${canary("webhook")}-a-secret-that-is-long-enough`;
const SMTP_PASSWORD = canary("tenantsmtp");
const ACCESS_TOKEN = canary("whatsapp");
const PASSPHRASE = canary("passphrase");
/** Personal data, which must never be in a log either. */
const PEOPLE = {
  "an address": `${canary("reader")}@example.com`,
  "a bouncing address": `${canary("bouncing")}@bounce.test`,
  "a refused address": `${canary("refused")}@reject.test`,
  "an address that is none": `${canary("malformed")}@@example.com`,
  "a suppressed address": `${canary("suppressed")}@example.com`,
  "a name": canary("Ann"),
  "a value of data": canary("data"),
  "a phone number": "549112233440909",
  "a refused phone number": "549112233440001",
  "a chat parameter": canary("param"),
  "a pass's field": canary("field"),
};

let target: Target;
/** Secrets by their kind. */
let secrets: Readonly<Record<string, string>> = {};
/** Bodies and headers of all answers to callers who must not see the secrets. */
const answers: string[] = [];

beforeAll(async () => {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const googleKey = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  const applePem = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
  const appleKey = applePem.export({ type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: PASSPHRASE });
  target = await startTarget({ LOG_LEVEL: "debug", MASTER_KEY, OPERATOR_TOKEN, WEBHOOK_SECRET });
  secrets = {
    "the master key": MASTER_KEY,
    "the operator token": OPERATOR_TOKEN,
    "the webhook secret": WEBHOOK_SECRET,
    "a tenant's key": target.victim.apiKey,
    "another tenant's key": target.attacker.apiKey,
    "the demo tenant's key": target.waybill.demoKey,
    "a relay's password": SMTP_PASSWORD,
    "a chat token": ACCESS_TOKEN,
    "a certificate's passphrase": PASSPHRASE,
    "a service account's key": extractKeyLine(googleKey),
    "a certificate's key": extractKeyLine(String(appleKey)),
  };
  await storeCredentials(googleKey, String(appleKey));
  await sendAll();
  await failAll();
});
afterAll(() => target?.stop());

/** A line out of the middle of a PEM text. */
function extractKeyLine(pem: string): string {
  return pem.split("\n")[5] ?? "";
}

async function storeCredentials(googleKey: string, appleKey: string): Promise<void> {
  const signer = await (await AppleAuthority.make()).signer();
  const apple = {
    certificate_pem: signer.certificatePem,
    wwdr_pem: signer.wwdrPem,
    pass_type_id: PASS_TYPE,
    team_id: TEAM,
  };
  const service_account = { client_email: "passes@example.iam.gserviceaccount.com", private_key: googleKey };
  const smtp_url = `smtp://user:${SMTP_PASSWORD}@127.0.0.1:9`;
  const stored: readonly (readonly [string, unknown])[] = [
    ["email", { from_address: "me@victim.example", smtp_url }],
    ["whatsapp", { phone_number_id: "777", access_token: ACCESS_TOKEN }],
    ["google", { service_account, issuer_id: "77" }],
    ["apple", { ...apple, private_key_pem: signer.privateKeyPem, passphrase: PASSPHRASE }],
    // Refused: the key is another tenant's, the account does not exist, or the address is invalid.
    ["apple", { ...apple, private_key_pem: appleKey, passphrase: PASSPHRASE }],
    ["apple", { ...apple, private_key_pem: appleKey, passphrase: `${PASSPHRASE}x`, team_id: "XXXXXXXXXX" }],
    ["google", { service_account: { ...service_account, client_email: 5 }, issuer_id: "77" }],
    ["google", { service_account: JSON.stringify({ private_key: googleKey }), issuer_id: "77" }],
    ["email", { from_address: "nobody", smtp_url: `smtp://user:${SMTP_PASSWORD}@[` }],
    ["whatsapp", { phone_number_id: "x", access_token: ACCESS_TOKEN }],
  ];
  for (const [at, [channel, body]] of stored.entries()) {
    const answer = await target.operator("PUT", `/tenants/victim/credentials/${channel}`, body);
    expect([channel, answer.status < 300]).toEqual([channel, at < 4]);
    answers.push(JSON.stringify(answer.body));
  }
  for (const path of ["", "/keys", "/templates", "/tokens"]) {
    answers.push(JSON.stringify((await target.operator("GET", `/tenants/victim${path}`)).body));
  }
}

/** Accepted calls, with every kind of end. */
async function sendAll(): Promise<void> {
  const data = { name: PEOPLE["a value of data"] };
  const mail = { to_name: PEOPLE["a name"], template_id: "welcome", data };
  await target.operator("PUT", `/tenants/mallory/suppressions/${PEOPLE["a suppressed address"]}`, { reason: "manual" });
  const chat = { template_id: "order", params: [PEOPLE["a chat parameter"]] };
  const pass_data = { serial_number: "s-1", organization_name: "Club", description: PEOPLE["a pass's field"] };
  const calls: readonly (readonly [string, unknown])[] = [
    ["/v1/send/email", { ...mail, to_address: PEOPLE["an address"] }],
    ["/v1/send/email", { ...mail, to_address: PEOPLE["a bouncing address"] }],
    ["/v1/send/email", { ...mail, to_address: PEOPLE["a refused address"] }],
    ["/v1/send/email", { ...mail, to_address: PEOPLE["a suppressed address"] }],
    ["/v1/send/whatsapp", { ...chat, phone_number: PEOPLE["a phone number"] }],
    ["/v1/send/whatsapp", { ...chat, phone_number: PEOPLE["a refused phone number"] }],
    ["/v1/send/wallet", { pass_type: "apple", pass_data }],
  ];
  for (const [path, body] of calls) {
    await target.ended(target.attacker, await target.call(target.attacker, "POST", path, body));
  }
}

/** Refused calls, with a secret in every member that may contain one by mistake. */
async function failAll(): Promise<void> {
  for (const secret of Object.values(secrets)) {
    const json = { "content-type": "application/json" };
    const key = { "x-api-key": target.attacker.apiKey };
    const wrong = `${secret.slice(0, -1)}~`;
    const calls = [
      { method: "GET", path: `/v1/events?api_key=${encodeURIComponent(secret)}`, headers: key },
      { method: "GET", path: "/v1/domains", headers: { "x-api-key": wrong } },
      { method: "GET", path: "/dash/api/tenants", headers: { authorization: `Bearer ${wrong}` } },
      { method: "POST", path: "/v1/send/email", headers: { ...key, ...json }, body: `{"to_address": "${secret}` },
      {
        method: "POST",
        path: "/v1/send/email",
        headers: { ...key, ...json },
        body: JSON.stringify({ to_address: PEOPLE["an address that is none"], template_id: "welcome" }),
      },
      { method: "POST", path: "/webhook/whatsapp", headers: { "x-hub-signature-256": `sha256=${secret}` }, body: "{}" },
      { method: "GET", path: `/webhook/whatsapp?hub.mode=subscribe&hub.verify_token=${encodeURIComponent(wrong)}` },
      { method: "GET", path: `/u/${encodeURIComponent(secret)}` },
      { method: "GET", path: "/wallet/v1/passes/pass.test/s-1", headers: { authorization: `ApplePass ${wrong}` } },
    ];
    for (const call of calls) {
      const { text, headers } = await target.probe(call);
      // Text that the caller itself wrote, and did not mean as a secret, may be quoted.
      if (call.path.includes("?api_key")) continue;
      answers.push(text, JSON.stringify(Object.fromEntries(headers)));
    }
  }
}

/** Files under the folder with their bytes as characters. */
function* filesIn(folder: string): Generator<readonly [path: string, text: string]> {
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    try {
      yield [path, readFileSync(path, "latin1")];
    } catch {
      // The engine has removed it meanwhile.
    }
  }
}

async function findEach(sought: Readonly<Record<string, string>>, places: ReadonlyMap<string, string>): Promise<void> {
  const table = Object.entries(sought).flatMap(([what, text]) =>
    Array.from(places, ([place, content]) => ({ what, text, place, content })),
  );
  await attacks.run(
    table,
    ({ what, place }) => `${what} in ${place}`,
    ({ text, content }) => {
      const at = content.indexOf(text);
      return at === -1 ? null : JSON.stringify(content.slice(Math.max(0, at - 100), at + text.length + 20));
    },
  );
}

test("no secret and nobody's address, number or name is in the log", async () => {
  const log = target.waybill.log();
  expect(log.length).toBeGreaterThan(0);
  await findEach({ ...secrets, ...PEOPLE }, new Map([["the log", log]]));
});

test("every line of the log is one record, whatever strangers write", async () => {
  const evil = [
    "\u001b[2J\u001b]0;owned\u0007",
    '","level":"fatal","msg":"forged',
    "{{.x}}",
    "\u2028forged",
    "a".repeat(10_000),
  ];
  await attacks.runEach(evil, async (text) => {
    await target.probe({ method: "POST", path: "/wallet/v1/log", body: JSON.stringify({ logs: [text] }) });
    await target.probe({ method: "GET", path: `/${encodeURIComponent(text)}`, headers: { "user-agent": "evil" } });
    await target.operator("PATCH", "/tenants/mallory", { name: text.replace(/\p{Cc}/gu, "").slice(0, 200) });
    const lines = target.waybill
      .log()
      .split("\n")
      .filter((line) => line !== "");
    const broken = lines.find(
      (line) => !line.startsWith("{") || !line.endsWith("}") || /[\u0000-\u001f\u007f]/.test(line),
    );
    return broken ?? null;
  });
});

test("no secret and nobody's address is in the metrics, in an answer or on the screen", async () => {
  const metrics = (await target.probe({ method: "GET", path: "/metrics" })).text;
  await findEach({ ...secrets, ...PEOPLE }, new Map([["the metrics", metrics]]));
  const { "the demo tenant's key": _shownOnce, ...rest } = secrets;
  await findEach(rest, new Map([["the screen", target.waybill.screen]]));
  await findEach(secrets, new Map([["the answers", answers.join("\n")]]));
});

test("no secret is readable in any file of the data folder", async () => {
  const own = /^(?:operator-token|webhook-secret|master-key|apple-sandbox\.pem)$/;
  const places = new Map<string, string>();
  for (const [path, text] of filesIn(target.waybill.home)) {
    const name = relative(target.waybill.home, path);
    if (!own.test(name)) places.set(name, text);
  }
  // The search itself works: names of tenants are found in the clear.
  expect([...places.values()].some((text) => text.includes("mallory"))).toBe(true);
  const all = [...places.values()].join("\n");
  await findEach(secrets, new Map([["the data folder", all]]));
});

/** The program and its children. */
function processes(): readonly number[] {
  const parents = new Map<number, number>();
  for (const entry of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, "utf8");
      parents.set(Number(entry), Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]));
    } catch {
      // It has ended.
    }
  }
  const family = [target.waybill.pid];
  for (const pid of family) family.push(...[...parents].filter(([, parent]) => parent === pid).map(([child]) => child));
  return family;
}

test("child processes get no secret in their arguments or environment", async () => {
  const children = processes().filter((pid) => pid !== target.waybill.pid);
  expect(children.length).toBeGreaterThan(0);
  const places = new Map(
    children.map((pid) => [
      `process ${pid}`,
      readFileSync(`/proc/${pid}/cmdline`, "latin1") + readFileSync(`/proc/${pid}/environ`, "latin1"),
    ]),
  );
  await findEach(secrets, places);
});

test("nothing listens but on this machine's own address", async () => {
  const inodes = new Set<string>();
  for (const pid of processes()) {
    for (const fd of readdirSync(`/proc/${pid}/fd`)) {
      try {
        const inode = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1];
        if (inode !== undefined) inodes.add(inode);
      } catch {
        // It is closed already.
      }
    }
  }
  const LISTEN = "0A";
  const listening = ["tcp", "tcp6"].flatMap((kind) =>
    readFileSync(`/proc/net/${kind}`, "utf8")
      .split("\n")
      .slice(1)
      .map((line) => line.trim().split(/\s+/))
      .filter((columns) => columns[3] === LISTEN && inodes.has(columns[9] ?? ""))
      .map((columns) => columns[1] ?? ""),
  );
  expect(listening.length).toBeGreaterThan(0);
  const loopback = /^(?:[0-9A-F]{6}7F|00000000000000000000000001000000|0000000000000000FFFF0000[0-9A-F]{6}7F):/;
  await attacks.runEach(listening, (address) => (loopback.test(address) ? null : "open to others"));
});
