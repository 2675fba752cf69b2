import { afterAll, beforeAll, expect, test } from "bun:test";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createClient } from "@clickhouse/client";
import { ClickHouse } from "../../src/events/clickhouse.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { eventually } from "../support/eventually.ts";

const TIMEOUT_MS = 300;

let server: Server;
let open = 0;
let answer: (response: ServerResponse) => void = () => {};
let clickhouse: ClickHouse;

beforeAll(async () => {
  server = createServer((request: IncomingMessage, response) => {
    request.resume();
    answer(response);
  });
  server.on("connection", (socket) => {
    open += 1;
    socket.on("close", () => {
      open -= 1;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  const client = createClient({ url: `http://127.0.0.1:${address.port}`, keep_alive: { enabled: false } });
  clickhouse = new ClickHouse({ client, clock: systemClock, timeoutMs: TIMEOUT_MS });
});

afterAll(() => {
  server.closeAllConnections();
  server.close();
});

test.each<[string, () => Promise<unknown>]>([
  ["a statement", () => clickhouse.command("SELECT 1")],
  ["an insert", () => clickhouse.insert("INSERT INTO a FORMAT TSV", "1\n")],
  ["rows", () => clickhouse.rows("SELECT 1")],
  ["bytes", () => clickhouse.bytes("SELECT 1 FORMAT TSV")],
])("the answer to %s that stops midway keeps its connection no longer than its caller waits", async (_what, call) => {
  answer = (response) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.write('{"data":');
  };
  await expect(call()).rejects.toThrow(`no answer in ${TIMEOUT_MS} ms`);
  await eventually("its connection is closed", () => open === 0, 10_000);
});

test("a document that the server completes although the statement failed is no answer", async () => {
  answer = (response) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.end('{"meta":[],"data":[[1],[2]],"rows":2,"exception":"Code: 241. DB::Exception: Memory limit exceeded"}');
  };
  await expect(clickhouse.rows("SELECT 1")).rejects.toThrow("Memory limit exceeded");
});
