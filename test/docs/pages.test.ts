import { afterAll, expect, test } from "bun:test";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { DnsServer } from "../support/dns-server.ts";
import { freePort } from "../support/free-port.ts";
import { Undo } from "../support/undo.ts";
import { useWaybill } from "../support/use-waybill.ts";
import type { Waybill } from "../support/waybill.ts";
import { differenceFrom, type PageBlock, parseBlocks } from "./page-blocks.ts";
import { PageShell } from "./page-shell.ts";

/*
 * Runs the commands of the pages, word for word, against one Waybill: every block in `sh`, `ts` and `python` of the
 * README and of every page in docs/, except those under a comment `<!-- not run: why -->`. A failed command fails the
 * test, and so does an answer of another shape than the printed one.
 */

const DOCS = join(import.meta.dir, "../../docs");
/** In the order of docs/README.md; the remaining pages follow. */
const FIRST = ["quick-start.md", "sending.md", "events.md", "operating.md"];
/** Its blocks are files, which a test of their own builds. */
const ELSEWHERE = "adding-a-channel.md";
const CLIENT = join(import.meta.dir, "../../clients/typescript/waybill.ts");
const PAGE_MS_MAX = 120_000;
/** A result that a reader requests a moment too early is there within ten seconds. */
const TRIES = 50;
const PAUSE_MS = 200;

const undo = new Undo();
const folder = undo.add(await mkdtemp(join(tmpdir(), "waybill-pages-")), (path) => rm(path, { recursive: true }));
const dns = undo.add(await DnsServer.start(), (server) => server.stop());
const analystsPort = await freePort();
const smtpPort = await freePort();
const hasPython = Bun.which("python3") !== null;
let waybill: Waybill;

useWaybill(
  async (started) => {
    waybill = started;
    const channels = ["email", "whatsapp", "wallet"];
    const tenant = { id: "acme", name: "Acme", channels, permissions: ["allow_raw_html"], tokens: 100 };
    expect((await waybill.operator("POST", "/tenants", tenant)).status).toBe(201);
  },
  {
    CLICKHOUSE_HTTP_PORT: String(analystsPort),
    DNS_SERVERS: dns.address,
    ROLES: "api,dispatcher,recorder,smtp",
    SMTP_PORT: String(smtpPort),
  },
);
afterAll(() => undo.run());

/** Words in capitals that a reader replaces with values from the last answers. */
const KEPT = {
  JOB_ID: /"job_id": ?"([^"]+)"/g,
  PASS_ID: /"pass_id": ?"([^"]+)"/g,
  NEXT_CURSOR: /"next_cursor": ?"?([^",}]+)/g,
};

/** Files that a reader gets from elsewhere, and the commands that make similar ones. */
const RECEIVED = new Map([
  [
    "pass.cer",
    "openssl req -new -x509 -key pass.key -days 30 -outform DER -out pass.cer " +
      "-subj '/UID=pass.com.example.ticket/CN=Pass Type ID: pass.com.example.ticket/OU=A1B2C3D4E5/O=Acme/C=US'\n",
  ],
  [
    "service-account.json",
    `node -e 'const { privateKey } = require("crypto").generateKeyPairSync("rsa", { modulusLength: 2048 });
      console.log(JSON.stringify({ type: "service_account", client_email: "passes@example.iam.gserviceaccount.com",
        private_key: privateKey.export({ type: "pkcs8", format: "pem" }) }))' > service-account.json\n`,
  ],
]);

const pages = (await readdir(DOCS))
  .filter((name) => name.endsWith(".md") && ![...FIRST, ELSEWHERE].includes(name))
  .sort();

test.each(["../README.md", ...FIRST, ...pages])(
  "%s: its commands do what it says",
  async (name) => {
    const blocks = parseBlocks(await readFile(join(DOCS, name), "utf8")).filter((block) => block.notRun === null);
    if (FIRST.includes(name) || name.startsWith("..")) expect(blocks.length).toBeGreaterThan(3);
    if (blocks.length === 0) return;
    const shell = await PageShell.open(join(folder, basename(name), "waybill"), waybill.home);
    try {
      const kept = new Map<string, string>();
      const waiting = new Map(RECEIVED);
      for (const block of blocks) {
        if (block.language === "python" && !hasPython) continue;
        for (const [file, make] of waiting) {
          if (!block.text.includes(file)) continue;
          waiting.delete(file);
          await shell.run("sh", make);
        }
        const output = await gives(shell, block, kept).catch((error: unknown) => {
          throw new Error(`docs/${name}, line ${block.line}: ${String(error)}`);
        });
        publishRecordsIn(output);
        for (const [word, pattern] of Object.entries(KEPT)) {
          const last = [...output.matchAll(pattern)].at(-1)?.[1];
          if (last !== undefined) kept.set(word, last);
        }
      }
    } finally {
      await shell.close();
    }
  },
  PAGE_MS_MAX,
);

/** Publishes the domain's records, as a reader of the page would. */
function publishRecordsIn(output: string): void {
  const records = /"DNSRecords":\{"relay":(\[[^\]]*\])\}/.exec(output)?.[1];
  if (records !== undefined && dns.zone.size === 0) dns.publish(JSON.parse(records));
}

/** Runs the block; repeats one that only reads until its output matches the page. */
async function gives(shell: PageShell, block: PageBlock, kept: ReadonlyMap<string, string>): Promise<string> {
  const { language, answer } = block;
  const text = filledIn(block.text, kept);
  const printed = answer === null ? null : { ...answer, text: filledIn(answer.text, kept) };
  const changes = language === "ts" ? /\.(send|create|put|update)\(/ : / -d |--data|-X |--request|-T |npm |method=/;
  const isRead = language !== "python" && !changes.test(text);
  for (let triesLeft = isRead ? TRIES : 1; ; triesLeft -= 1) {
    const output = await shell.run(language, text);
    const difference = printed === null ? null : differenceFrom(printed, output);
    if (difference === null) return output;
    if (triesLeft === 1) throw new Error(difference);
    await Bun.sleep(PAUSE_MS);
  }
}

function filledIn(text: string, kept: ReadonlyMap<string, string>): string {
  let filled = text
    .replaceAll("http://127.0.0.1:3000", waybill.url)
    .replaceAll('"127.0.0.1", 2587', `"127.0.0.1", ${smtpPort}`)
    .replaceAll("127.0.0.1:8123", `127.0.0.1:${analystsPort}`)
    .replaceAll("wb_…", waybill.demoKey)
    .replaceAll('"waybill-client"', JSON.stringify(CLIENT));
  for (const [word, value] of kept) filled = filled.replaceAll(word, value);
  return filled;
}
