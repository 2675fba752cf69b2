import { heapStats } from "bun:jsc";
import { afterAll, beforeAll, expect, spyOn, test } from "bun:test";
import { Socket } from "node:net";
import { EmailChannel } from "../../src/channels/email/email-channel.ts";
import { LinkTokens } from "../../src/channels/email/links/link-tokens.ts";
import { JobIds } from "../../src/domain/ids.ts";
import type { QueuedJob } from "../../src/domain/jobs/job.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { type CountingSink, startCountingSink } from "../support/counting-sink.ts";
import { aTenant } from "../support/tenants.ts";
import { expectOver, expectWithin } from "./bounds.ts";

let sink: CountingSink;
let channel: EmailChannel;
const ids = new JobIds(systemClock, systemRandom);
const never = new AbortController().signal;
const template = {
  subject: "Your order {{.order}}",
  html: "<h1>On its way</h1><p>Hello {{.name}}, your order {{.order}} has left us.</p>",
  text: null,
};
const tenant = aTenant({ emailTemplates: new Map([["shipped", template]]) });
const to = "ann@customer.example.test";

beforeAll(async () => {
  sink = await startCountingSink();
  channel = channelTo(sink.url);
  // The first mail opens the connection and has the template parsed.
  await deliver(1);
});

afterAll(async () => {
  channel.close();
  await sink.stop();
});

function channelTo(smtpUrl: string): EmailChannel {
  return new EmailChannel({
    smtpUrl,
    defaultFrom: { address: "orders@shop.example.test", name: "Shop" },
    publicUrl: "https://send.example.test",
    links: new LinkTokens([new Uint8Array(32).fill(7)]),
    clock: systemClock,
    ownRelays: null,
    ehloName: "send.example.test",
    connectionsMax: 1,
  });
}

const PAYLOAD_MARK = "guarded-payload";

async function deliver(mails: number, through = channel): Promise<void> {
  for (let i = 0; i < mails; i += 1) {
    const jobId = ids.next();
    const payload = JSON.stringify({
      to,
      template: "shipped",
      data: { name: "Ann", order: jobId, mark: PAYLOAD_MARK },
    });
    const job: QueuedJob = {
      jobId,
      tenantId: tenant.tenantId,
      channel: "email",
      entryId: "1-0",
      attempts: 0,
      recipient: to,
      suppressed: null,
      payload,
    };
    expect(await through.deliver(job, tenant, never)).toMatchObject({ kind: "delivered" });
  }
}

/** Counts our writes to the mail server while `work` runs: each is a system call. */
async function countWrites(work: () => Promise<void>): Promise<number> {
  let writes = 0;
  const spies = (["_write", "_writev"] as const).map((name) => {
    const original = Socket.prototype[name];
    if (original === undefined) throw new Error(`a socket has no ${name}`);
    return spyOn(Socket.prototype, name).mockImplementation(function (this: Socket, ...args: unknown[]) {
      if (this.remotePort === sink.port) writes += 1;
      Reflect.apply(original, this, args);
    });
  });
  try {
    await work();
    return writes;
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

/** Counts the parses of a payload while `work` runs. */
async function countParses(work: () => Promise<void>): Promise<number> {
  const spy = spyOn(JSON, "parse");
  try {
    await work();
    return spy.mock.calls.filter(([text]) => text.includes(PAYLOAD_MARK)).length;
  } finally {
    spy.mockRestore();
  }
}

/** Counts the objects that are still there after `work`, once they are unreferenced. */
async function objectsLeftBy(work: () => Promise<void>): Promise<number> {
  const before = objects();
  await work();
  return objects() - before;
}

function objects(): number {
  for (let i = 0; i < 3; i += 1) Bun.gc(true);
  return heapStats().objectCount;
}

const MAILS = 50;
const CONNECTIONS = 10;
const MANY_MAILS = 500;

test("an e-mail takes few writes to the socket", async () => {
  expectWithin("mail: writes to the socket", (await countWrites(() => deliver(MAILS))) / MAILS);
});

test("an e-mail's payload is parsed once", async () => {
  expectWithin("mail: parses of its payload", (await countParses(() => deliver(MAILS))) / MAILS);
});

test("e-mails leave almost nothing behind", async () => {
  // By then everything is compiled and cached.
  await deliver(MANY_MAILS);
  expectWithin("mail: objects left behind", (await objectsLeftBy(() => deliver(MANY_MAILS))) / MANY_MAILS);
});

test("a connection per e-mail, a second parse of its payload and a list of all jobs exceed the bounds", async () => {
  const connecting = await countWrites(async () => {
    for (let i = 0; i < CONNECTIONS; i += 1) {
      const another = channelTo(sink.url);
      await deliver(1, another);
      another.close();
    }
  });
  expectOver("mail: writes to the socket", connecting / CONNECTIONS);
  const parsing = await countParses(async () => {
    await deliver(MAILS);
    for (let i = 0; i < MAILS; i += 1) JSON.parse(JSON.stringify({ mark: PAYLOAD_MARK }));
  });
  expectOver("mail: parses of its payload", parsing / MAILS);
  const kept: object[] = [];
  const keeping = await objectsLeftBy(async () => {
    await deliver(MANY_MAILS);
    for (let i = 0; i < MANY_MAILS; i += 1) kept.push({ of: i });
  });
  expect(kept).toHaveLength(MANY_MAILS);
  expectOver("mail: objects left behind", keeping / MANY_MAILS);
});
