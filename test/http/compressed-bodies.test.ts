import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { SHARE_BYTES } from "../../src/http/body-room.ts";
import { eventually } from "../support/eventually.ts";
import { Front, OPERATOR_TOKEN } from "./support/front.ts";
import { RawConnection } from "./support/raw-connection.ts";

const MIB = 1024 * 1024;
const SEND = JSON.stringify({ to_address: "ada@example.com", template_id: "welcome" });
const LIMIT_ERROR = { error: `the body is larger than ${10 * MIB} bytes` };

let front: Front;
const open: RawConnection[] = [];
beforeAll(async () => {
  front = await Front.start();
});
afterAll(() => front.stop(), 90_000);
afterEach(() => {
  for (const connection of open.splice(0)) connection.close();
});
beforeEach(() => {
  front.queue.counted = 0;
});

function post(body: Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}): Promise<Response> {
  const all = { "X-API-Key": front.apiKey, "Content-Type": "application/json", "Content-Encoding": "gzip", ...headers };
  return fetch(`${front.url}/v1/send/email`, { method: "POST", headers: all, body });
}

describe("a body in gzip", () => {
  test.each(["gzip", "GZIP", "x-gzip"])("is taken as what it expands to: %s", async (encoding) => {
    const answer = await post(gzipSync(SEND), { "Content-Encoding": encoding });
    expect(answer.status).toBe(202);
    expect(front.queue.counted).toBe(1);
    const { job_id } = (await answer.json()) as { job_id: string };
    expect(front.queue.queued.at(-1)?.job).toMatchObject({ jobId: job_id, recipient: "ada@example.com" });
  });

  test("is the same request for its Idempotency-Key, compressed or not, and however well", async () => {
    const key = { "Idempotency-Key": "one-order" };
    const first = await post(gzipSync(SEND, { level: 1 }), key);
    const plain = await post(new TextEncoder().encode(SEND), { ...key, "Content-Encoding": "identity" });
    const again = await post(gzipSync(SEND, { level: 9 }), key);
    const answers = await Promise.all([first, plain, again].map((one) => one.text()));
    expect(new Set(answers).size).toBe(1);
    expect(answers[0]).toContain("job_id");
  });

  test("that expands beyond 10 MiB is refused with 413, and what it expands to is never held", async () => {
    const bomb = gzipSync(Buffer.alloc(256 * MIB, 0x20), { level: 1 });
    Bun.gc(true);
    const before = process.memoryUsage.rss();
    const answer = await post(bomb);
    expect([answer.status, await answer.json()]).toEqual([413, LIMIT_ERROR]);
    expect(process.memoryUsage.rss() - before).toBeLessThan(60 * MIB);
    const most = gzipSync(SEND + " ".repeat(10 * MIB - SEND.length));
    expect((await post(most)).status).toBe(202);
  });

  test("takes room by what it expands to: its tenant's share bounds many of them", async () => {
    const apiKey = await front.addTenant("initech", "pro");
    const body = gzipSync(" ".repeat(10 * MIB));
    const answers: number[] = [];
    const fitting = Math.floor(SHARE_BYTES / (10 * MIB));
    const lines = ["POST /v1/send/email HTTP/1.1", "Host: api", `X-API-Key: ${apiKey}`, "Content-Encoding: gzip"];
    const head = [...lines, "Content-Type: application/json", "Transfer-Encoding: chunked"].join("\r\n");
    for (let n = 0; n < fitting + 3; n++) {
      const connection = await RawConnection.open(front.port);
      open.push(connection);
      // All but the last byte: none ends, and each has expanded.
      await connection.write(`${head}\r\n\r\n${(body.length - 1).toString(16)}\r\n`);
      await connection.write(body.subarray(0, -1));
      await connection.write("\r\n");
      connection.answer().then(
        ({ status }) => answers.push(status),
        () => undefined,
      );
    }
    await eventually("those beyond the share are refused", () => answers.length >= 3);
    expect(new Set(answers)).toEqual(new Set([429]));
  }, 90_000);

  test.each<[string, Uint8Array<ArrayBuffer>]>([
    ["is none", new TextEncoder().encode(SEND)],
    ["breaks off", new Uint8Array(gzipSync(SEND).subarray(0, -3))],
    ["has a wrong checksum", new Uint8Array(gzipSync(SEND)).fill(0, -8, -4)],
    ["goes on with rubbish", new Uint8Array(Buffer.concat([gzipSync(SEND), Buffer.from("rubbish")]))],
  ])("that %s is refused with 400, and counts", async (_, body) => {
    const answer = await post(body);
    expect([answer.status, await answer.json()]).toEqual([400, { error: "the body is not valid gzip" }]);
    expect(front.queue.counted).toBe(1);
  });

  test("that is empty is refused as no JSON", async () => {
    expect((await post(new Uint8Array())).status).toBe(400);
  });
});

test.each(["br", "deflate", "zstd", "gzip, gzip", "gzip;q=1", "aes128gcm"])(
  "another encoding is refused with 415, which names what is taken: %s",
  async (encoding) => {
    const answer = await post(gzipSync(SEND), { "Content-Encoding": encoding });
    expect(answer.status).toBe(415);
    expect(answer.headers.get("accept-encoding")).toBe("gzip, identity");
    expect(await answer.json()).toEqual({ error: "the Content-Encoding of a body must be gzip, or none" });
  },
);

test("operators' bodies are taken in gzip, too", async () => {
  const body = gzipSync(JSON.stringify({ id: "hooli", name: "Hooli", plan: "pro" }));
  const answer = await fetch(`${front.url}/dash/api/tenants`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${OPERATOR_TOKEN}`,
      "Content-Type": "application/json",
      "Content-Encoding": "gzip",
    },
    body,
  });
  expect([answer.status, ((await answer.json()) as { id?: string }).id]).toEqual([201, "hooli"]);
});
