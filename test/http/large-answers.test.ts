import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { ApiError } from "../../src/http/api-error.ts";
import { LargeAnswers } from "../../src/http/large-answers.ts";
import { eventually } from "../support/eventually.ts";

/* Over real sockets, with readers that take the whole answer and readers that stop. */

const MIB = 1024 * 1024;
/** More than the buffers of two sockets, so that it waits for its reader. */
const BODY = Buffer.alloc(24 * MIB, "0123456789abcdef");
const answers = new LargeAnswers();
const sockets: Socket[] = [];
let server: Bun.Server<undefined>;

beforeAll(() => {
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      try {
        const tenantId = new URL(request.url).pathname.slice(1);
        return answers.send(
          request,
          { body: BODY, caller: { tenantId } },
          new Response(null, { status: 201, headers: { "x-of": tenantId } }),
        );
      } catch (error) {
        return new Response(null, { status: error instanceof ApiError ? error.status : 500 });
      }
    },
  });
});
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});
afterAll(() => server.stop(true));

/** Requests an answer and reads only its status. */
async function unread(tenantId: string): Promise<string> {
  const socket = connect(server.port ?? 0, "127.0.0.1");
  sockets.push(socket);
  socket.write(`GET /${tenantId} HTTP/1.1\r\nHost: waybill.test\r\n\r\n`);
  const first = await new Promise<Buffer>((resolve, reject) => {
    socket.once("data", resolve);
    socket.once("error", reject);
  });
  socket.pause();
  return first.toString("latin1").slice("HTTP/1.1 ".length, "HTTP/1.1 201".length);
}

async function whole(tenantId: string): Promise<Response> {
  return fetch(new URL(tenantId, server.url));
}

test("a large answer arrives as it is, with its status and headers", async () => {
  for (let i = 0; i < 4; i += 1) {
    const answer = await whole("acme");
    expect([answer.status, answer.headers.get("x-of")]).toEqual([201, "acme"]);
    expect(Buffer.compare(await answer.bytes(), BODY)).toBe(0);
  }
});

test("who reads none of them fills its share and nobody else's, until its connections are gone", async () => {
  expect(await unread("greedy")).toBe("201");
  expect(await unread("greedy")).toBe("201");
  expect(await unread("greedy")).toBe("429");
  expect((await (await whole("other")).bytes()).length).toBe(BODY.length);
  for (const socket of sockets.splice(0)) socket.destroy();
  await eventually("there is room again", async () => (await (await whole("greedy")).bytes()).length === BODY.length);
});

test("texts count with the bytes that they are sent as", async () => {
  const request = new Request("http://waybill.test/");
  const text = "é".repeat(33 * MIB);
  expect(() => new LargeAnswers().send(request, { body: text, caller: { tenantId: "acme" } }, new Response())).toThrow(
    expect.objectContaining({ status: 429, retryAfterSeconds: 1 }),
  );
});

test("an answer to a caller that has gone takes no room", () => {
  const gone = new Request("http://waybill.test/", { signal: AbortSignal.abort() });
  const own = new LargeAnswers();
  for (let i = 0; i < 5; i += 1) own.send(gone, { body: BODY, caller: "stranger" }, new Response());
});
