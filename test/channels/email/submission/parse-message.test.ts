import { expect, test } from "bun:test";
import { MessageParser } from "../../../../src/channels/email/submission/parse-message.ts";

const FROM = "From: no-reply@platform.test\r\n";

test("tenants' messages are read in turn: none waits for all that another tenant sends", async () => {
  const parser = new MessageParser();
  const done: string[] = [];
  const parse = async (tenantId: string, subject: string) => {
    await parser.parse(tenantId, Buffer.from(`${FROM}Subject: ${subject}\r\n\r\nHi`));
    done.push(subject);
  };
  const flood = Array.from({ length: 20 }, (_, n) => parse("flooding", `flood ${n}`));
  await Promise.all([...flood, parse("acme", "one"), parse("beta", "two")]);
  expect(done.slice(0, 4)).toEqual(["flood 0", "flood 1", "one", "two"]);
});
