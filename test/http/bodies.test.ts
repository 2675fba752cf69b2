import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { JobIds } from "../../src/domain/ids.ts";
import { type Caller, SHARE_BYTES } from "../../src/http/body-room.ts";
import { Exchange } from "../../src/http/exchange.ts";
import { costOfParsing } from "../../src/http/parse-json.ts";
import { LargeBodies, RequestBodies } from "../../src/http/request-body.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { eventually } from "../support/eventually.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { VirtualClock } from "../support/virtual-clock.ts";
import { Front } from "./support/front.ts";
import { type RawAnswer, RawConnection } from "./support/raw-connection.ts";

const MIB = 1024 * 1024;
const BLANKS = new Uint8Array(MIB).fill(0x20);
const SEND = { to_address: "ada@example.com", template_id: "welcome" };

let clock: ManualClock;
let front: Front;
let open: SlowBody[];

beforeEach(async () => {
  clock = new ManualClock();
  open = [];
  front = await Front.start({ clock });
});
afterEach(async () => {
  for (const { connection } of open) connection.close();
  await front.stop();
}, 90_000);

/** A request whose body the test sends piece by piece. */
interface SlowBody {
  readonly connection: RawConnection;
  answer: RawAnswer | null;
}

async function begin(apiKey: string, framing: string): Promise<SlowBody> {
  const connection = await RawConnection.open(front.port);
  const lines = ["POST /v1/send/email HTTP/1.1", "Host: api", `X-API-Key: ${apiKey}`];
  await connection.write(`${[...lines, "Content-Type: application/json", framing].join("\r\n")}\r\n\r\n`);
  const body: SlowBody = { connection, answer: null };
  open.push(body);
  connection.answer().then(
    (answer) => (body.answer = answer),
    () => undefined,
  );
  return body;
}

/** Time that passes with work besides. */
class WorkClock extends VirtualClock {
  workedMs = 0;

  override monotonicMs(): number {
    return super.monotonicMs() + this.workedMs;
  }
}

const ACME = { tenantId: "acme" };
const GLOBEX = { tenantId: "globex" };

const answered = () => open.flatMap(({ answer }) => answer ?? []);
const parseError = (answer: RawAnswer | undefined) => JSON.parse(answer?.body ?? "{}").error;

describe("room for bodies", () => {
  const TEN = `Content-Length: ${10 * MIB}`;
  const FITTING = Math.floor(SHARE_BYTES / (10 * MIB));

  test("forty slow bodies of 10 MiB hold at most their tenant's share, and another tenant's body is accepted", async () => {
    const other = await front.addTenant("globex", "pro", ["allow_raw_html"]);
    const before = process.memoryUsage.rss();
    for (let n = 0; n < 40; n++) {
      const { connection } = await begin(front.apiKey, TEN);
      for (let sent = 0; sent < 9; sent++) await connection.write(BLANKS);
    }
    await eventually("all beyond the share are refused", () => answered().length === 40 - FITTING);
    const [first] = answered();
    expect(new Set(answered().map(({ status }) => status))).toEqual(new Set([429]));
    expect(parseError(first)).toContain("your share of the memory for bodies");
    expect([first?.headers.get("retry-after"), first?.headers.get("ratelimit-limit")]).toEqual(["1", "1000"]);
    expect(process.memoryUsage.rss() - before).toBeLessThan(3 * SHARE_BYTES);
    const html = `<p>${"x".repeat(400_000)}</p>`;
    const answer = await front.send({ to_address: "ada@example.com", html }, { "X-API-Key": other });
    expect(answer.status).toBe(202);
  }, 90_000);

  test("is bounded for all tenants together, and finished bodies free it", async () => {
    const keys = await Promise.all(["a", "b", "c", "d", "e"].map((id) => front.addTenant(id, "pro")));
    for (const key of keys.slice(0, 4)) for (let n = 0; n < FITTING; n++) await begin(key, TEN);
    // 240 MiB are taken.
    await begin(keys[4] ?? "", TEN);
    const { connection } = await begin(keys[4] ?? "", TEN);
    const refused = await eventually("it is refused", () => answered()[0]);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
    expect(parseError(refused)).toBe("the service reads as many large requests as it has memory for: try again");
    // A usual body needs no reservation.
    expect((await front.send(SEND)).status).toBe(202);
    connection.close();
    open[0]?.connection.close();
    await eventually("there is room", async () => {
      const body = await begin(keys[4] ?? "", `Content-Length: ${MIB}`);
      await body.connection.write(" ".repeat(MIB));
      return (await eventually("an answer", () => body.answer)).status === 400;
    });
  }, 90_000);

  test("is reserved piece by piece for a body without a length", async () => {
    for (let n = 0; n < 40; n++) {
      const { connection } = await begin(front.apiKey, "Transfer-Encoding: chunked");
      await connection.write("10\r\n                \r\n");
    }
    // Such a small part of forty bodies is no reason to refuse any.
    expect((await front.send(SEND)).status).toBe(202);
    expect(answered()).toHaveLength(0);
    const chunk = `${(9 * MIB).toString(16)}\r\n${" ".repeat(9 * MIB)}\r\n`;
    for (const { connection } of open.slice(0, 10)) await connection.write(chunk);
    await eventually("those beyond the share are refused", () => answered().length >= 3);
    expect(new Set(answered().map(({ status }) => status))).toEqual(new Set([429]));
  }, 90_000);
});

describe("a body that comes too slowly", () => {
  test.each([
    ["large", MIB],
    ["small", 60_000],
  ])("is given up when none of it arrives for ten seconds, a %s one too", async (_, length) => {
    const { connection } = await begin(front.apiKey, `Content-Length: ${length}`);
    await connection.write(" ".repeat(1000));
    await front.send(SEND);
    clock.forward(10_500);
    const late = await eventually("it is given up", () => answered()[0]);
    expect(late.status).toBe(408);
    expect(parseError(late)).toBe("the body came too slowly: nothing for 10 seconds, or less than 64 kB a second");
    await connection.closed();
  });

  test("is given up when it takes longer than half a minute plus the time that its length allows", async () => {
    const body = await begin(front.apiKey, `Content-Length: ${MIB}`);
    for (let n = 0; n < 5; n++) {
      await body.connection.write(" ".repeat(1000));
      await front.send(SEND);
      expect(body.answer).toBeNull();
      clock.forward(9_000);
    }
    await body.connection.write(" ");
    clock.forward(3_000);
    expect((await eventually("it is given up", () => body.answer)).status).toBe(408);
  });

  test("frees its room", async () => {
    const heads = Array.from({ length: 6 }, () => begin(front.apiKey, `Content-Length: ${10 * MIB}`));
    await Promise.all(heads);
    const refused = await begin(front.apiKey, `Content-Length: ${5 * MIB}`);
    expect((await eventually("there is no room", () => refused.answer)).status).toBe(429);
    clock.forward(10_500);
    await eventually("they are given up", () => answered().length === 7);
    const next = await begin(front.apiKey, `Content-Length: ${5 * MIB}`);
    for (let n = 0; n < 5; n++) await next.connection.write(" ".repeat(MIB));
    expect((await eventually("it is read", () => next.answer)).status).toBe(400);
  });
});

describe("a body that is expensive to parse", () => {
  const VALUES_MAX = 50_000;

  test("is refused when it holds more than 50,000 values", async () => {
    const objects = (count: number) => `{"data":{"a":[${"{},".repeat(count)}{}]}}`;
    const refused = await front.send(objects(3 * MIB));
    expect([refused.status, refused.body]).toEqual([400, { error: "the body holds more than 50000 values" }]);
    const numbers = await front.send(`[${"1,".repeat(VALUES_MAX)}1]`);
    expect([numbers.status, numbers.body]).toEqual([400, { error: "the body holds more than 50000 values" }]);
    const items = Array.from({ length: VALUES_MAX - 10 }, () => 1);
    expect((await front.send({ ...SEND, data: { items } })).status).toBe(202);
  });

  test("costs nothing for what stands behind a quote that is escaped, however long its text is", () => {
    for (let length = 55; length <= 75; length += 1) {
      const text = `${"x".repeat(length)}"${",[{".repeat(20)}\\"]]]"xyz`;
      const bytes = Buffer.from(JSON.stringify([text, 1]));
      expect([length, costOfParsing(bytes, 2), costOfParsing(bytes, 1)]).toEqual([
        length,
        { values: 2, isExact: false },
        "values",
      ]);
    }
  });

  test("costs as much as its commas and brackets outside strings say, whatever the strings hold", () => {
    const naive = (value: unknown): { values: number; depth: number } => {
      if (typeof value !== "object" || value === null) return { values: 0, depth: 0 };
      const inner = Object.values(value).map(naive);
      const values = 1 + Math.max(0, inner.length - 1) + inner.reduce((sum, { values: more }) => sum + more, 0);
      return { values, depth: 1 + Math.max(0, ...inner.map(({ depth }) => depth)) };
    };
    const text = fc.stringMatching(/^(?:[a-z"\\{}[\],]|\u00e9|\ud83d\ude00){0,200}$/);
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { maxDepth: 6 },
        text,
        fc.integer(),
        fc.array(tie("tree"), { maxLength: 4 }),
        fc.dictionary(text, tie("tree"), { maxKeys: 4 }),
      ),
    }));
    fc.assert(
      fc.property(tree, (value) => {
        const bytes = Buffer.from(JSON.stringify(value));
        const { values } = naive(value);
        expect(costOfParsing(bytes, values)).toMatchObject({ values });
        if (values > 0) expect(costOfParsing(bytes, values - 1)).toBe("values");
      }),
      { numRuns: 500 },
    );
  });

  test.each([
    ["a text that never ends", `"${"x".repeat(200)}`],
    ["a text that ends in a backslash", `"${"x".repeat(200)}\\`],
    ["a long text whose quotes are all escaped", `"${'\\"'.repeat(100)}`],
    ["a text that ends behind an escaped backslash", `"${"x".repeat(100)}\\\\",[[`],
  ])("that is not JSON is left to the parser: %s", (_case, text) => {
    expect(costOfParsing(Buffer.from(text), 3)).toBeObject();
  });

  test("waits until the previous one is done and other requests have had three times as long", async () => {
    const time = new WorkClock();
    const large = new LargeBodies(time);
    const order: string[] = [];
    const work = (name: string, ms: number) =>
      large.inTurn(ACME, () => {
        order.push(name);
        time.workedMs += ms;
      });
    await work("first", 40);
    const second = work("second", 10);
    await time.advance(119);
    expect(order).toEqual(["first"]);
    await time.advance(1);
    await second;
    expect(order).toEqual(["first", "second"]);
    const broken = () => {
      throw new Error("not JSON");
    };
    const third = large.inTurn(ACME, broken).catch(String);
    await time.advance(30);
    expect(await third).toBe("Error: not JSON");
    expect(await Promise.all([large.inTurn(ACME, () => 4), time.advance(1)])).toEqual([4, undefined]);
  });

  test("waits for at most two of another caller's, however many of those wait", async () => {
    const time = new WorkClock();
    const large = new LargeBodies(time);
    const order: string[] = [];
    const work = (caller: Caller, name: string) =>
      large.inTurn(caller, () => {
        order.push(name);
        time.workedMs += 10;
      });
    const [first, ...others] = [
      ...Array.from({ length: 60 }, (_, at) => work(ACME, `acme ${at + 1}`)),
      work("operator", "operator"),
      work(GLOBEX, "globex 1"),
      work(GLOBEX, "globex 2"),
    ];
    await first;
    await time.advance(60_000);
    await Promise.all(others);
    expect(order.slice(0, 6)).toEqual(["acme 1", "acme 2", "operator", "globex 1", "acme 3", "globex 2"]);
    expect(order).toHaveLength(63);
    // Requests of one caller, in order of arrival.
    expect(order.filter((name) => name.startsWith("acme"))).toEqual(
      Array.from({ length: 60 }, (_, at) => `acme ${at + 1}`),
    );
  });

  test("makes a crowd of a hundred of its caller, and of nobody else; what is begun already goes on in it", async () => {
    const time = new WorkClock();
    const large = new LargeBodies(time);
    const work = () => {
      time.workedMs += 10;
    };
    const taken = Array.from({ length: 100 }, () => large.inTurn(ACME, work));
    large.refuseCrowd(ACME);
    taken.push(large.inTurn(ACME, work));
    expect(() => large.refuseCrowd(ACME)).toThrow(expect.objectContaining({ status: 429, retryAfterSeconds: 1 }));
    large.refuseCrowd(GLOBEX);
    // A later piece of a batch, for example.
    taken.push(large.inTurn(ACME, work));
    await taken[0];
    await time.advance(60_000);
    await Promise.all(taken);
    large.refuseCrowd(ACME);
  });
});

test("an empty body in chunks is none to a call that takes none, and any other is refused", async () => {
  const statuses: number[] = [];
  for (const chunks of ["0\r\n\r\n", "1\r\nx\r\n0\r\n\r\n"]) {
    const connection = await RawConnection.open(front.port);
    const head = `DELETE /v1/templates/none HTTP/1.1\r\nHost: api\r\nX-API-Key: ${front.apiKey}`;
    await connection.write(`${head}\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`);
    statuses.push((await connection.answer()).status);
    connection.close();
  }
  expect(statuses).toEqual([404, 400]);
});

test("bodies of many values take room for these, too, beside their bytes", async () => {
  const bodies = new RequestBodies(clock);
  const body = `[${"[],".repeat(24_900)}0]`;
  const headers = { "content-type": "application/json" };
  const read = async () => {
    const request = new Request("http://api.test/", { method: "POST", headers, body });
    await bodies.json(new Exchange(request, new JobIds(clock, systemRandom)));
  };
  // Each is 75 kB of text, and becomes 2 to 4 MB.
  for (let n = 0; n < 16; n++) await read();
  await expect(read()).rejects.toMatchObject({ status: 503 });
});

test("a body in too many pieces that are no crumbs is read all the same, and one in crumbs is not", async () => {
  const bodies = new RequestBodies(clock);
  const read = (size: number, crumb: number) => {
    let left = 200_000;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        const bytes = left === 200_000 ? size : crumb;
        controller.enqueue(new Uint8Array(bytes).fill(0x20));
        left -= bytes;
        if (left <= 0) controller.close();
      },
    });
    const request = new Request("http://api.test/", { method: "POST", body });
    return bodies.bytes(new Exchange(request, new JobIds(clock, systemRandom)));
  };
  expect(await read(20, 20)).toEqual(new Uint8Array(200_000).fill(0x20));
  await expect(read(1, 1)).rejects.toMatchObject({ status: 400 });
  // Independent of the preceding bytes.
  await expect(read(100_000, 1)).rejects.toMatchObject({ status: 400 });
});

test("a body's type is judged in time, however many blanks it has", async () => {
  const bodies = new RequestBodies(clock);
  const blanks = " ".repeat(300_000);
  for (const type of [`application/json${blanks}x`, `application/json; charset=utf-8${blanks};${blanks}x`]) {
    const request = new Request("http://api.test/", { method: "POST", headers: { "content-type": type }, body: "{}" });
    const read = bodies.json(new Exchange(request, new JobIds(clock, systemRandom)));
    await expect(read).rejects.toMatchObject({ status: 400 });
  }
}, 5_000);
