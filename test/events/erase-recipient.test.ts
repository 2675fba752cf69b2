import { afterAll, beforeAll, expect, test } from "bun:test";
import { JobIds } from "../../src/domain/ids.ts";
import { EVENT_EPOCH_MS, EVENT_IDS_PER_MS } from "../../src/domain/jobs/event.ts";
import type { FinishedJob, StoredEventRow } from "../../src/domain/jobs/event-store.ts";
import { ANY_JOB } from "../../src/domain/jobs/job-search.ts";
import type { JsonObject } from "../../src/domain/texts/json.ts";
import { ClickHouseEventWriter } from "../../src/events/clickhouse-event-writer.ts";
import { RecipientErasure } from "../../src/events/erase-recipient.ts";
import { ClickHouseFinishedJobs } from "../../src/events/finished-jobs.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { recipientIndex } from "../../src/storage/recipient-index.ts";
import { startEngine, type TestEventStore } from "../support/clickhouse-event-store.ts";
import { eventually } from "../support/eventually.ts";

const ANN = "ann@example.com";
const KEPT = { recipient: ANN, payload: "{}", settlements: 1 };
const recipients = recipientIndex(new Uint8Array(32).fill(7));
const ids = new JobIds(systemClock, systemRandom);
let chdb: Awaited<ReturnType<typeof startEngine>>;
let store: TestEventStore;
let writer: ClickHouseEventWriter;
let jobs: ClickHouseFinishedJobs;
let erasure: RecipientErasure;
let quoted = 0;
let event = (Date.now() - EVENT_EPOCH_MS) * EVENT_IDS_PER_MS;

beforeAll(async () => {
  chdb = await startEngine();
  store = await chdb.eventStore("erasing");
  const { writing, reading, target } = store;
  writer = new ClickHouseEventWriter(writing, target, systemClock, {
    ports: {
      recipients,
      seal: { seal: (_tenantId, _jobId, text) => btoa(text), open: (_tenantId, _jobId, text) => atob(text) },
      payloads: { get: async () => null },
    },
  });
  jobs = new ClickHouseFinishedJobs(reading, target, recipients);
  erasure = new RecipientErasure({ reading, writing, target, recipients, clock: systemClock });
});
afterAll(() => chdb.stop());

interface Row {
  readonly tenantId?: string;
  readonly jobId: string;
  readonly type?: StoredEventRow["type"];
  readonly result?: JsonObject;
  readonly finished?: Partial<FinishedJob>;
}

function row({ tenantId = "acme", jobId, type = "sent", result = {}, finished }: Row): StoredEventRow {
  event += 4096;
  const ended = finished === undefined ? null : ({ status: "success", attempts: 1, result: {}, ...finished } as const);
  return { tenantId, jobId, channel: "email", eventId: event, type, result, finished: ended };
}

const everything = async () => {
  const tables = ["jobs", "events", "events_by_type", "refused_rows"];
  const rows = await Promise.all(tables.map((table) => store.reading.rows(`SELECT * FROM erasing.${table}`)));
  return JSON.stringify(rows).toLowerCase();
};
const bounced = { code: 550, enhanced_code: "5.1.1", diagnostic: `550 5.1.1 <${ANN}>: no such user` };

test("nothing of a recipient is left with the tenant, other rows and all counts stay", async () => {
  const [sent, failed, others, theirs, early] = [ids.next(), ids.next(), ids.next(), ids.next(), ids.next()];
  const error = `the mail server refused the message: 550 5.7.1 <Ann@Example.com>: not today`;
  const tried = { at: 1, outcome: "failed", reply: "550 mailbox ann is closed" } as const;
  await writer.write("erase-1", [
    row({ jobId: sent, finished: { recipient: ANN, tags: [{ name: "reader", value: "ann" }] } }),
    row({ jobId: sent, type: "clicked", result: { url: "https://shop.example/?who=ann%40example.com" } }),
    row({ jobId: sent, type: "bounced", result: bounced }),
    row({
      jobId: failed,
      type: "failed",
      result: { error },
      finished: { recipient: ANN, status: "failed", result: { error }, tries: [tried], kept: KEPT },
    }),
    row({ jobId: others, finished: { recipient: "bob@example.com", tries: [{ ...tried, reply: "250 ok" }] } }),
    row({ jobId: others, type: "bounced", result: { ...bounced, diagnostic: "550 full" } }),
    row({ tenantId: "beta", jobId: theirs, finished: { recipient: ANN } }),
    // Stored by a release from before there was a hash.
    row({ jobId: early, finished: {} }),
    row({ jobId: early, type: "bounced", result: bounced }),
  ]);
  const aside = row({ jobId: ids.next(), type: "bounced", result: bounced });
  await writer.write("erase-2", [{ ...aside, jobId: "none" }], "apart");
  const sums = () =>
    store.reading.rows("SELECT tenant_id, event_type, count() FROM erasing.events GROUP BY 1, 2 ORDER BY 1, 2");
  const before = await sums();
  expect(await everything()).toContain("ann");

  expect(await erasure.eraseRecipient("acme", ANN)).toEqual({
    finishedJobs: 2,
    events: 4,
    payloads: 1,
    isComplete: true,
  });
  expect(await everything()).not.toContain("ann");
  expect(await sums()).toEqual(before);
  const left = async (recipient: string) =>
    (await jobs.finishedAnywhere({ ...ANY_JOB, recipient }, 9)).jobs.map(({ tenantId, jobId }) => [tenantId, jobId]);
  expect(await left(ANN)).toEqual([["beta", theirs]]);
  expect(await left("bob@example.com")).toEqual([["acme", others]]);
  expect((await store.reader.job("acme", sent))?.events.map(({ result }) => result)).toEqual([
    {},
    { url: "(erased)" },
    { ...bounced, diagnostic: "(erased)" },
  ]);
  expect((await store.reader.job("acme", failed))?.result).toEqual({ error: "(erased)" });
  expect(await jobs.finishedJob("acme", failed)).toMatchObject({ status: "failed", recipientDomain: "" });
  expect(await jobs.finishedJob("acme", others)).toMatchObject({ recipientDomain: "example.com" });

  expect(await erasure.eraseRecipient("acme", ANN)).toEqual({
    finishedJobs: 0,
    events: 0,
    payloads: 0,
    isComplete: true,
  });
  // A late report contains the address once more.
  await writer.write("erase-3", [row({ jobId: sent, type: "failed", result: { error } })]);
  expect(await erasure.eraseRecipient("acme", ANN)).toMatchObject({ finishedJobs: 0, events: 1 });
  expect(await everything()).not.toContain("ann");
});

test("an erasure that was broken off before its jobs lost their hash is completed by the next one", async () => {
  const jobId = ids.next();
  await writer.write("erase-4", [
    row({ jobId, finished: { recipient: "eve@example.com" } }),
    row({ jobId, type: "bounced", result: bounced }),
  ]);
  const broken = new RecipientErasure({
    reading: store.reading,
    writing: {
      command: (sql: string) =>
        sql.includes(".jobs ") ? Promise.reject(new Error("gone")) : store.writing.command(sql),
    } as never,
    target: store.target,
    recipients,
    clock: systemClock,
  });
  await expect(broken.eraseRecipient("acme", "eve@example.com")).rejects.toThrow("gone");
  expect(await erasure.eraseRecipient("acme", "eve@example.com")).toMatchObject({ finishedJobs: 1, isComplete: true });
  expect(await jobs.finishedJob("acme", jobId)).toMatchObject({ recipientDomain: "" });
});

test.each(["events_by_type", "events"])(
  "an erasure that was broken off before it masked %s is completed by the next one",
  async (table) => {
    const [tenantId, address] = [`off-${table.length}`, `off-${table.length}@example.com`];
    const [own, copied] = [ids.next(), ids.next()];
    const result = { recipient: address, diagnostic: `550 <${address}>: no such user` };
    await writer.write(`off-${table}`, [
      row({ tenantId, jobId: own, finished: { recipient: address } }),
      row({ tenantId, jobId: own, type: "bounced", result }),
      row({ tenantId, jobId: copied, finished: { recipient: "bob@example.com" } }),
      row({ tenantId, jobId: copied, type: "bounced", result }),
    ]);
    const command = (sql: string) =>
      sql.includes(`.${table} `) ? Promise.reject(new Error("gone")) : store.writing.command(sql);
    const { reading, target } = store;
    const writing = { command } as never;
    const broken = new RecipientErasure({ reading, writing, target, recipients, clock: systemClock });
    await expect(broken.eraseRecipient(tenantId, address)).rejects.toThrow("gone");
    await eventually("what was begun is done", async () => {
      const [undone] = await reading.rows("SELECT count() FROM system.mutations WHERE NOT is_done");
      return Number(undone?.[0]) === 0;
    });
    expect(await erasure.eraseRecipient(tenantId, address)).toMatchObject({ isComplete: true });
    expect(await everything()).not.toContain(address);
  },
);

test("who was a copy of mail that was delivered is erased from its events", async () => {
  const [tenantId, jobId] = ["copies", ids.next()];
  await writer.write("copies", [
    row({ tenantId, jobId, finished: { recipient: "bob@example.com" } }),
    row({ tenantId, jobId, type: "delivered", result: { recipient: "copy@example.com", code: 250 } }),
  ]);
  expect(await erasure.eraseRecipient(tenantId, "copy@example.com")).toMatchObject({ events: 1, isComplete: true });
  expect((await store.reader.job(tenantId, jobId))?.events.map(({ result }) => result)).toEqual([
    {},
    { recipient: "(erased)", code: 250 },
  ]);
});

const BOB = "bob@example.com";
test.each<[recipient: string, quoting: readonly string[], others: readonly string[]]>([
  [
    ANN,
    [
      ANN,
      "ANN@Example.com",
      `<${ANN}>`,
      `"${ANN}"`,
      `'${ANN}'`,
      JSON.stringify({ to: ANN }),
      `rfc822;${ANN}`,
      `to=${ANN}`,
      `${BOB},${ANN},${BOB}`,
      `unknown: ${ANN}.`,
      `${ANN}.\nTry later`,
      `gone:\n${ANN}\n`,
      `\u0007${ANN}`,
      JSON.stringify(`gone:\t${ANN}\n`),
      `unknown...${ANN}... no`,
      `${ANN}--gone`,
      `jo${ANN} ${ANN}`,
      `${ANN}.br, ${ANN}`,
      `https://shop.example/?who=${ANN}&n=1`,
      `https://shop.example/${ANN}`,
      `https://shop.example/?to=%3C${ANN}%3E`,
      `用户${ANN}不存在`,
      "https://shop.example/?who=ann%40example.com",
      "https://shop.example/?to=%3Cann%40example.com%3E",
      `550-${ANN} has no mailbox here`,
      `smtp;550-${ANN}: no`,
      JSON.stringify(`no\n550-${ANN}\n550 gone`),
    ],
    [
      `jo${ANN}`,
      `jo.${ANN}`,
      `jo-${ANN}`,
      `jo+${ANN}`,
      `o'${ANN}`,
      `7${ANN}`,
      `é${ANN}`,
      `${ANN}.br`,
      `${ANN}-x.net`,
      `${ANN}munity`,
      `${ANN}2`,
      "ann@example-com",
      "https://shop.example/?who=jo%2Bann%40example.com",
      "https://shop.example/?who=jo%2Eann%40example.com",
      `jo550-${ANN}`,
      "https://shop.example/?who=o%27ann%40example.com",
      "https://shop.example/?who=j%C3%B8ann%40example.com",
    ],
  ],
  [
    "ann+news@example.com",
    ["ann+news@example.com", "https://shop.example/?who=ann%2Bnews%40example.com"],
    ["ann@example.com", "news@example.com"],
  ],
  ["élan@example.com", ["<Élan@example.com>"], ["elan@example.com", "délan@example.com"]],
  ["o'h{a}r|a*$^@x.org", ["<o'h{a}r|a*$^@x.org>"], ["o'har@x.org"]],
  ['"ann \\"b"@x.org', ['<"ann \\"b"@x.org>', JSON.stringify('"ann \\"b"@x.org')], ['"ann b"@x.org', "@x.org"]],
  [
    "4917012345",
    [
      "4917012345",
      "+4917012345",
      "004917012345",
      "tel:4917012345;",
      "n=%204917012345",
      "tel=%C2%A04917012345",
      "4917012345@wa",
      "4917012345.",
    ],
    ["49170123456", "14917012345", "0104917012345", "491701234"],
  ],
])("%s is found wherever it is quoted, and not as a part of another", async (recipient, quoting, others) => {
  const tenantId = `quotes-${++quoted}`;
  const written = quoting
    .concat(others)
    .map((error) => row({ tenantId, jobId: ids.next(), type: "failed", result: { error } }));
  await writer.write(tenantId, written);
  expect(await erasure.eraseRecipient(tenantId, recipient)).toMatchObject({ isComplete: true });
  const left = await store.reading.rows(
    `SELECT JSONExtractString(result, 'error') FROM erasing.events WHERE tenant_id = '${tenantId}' ORDER BY event_id`,
  );
  expect(left.map(([error]) => error)).toEqual(quoting.map(() => "(erased)").concat(others));
});
