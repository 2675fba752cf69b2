import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { DnsFormatError, decodeReply, encodeQuestion } from "../../../../src/channels/email/domains/dns-message.ts";
import { StubResolver } from "../../../../src/channels/email/domains/stub-resolver.ts";
import { systemClock } from "../../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../../src/runtime/system-random.ts";
import { DnsServer } from "../../../support/dns-server.ts";
import { freePort } from "../../../support/free-port.ts";
import { SeededRandom } from "../../../support/seeded-random.ts";

let server: DnsServer;
let resolver: StubResolver;

function createResolver(servers: readonly string[]): StubResolver {
  return new StubResolver({ servers, clock: systemClock, random: systemRandom, timeoutMs: 150 });
}

beforeAll(async () => {
  server = await DnsServer.start();
  resolver = createResolver([server.address]);
});
afterAll(() => server.stop());
beforeEach(() => {
  server.zone.clear();
  server.misbehaviours.clear();
  server.asked.length = 0;
  server.followsAliases = true;
});

describe("the resolver", () => {
  test("joins the strings of a TXT record, and keeps records apart", async () => {
    const long = "x".repeat(254) + "yz".repeat(200);
    server.zone.set("a.test", [
      { type: "TXT", value: long },
      { type: "TXT", value: "other" },
    ]);
    expect(await resolver.txt("A.Test")).toEqual({ kind: "found", records: [long, "other"] });
  });

  test("gives MX records in lower case, with their priorities", async () => {
    server.zone.set("a.test", [{ type: "MX", value: "MX.Platform.test", priority: 10 }]);
    const records = [{ exchange: "mx.platform.test", priority: 10 }];
    expect(await resolver.mx("a.test")).toEqual({ kind: "found", records });
  });

  test("shows what is not printable in a name as zone files do", async () => {
    server.zone.set("a.test", [{ type: "MX", value: "m\0x\n\u00fc\\.test", priority: 1 }]);
    const records = [{ exchange: "m\\000x\\010\\252\\092.test", priority: 1 }];
    expect(await resolver.mx("a.test")).toEqual({ kind: "found", records });
  });

  test("follows a pointer to a name behind the first 256 bytes", () => {
    const question = encodeQuestion(1, "a.test", "MX").subarray(0, 12 + 8 + 4);
    question.writeUInt16BE(0x8180, 2);
    question.writeUInt16BE(2, 6);
    question.writeUInt16BE(0, 10);
    const record = (data: Buffer) => {
      // Its name is the question's; then MX, IN, and a time to live.
      const head = Buffer.from("c00c000f00010000003c0000", "hex");
      head.writeUInt16BE(data.length, 10);
      return Buffer.concat([head, data]);
    };
    const name = (text: string) =>
      Buffer.concat(text.split(".").map((label) => Buffer.concat([Buffer.of(label.length), Buffer.from(label)])));
    const long = name(Array(4).fill("x".repeat(59)).join("."));
    const first = record(Buffer.concat([Buffer.of(0, 10), long, name("mail"), Buffer.of(0)]));
    const at = question.length + 12 + 2 + long.length;
    expect(at).toBeGreaterThan(256);
    const second = record(Buffer.from([0, 20, 0xc0 + Math.floor(at / 256), at % 256]));
    const { answers } = decodeReply(Buffer.concat([question, first, second]));
    expect(answers[1]).toEqual({ name: "a.test", type: "MX", priority: 20, exchange: "mail" });
  });

  test("takes no name that is longer than names can be", async () => {
    server.zone.set("a.test", [{ type: "MX", value: Array(6).fill("x".repeat(60)).join("."), priority: 1 }]);
    expect(await resolver.mx("a.test")).toMatchObject({ kind: "unanswered" });
  });

  test("tells a name that does not exist and one without such records from one that nobody answered for", async () => {
    server.zone.set("mx-only.test", [{ type: "MX", value: "m.test", priority: 1 }]);
    expect(await resolver.txt("nowhere.test")).toEqual({ kind: "absent" });
    expect(await resolver.txt("mx-only.test")).toEqual({ kind: "absent" });
  });

  test.each([
    ["servfail", "SERVFAIL"],
    ["refused", "refused"],
    ["silent", "no answer in time"],
    ["garbage", "no answer in time"],
  ] as const)("says that a server that is %s did not answer, after having asked twice", async (misbehaviour, why) => {
    server.zone.set("a.test", [{ type: "TXT", value: "v" }]);
    server.misbehaviours.set("a.test", misbehaviour);
    expect(await resolver.txt("a.test")).toEqual({ kind: "unanswered", why: expect.stringContaining(why) });
    expect(server.asked).toEqual(["a.test", "a.test"]);
  });

  test("takes no answer that bears another question's number", async () => {
    server.zone.set("a.test", [{ type: "TXT", value: "true" }]);
    server.misbehaviours.set("a.test", "forged");
    expect(await resolver.txt("a.test")).toEqual({ kind: "found", records: ["true"] });
  });

  test("asks over TCP for what does not fit into a datagram", async () => {
    server.zone.set("a.test", [{ type: "TXT", value: "v".repeat(4_000) }]);
    server.misbehaviours.set("a.test", "truncated");
    expect(await resolver.txt("a.test")).toEqual({ kind: "found", records: ["v".repeat(4_000)] });
  });

  test("follows aliases, also where the server leaves that to it", async () => {
    server.zone.set("a.test", [{ type: "CNAME", value: "B.test" }]);
    server.zone.set("b.test", [{ type: "CNAME", value: "c.test" }]);
    server.zone.set("c.test", [{ type: "TXT", value: "v" }]);
    expect(await resolver.txt("a.test")).toEqual({ kind: "found", records: ["v"] });
    server.followsAliases = false;
    expect(await resolver.txt("a.test")).toEqual({ kind: "found", records: ["v"] });
  });

  test("does not follow aliases round and round", async () => {
    server.zone.set("a.test", [{ type: "CNAME", value: "b.test" }]);
    server.zone.set("b.test", [{ type: "CNAME", value: "a.test" }]);
    server.followsAliases = false;
    expect(await resolver.txt("a.test")).toEqual({ kind: "unanswered", why: expect.stringContaining("alias") });
  });

  test("goes on to the next server when one is away", async () => {
    server.zone.set("a.test", [{ type: "TXT", value: "v" }]);
    const away = `127.0.0.1:${await freePort()}`;
    expect(await createResolver([away, server.address]).txt("a.test")).toEqual({ kind: "found", records: ["v"] });
  });

  test("remembers nothing: a record that was corrected is seen at once", async () => {
    server.zone.set("a.test", [{ type: "TXT", value: "old" }]);
    await resolver.txt("a.test");
    server.zone.set("a.test", [{ type: "TXT", value: "new" }]);
    expect(await resolver.txt("a.test")).toEqual({ kind: "found", records: ["new"] });
  });

  test("asks nobody for a name that cannot be one", async () => {
    const name = `${"x".repeat(64)}.test`;
    expect(await resolver.txt(name)).toEqual({ kind: "unanswered", why: expect.stringContaining("too long") });
    expect(server.asked).toEqual([]);
  });
});

test("no bytes from the network do more than fail to be a reply", () => {
  const random = new SeededRandom(7);
  const question = encodeQuestion(1, "a.test", "TXT");
  for (let nth = 0; nth < 20_000; nth += 1) {
    const bytes = Buffer.concat([question, Buffer.from(random.fill(new Uint8Array(nth % 60)))]);
    bytes[2] = 0x80;
    bytes[7] = nth % 4;
    bytes[12 + (nth % 20)] = random.fill(new Uint8Array(1))[0] ?? 0;
    try {
      decodeReply(bytes);
    } catch (error) {
      expect(error).toBeInstanceOf(DnsFormatError);
    }
  }
});
