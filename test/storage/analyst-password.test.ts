import { afterAll, beforeAll, expect, test } from "bun:test";
import { createClient } from "@clickhouse/client";
import { type OpenAnalysts, openAnalysts, PASSWORD } from "../support/open-analysts.ts";

let analysts: OpenAnalysts;

beforeAll(async () => {
  analysts = await openAnalysts();
}, 90_000);

afterAll(async () => {
  await analysts.close();
});

const basic = (user: string, password: string) => ({
  Authorization: `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`,
});

async function ask(members: Record<string, string>, headers: Record<string, string>) {
  const query = new URLSearchParams({ query: "SELECT 1", ...members });
  const answer = await fetch(`${analysts.face.url}/?${query.toString()}`, { headers });
  return { status: answer.status, text: await answer.text(), code: answer.headers.get("x-clickhouse-exception-code") };
}

test("the password is accepted in every form of ClickHouse's HTTP protocol", async () => {
  const ways: [Record<string, string>, Record<string, string>][] = [
    [{}, { "X-ClickHouse-User": "default", "X-ClickHouse-Key": PASSWORD }],
    [{}, { "X-ClickHouse-Key": PASSWORD }],
    [{}, basic("default", PASSWORD)],
    [{}, basic("waybill", PASSWORD)],
    [{}, basic("", PASSWORD)],
    [{ user: "waybill", password: PASSWORD }, {}],
    [{ password: PASSWORD }, {}],
    [{ user: "default" }, { "X-ClickHouse-Key": PASSWORD }],
  ];
  for (const [members, headers] of ways)
    expect({ members, headers, ...(await ask(members, headers)) }).toMatchObject({ status: 200, text: "1\n" });
  const client = createClient({ url: analysts.face.url, username: "default", password: PASSWORD });
  const rows = await client.query({ query: "SELECT 1 AS n", format: "JSONEachRow" });
  expect(await rows.json<unknown>()).toEqual([{ n: 1 }]);
  await client.close();
});

test("without the right password only a ping is answered, and the error is ClickHouse's own", async () => {
  const ways: [Record<string, string>, Record<string, string>][] = [
    [{}, {}],
    [{ user: "default", password: "" }, {}],
    [{ password: `${PASSWORD}x` }, {}],
    [{ password: PASSWORD.slice(0, -1) }, {}],
    [{ password: PASSWORD.toUpperCase() }, {}],
    [{}, { "X-ClickHouse-Key": "wrong" }],
    [{}, { "X-ClickHouse-User": "admin", "X-ClickHouse-Key": PASSWORD }],
    [{ user: "admin" }, { "X-ClickHouse-Key": PASSWORD }],
    [{}, basic("admin", PASSWORD)],
    [{}, basic("default", "wrong")],
    [{}, { Authorization: `Bearer ${PASSWORD}` }],
    [{}, { Authorization: "Basic %%%" }],
    // A single wrong one is too many.
    [{ password: "wrong" }, { "X-ClickHouse-Key": PASSWORD }],
    [{ password: "wrong" }, basic("default", PASSWORD)],
  ];
  const answers = await Promise.all(ways.map(([members, headers]) => ask(members, headers)));
  for (const [at, answer] of answers.entries()) {
    expect([ways[at], answer.status, answer.code]).toEqual([ways[at], 403, "516"]);
    expect(answer.text).toStartWith("Code: 516. DB::Exception: default: Authentication failed: password is incorrect");
    expect(answer.text).toEndWith("(AUTHENTICATION_FAILED)\n");
  }
  expect(await (await fetch(`${analysts.face.url}/ping`)).text()).toBe("Ok.\n");
  const body = await fetch(analysts.face.url, { method: "POST", body: "SELECT 1" });
  expect(body.status).toBe(403);
}, 90_000);

test("some of many concurrent wrong passwords are not even checked, and the right one is answered meanwhile", async () => {
  const wrong = Array.from({ length: 40 }, () => ask({ password: "wrong" }, {}));
  expect(await ask({ password: PASSWORD }, {})).toMatchObject({ status: 200 });
  const busy = (await Promise.all(wrong)).filter(({ status }) => status === 503);
  expect(busy.length).toBeGreaterThan(0);
}, 90_000);
