import { afterEach, describe, expect, test } from "bun:test";
import { request } from "node:http";
import { RecentFailures } from "../../src/http/operator-gate.ts";
import { Front, OPERATOR_TOKEN } from "../http/support/front.ts";
import { runCommand } from "../support/command.ts";
import { temporaryHome } from "../support/waybill.ts";

const SHORT = "0123456789abcdef0123456789abcde";
const RIGHT = `Bearer ${OPERATOR_TOKEN}`;

const fronts: Front[] = [];
afterEach(async () => {
  for (const front of fronts.splice(0)) await front.stop();
});

/** A front whose clock can be put forward. */
async function start() {
  const time = { skippedMs: 0 };
  const clock = {
    nowMs: () => Date.now(),
    monotonicMs: () => performance.now() + time.skippedMs,
    setTimer: (delayMs: number, run: () => void) => {
      const timer = setTimeout(run, delayMs);
      return { cancel: () => clearTimeout(timer) };
    },
  };
  const front = await Front.start({ clock });
  fronts.push(front);
  return { front, time };
}

interface Attempt {
  readonly status: number;
  readonly retryAfter: number | null;
}

const REFUSED: Attempt = { status: 401, retryAfter: null };
const SLOWED = { status: 401, retryAfter: expect.any(Number) };

/** Requests the tenants from one of this machine's addresses. */
function attempt(front: Front, authorization: string | null, from = "127.0.0.1", method = "GET"): Promise<Attempt> {
  const { promise, resolve, reject } = Promise.withResolvers<Attempt>();
  const headers = authorization === null ? {} : { authorization };
  const at = { host: "127.0.0.1", port: front.port, path: "/dash/api/tenants", localAddress: from, agent: false };
  const asked = request({ ...at, method, headers }, (answer) => {
    answer.resume();
    const wait = answer.headers["retry-after"];
    resolve({ status: answer.statusCode ?? 0, retryAfter: wait === undefined ? null : Number(wait) });
  });
  asked.on("error", reject);
  asked.end();
  return promise;
}

async function guess(front: Front, times: number, from?: string): Promise<readonly Attempt[]> {
  const answers: Attempt[] = [];
  for (let at = 0; at < times; at += 1) answers.push(await attempt(front, `Bearer guess-${at}`, from));
  return answers;
}

describe("wrong operator tokens", () => {
  test("of one address are all refused alike, and after ten a minute told to wait for the rest of it", async () => {
    const { front, time } = await start();
    expect(await guess(front, 10)).toEqual(Array(10).fill(REFUSED));
    const { status, retryAfter } = await attempt(front, "Bearer another");
    expect([status, retryAfter]).toEqual([401, expect.any(Number)]);
    expect(retryAfter).toBeWithin(1, 61);
    // For every operators' address, existing or not, and by every method.
    for (const path of ["/dash/api/plans", "/dash/api/no-such", "/dash/api"]) {
      const { status, headers } = await front.fetch(path, { headers: { authorization: "Bearer x" } });
      expect([status, headers.has("retry-after")]).toEqual([401, true]);
    }
    expect(await attempt(front, "Bearer x", undefined, "HEAD")).toEqual(SLOWED);
    time.skippedMs += (retryAfter ?? 0) * 1_000;
    expect(await attempt(front, "Bearer another")).toEqual(REFUSED);
  });

  test("do not keep out a caller with the right token, from the same address or another", async () => {
    const { front } = await start();
    await guess(front, 20);
    expect((await attempt(front, RIGHT)).status).toBe(200);
    expect((await attempt(front, RIGHT, "127.0.0.2")).status).toBe(200);
    expect(await attempt(front, "Bearer x")).toEqual(SLOWED);
  });

  test("of one address do not slow those of another", async () => {
    const { front } = await start();
    await guess(front, 11, "127.0.0.2");
    expect(await guess(front, 10, "127.0.0.3")).toEqual(Array(10).fill(REFUSED));
    expect(await attempt(front, "Bearer x", "127.0.0.2")).toEqual(SLOWED);
  });

  test("are what is counted: a request without a token guesses nothing", async () => {
    const { front } = await start();
    for (let at = 0; at < 15; at += 1) expect(await attempt(front, null)).toEqual(REFUSED);
    expect(await attempt(front, "Bearer x")).toEqual(REFUSED);
  });

  test("are logged once, with the address and without the token", async () => {
    const { front } = await start();
    await guess(front, 30);
    const lines = front.logs.filter(({ message }) => message.includes("operator tokens"));
    expect(lines).toMatchObject([{ level: "warn", fields: { address: "127.0.0.1" } }]);
    expect(JSON.stringify(lines)).not.toContain("guess-");
  });

  test("of many addresses are remembered in bounded memory, the latest ones", () => {
    const failures = new RecentFailures({ windowMs: 60_000, failuresMax: 2, callersMax: 1_000 });
    failures.add("early", 0);
    for (let at = 0; at < 100_000; at += 1) failures.add(`address ${at}`, 1 + at / 100_000);
    expect(failures.size).toBe(1_000);
    expect(failures.add("early", 3)).toBe(1);
    expect(failures.add("address 99999", 3)).toBe(2);
    expect(failures.waitMs("address 99999", 3)).toBeGreaterThan(0);
    failures.add("much later", 500_000);
    expect(failures.size).toBe(1);
  });
});

describe("an operator token of fewer than 32 characters", () => {
  test.each(["0.0.0.0", "::", "192.0.2.1", "send.example.com", "127.evil.example"])(
    "is refused at %s in one line that does not show it",
    async (HOST) => {
      const home = await temporaryHome();
      const { code, errors } = await runCommand(["serve"], { WAYBILL_HOME: home.path, HOST, OPERATOR_TOKEN: SHORT });
      await home.remove();
      expect(errors.trim().split("\n")).toEqual([
        `waybill: OPERATOR_TOKEN has 31 characters; with HOST=${HOST}, which others can reach, it should have at least ` +
          "32 (openssl rand -base64 32), or be left unset: then one is made",
      ]);
      expect(code).toBe(2);
      expect(errors).not.toContain(SHORT);
    },
  );
});
