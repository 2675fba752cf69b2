import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { RspamdFilter } from "../../../src/channels/email/spam/rspamd-filter.ts";
import type { ScoredMessage } from "../../../src/channels/email/spam/spam.ts";
import { UnavailableError } from "../../../src/domain/errors.ts";
import { eventually } from "../../support/eventually.ts";
import { freePort } from "../../support/free-port.ts";

/** How the stand-in answers the next requests, and the last request that it received. */
let answer: (response: ServerResponse) => void = () => {};
let seen: { method: string; url: string; headers: IncomingHttpHeaders; body: string } | null = null;
let closed = 0;

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  response.on("close", () => {
    closed += 1;
  });
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const body = Buffer.concat(chunks).toString();
    seen = { method: request.method ?? "", url: request.url ?? "", headers: request.headers, body };
    answer(response);
  });
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
// A server that listens on TCP has an address of this form.
const { port } = server.address() as AddressInfo;
const url = `http://127.0.0.1:${port}`;
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  seen = null;
  closed = 0;
});

const never = new AbortController().signal;
const raw = "Message-ID: <job-1.shop@shop.test>\r\nSubject: Hi\r\n\r\nMessage-ID: <other@x.test>\r\n";
const message: ScoredMessage = {
  subject: "Hi",
  html: "<p>Hi</p>",
  text: null,
  from: "Shop <orders@shop.test>",
  to: "ann@good.test",
  raw: async () => new TextEncoder().encode(raw),
};
const says = (body: string, status = 200) => {
  answer = (response) => response.writeHead(status, { "content-type": "application/json" }).end(body);
};
const ask = (at = url, signal = never, timeoutMs = 5_000) =>
  new RspamdFilter(at, { timeoutMs, answerBytesMax: 100_000 }).score(message, signal);
const unavailable = async (verdict: Promise<unknown>) => {
  const error: unknown = await verdict.then(
    (value) => value,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(UnavailableError);
  // toBeInstanceOf has just checked it.
  return (error as UnavailableError).message;
};

describe("a question", () => {
  test("is the whole message, with its envelope and a name for the log", async () => {
    says('{"score":0}');
    await ask();
    expect(seen).toMatchObject({ method: "POST", url: "/checkv2", body: raw });
    expect(seen?.headers).toMatchObject({ from: "orders@shop.test", rcpt: "ann@good.test", "queue-id": "job-1.shop" });
    expect(seen?.headers).not.toHaveProperty("password");
    expect(seen?.headers).not.toHaveProperty("authorization");
  });

  test("carries the password of the URL as rspamd wants it, and errors do not", async () => {
    says("{}", 403);
    const why = await unavailable(ask(url.replace("//", "//any:s%20cret@")));
    expect(seen?.headers).toMatchObject({ password: "s cret" });
    expect(seen?.headers).not.toHaveProperty("authorization");
    expect(why).toContain("403");
    expect(why).not.toMatch(/s(?: |%20)cret/);
  });

  test("carries a password that is no URL text as it is", async () => {
    says('{"score":0}');
    await ask(url.replace("//", "//any:50%@"));
    expect(seen?.headers).toMatchObject({ password: "50%" });
  });

  test.each([
    ["/", "/checkv2"],
    ["/rspamd/", "/rspamd/checkv2"],
    ["/checkv2", "/checkv2"],
  ])("goes to %p as %p", async (path, expected) => {
    says('{"score":0}');
    await ask(url + path);
    expect(seen?.url).toBe(expected);
  });
});

describe("an answer", () => {
  test("is read without the symbols that are worth nothing, rounded, highest first", async () => {
    const symbols = {
      LOW: { score: 0.104 },
      NONE: { score: 0 },
      GOOD: { score: -1 },
      HIGH: { score: 7, description: "d" },
    };
    says(JSON.stringify({ score: 6.104, symbols }));
    expect(await ask()).toEqual({
      score: 6.1,
      rules: [
        { rule: "HIGH", score: 7, description: "d" },
        { rule: "LOW", score: 0.1, description: "" },
        { rule: "GOOD", score: -1, description: "" },
      ],
    });
  });

  test("with a thousand symbols is cut to the highest", async () => {
    const symbols = Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`S${n}`, { score: n }]));
    says(JSON.stringify({ score: 1, symbols }));
    const { rules } = await ask();
    expect(rules.length).toBeLessThanOrEqual(32);
    expect(rules[0]?.rule).toBe("S999");
  });

  test("with long texts is cut to short ones", async () => {
    says(
      JSON.stringify({
        score: 1,
        symbols: { ["N".repeat(5_000)]: { score: 1, description: "\u{1f600}".repeat(5_000) } },
      }),
    );
    const [rule] = (await ask()).rules;
    expect(rule?.rule.length).toBeLessThanOrEqual(100);
    expect(rule?.description.length).toBeLessThanOrEqual(300);
    expect(rule?.description.isWellFormed()).toBe(true);
  });
});

describe("there is no verdict, and the job must wait,", () => {
  test.each([
    ["an error status", "{}", 500],
    ["an error status with a score", '{"score":0}', 503],
    ["a redirect", '{"score":0}', 302],
    ["an empty body", "", 200],
    ["an empty 204", "", 204],
    ["garbage", "<html>", 200],
    ["half an answer", '{"score":1', 200],
    ["no object", "[1]", 200],
    ["no score", '{"error":"cannot parse"}', 200],
    ["a score in words", '{"score":"1"}', 200],
    ["a score beyond all numbers", '{"score":1e999}', 200],
    ["symbols that are a list", '{"score":1,"symbols":[]}', 200],
    ["a symbol without a score", '{"score":1,"symbols":{"A":{}}}', 200],
    ["a symbol that is null", '{"score":1,"symbols":{"A":null}}', 200],
  ])("when rspamd answers %s", async (_what, body, status) => {
    says(body, status);
    expect(await unavailable(ask())).toContain(`127.0.0.1:${port}`);
  });

  test("when the answer does not end, and its connection is closed", async () => {
    answer = (response) => {
      const more = () => {
        if (!response.destroyed) response.write("x".repeat(10_000), more);
      };
      more();
    };
    expect(await unavailable(ask())).toContain("longer than 100000 bytes");
    await eventually("the connection is closed", () => closed > 0);
  }, 90_000);

  test("when rspamd never answers", async () => {
    answer = () => {};
    await unavailable(ask(url, never, 200));
    await eventually("the connection is closed", () => closed > 0);
  }, 90_000);

  test("when the answer stops in the middle", async () => {
    answer = (response) => response.write('{"score":');
    await unavailable(ask(url, never, 200));
  }, 90_000);

  test("when the connection breaks", async () => {
    answer = (response) => response.destroy();
    await unavailable(ask());
  }, 90_000);

  test("when nobody listens", async () => {
    await unavailable(ask(`http://127.0.0.1:${await freePort()}`));
  }, 90_000);

  test("when the caller gives up, at once or before it began", async () => {
    answer = () => {};
    const patience = new AbortController();
    const asked = new RspamdFilter(url, { timeoutMs: 60_000 }).score(message, patience.signal);
    await eventually("the question arrived", () => seen);
    patience.abort();
    await unavailable(asked);
    await unavailable(ask(url, AbortSignal.abort()));
  }, 90_000);

  test("but the next question is answered", async () => {
    answer = (response) => response.destroy();
    await unavailable(ask());
    says('{"score":1.5}');
    expect(await ask()).toEqual({ score: 1.5, rules: expect.anything() });
  }, 90_000);
});

test("a message that cannot be made is its maker's error, not the filter's", async () => {
  const broken: ScoredMessage = { ...message, raw: () => Promise.reject(new RangeError("no message")) };
  await expect(new RspamdFilter(url).score(broken, never)).rejects.toBeInstanceOf(RangeError);
});
