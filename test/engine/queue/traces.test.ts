import { expect, test } from "bun:test";
import { parsePayload as parseEmail } from "../../../src/channels/email/payload.ts";
import { parsePayload as parseChat } from "../../../src/channels/whatsapp/payload.ts";
import type { NewJob } from "../../../src/domain/queue.ts";
import { accept, first, pullOne, queue, redis, sent, world } from "./queue-world.ts";

const TRACE = `00-${"5e".repeat(16)}-${"a1".repeat(8)}-01`;
const EMAIL = '{"to":"ann@example.com","data":{"é":1}}';
const STORED = { sha256: "ab".repeat(32), bytes: 300_000 };

async function entryOf(prefix: string): Promise<string> {
  const [, fields] = first(await redis.client.xrange(`${prefix}:box:acme/e`, "-", "+"));
  return fields[1] ?? "";
}

async function loadOf(prefix: string): Promise<string> {
  return (await redis.client.hget(`${prefix}:tenants`, "acme"))?.split(" ").slice(0, 2).join(" ") ?? "";
}

test.each<[string, Partial<NewJob>]>([
  ["a payload", { payload: EMAIL }],
  ["a template", { payload: EMAIL, template: "welcome" }],
  ["a payload that is stored elsewhere", { payload: "", stored: STORED }],
  ["a template and a payload that is stored elsewhere", { payload: "", stored: STORED, template: "welcome" }],
])("a traced job with %s keeps its trace over a retry, and its payload as it was", async (_, given) => {
  const at = await world();
  await accept(at.tenant, { ...given, traceparent: TRACE });
  const job = first(await pullOne(at.lease, "acme"));
  expect(job).toMatchObject({ ...given, traceparent: TRACE });
  await queue.settle(at.lease, [{ kind: "retry", job, delayMs: 0, status: "running" }], null);
  const again = first(await pullOne(at.lease, "acme"));
  expect(again).toMatchObject({ ...given, traceparent: TRACE, attempts: 1 });
  await accept(at.tenant, { ...given, traceparent: TRACE });
  await queue.settle(at.lease, [sent(again)], null);
  // All that the first job counted for is given back, and the second counts for as much.
  const bytes = given.stored?.bytes ?? Buffer.byteLength(EMAIL) + TRACE.length + `"$trace":"",`.length;
  expect(await loadOf(at.prefix)).toBe(`1 ${bytes}`);
});

test("a job that is not traced takes no byte more, and one whose payload has no members is not traced", async () => {
  const at = await world();
  const jobId = await accept(at.tenant, { payload: EMAIL });
  expect(await entryOf(at.prefix)).toBe(`${jobId} e0 ann@example.com\n${EMAIL}`);
  expect(first(await pullOne(at.lease, "acme"))).not.toHaveProperty("traceparent");
  for (const payload of ["{}", "[1]", '"text"']) {
    const other = await world();
    await accept(other.tenant, { payload, traceparent: TRACE });
    const job = first(await pullOne(other.lease, "acme"));
    expect(job.payload).toBe(payload);
    expect(job).not.toHaveProperty("traceparent");
  }
});

test("a process of a former release, which takes the whole payload for the channel's, reads the same message", async () => {
  const at = await world();
  const jobId = await accept(at.tenant, { payload: EMAIL, template: "welcome", traceparent: TRACE });
  const entry = await entryOf(at.prefix);
  const head = entry.slice(0, entry.indexOf("\n"));
  expect(head).toBe(`${jobId} e0 ann@example.com\t"welcome"`);
  expect(parseEmail(entry.slice(head.length + 1))).toEqual({ to: "ann@example.com", data: { é: 1 } });
  const chat = { to: "34600000000", template: "hi", language: "es", params: [] };
  expect(parseChat(JSON.stringify({ $trace: TRACE, ...chat }))).toEqual(chat);
});
