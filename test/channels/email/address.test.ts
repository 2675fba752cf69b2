import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { parseAddress, parseRecipient } from "../../../src/domain/channels/email.ts";

const ATEXT = "abcXYZ019!#$%&'*+/=?^_`{|}~-";

describe("an address", () => {
  test.each([
    "ada@example.com",
    "a@b",
    "ada.lovelace+news@mail.example.co.uk",
    "!#$%&'*+/=?^_`{|}~-@example.com",
    "user@xn--bcher-kva.example",
    "user@1.2.3.example",
    "user@localhost.example",
    "user@notlocalhost",
    "user@127.0.0.1.example",
    "user@0x7f.example",
    '"ada lovelace"@example.com',
    '"ada@home"@example.com',
    '"a\\"b\\\\c"@example.com',
    '""@example.com',
    `${"a".repeat(64)}@example.com`,
    `a@${"b".repeat(63)}.example`,
  ])("in RFC 5321's syntax is accepted unchanged: %s", (text) => {
    expect(parseAddress(text)).toBe(text);
  });

  test.each([
    "",
    "@",
    "ada",
    "@example.com",
    "ada@",
    "ada@@example.com",
    "ada@home@example.com",
    ".ada@example.com",
    "ada.@example.com",
    "a..b@example.com",
    "ada lovelace@example.com",
    " ada@example.com",
    "ada@example.com ",
    "ada@example.com.",
    "ada@.example.com",
    "ada@example..com",
    "ada@-example.com",
    "ada@example-.com",
    "ada@exam_ple.com",
    "ada@exam ple.com",
    "ada@example.com,bob@example.com",
    "ada@example.com;bob@example.com",
    "ada@example.com, bob@example.com",
    "Ada <ada@example.com>",
    "<ada@example.com>",
    "ada(comment)@example.com",
    "ada@(comment)example.com",
    "friends: ada@example.com;",
    "@relay.example:ada@example.com",
    "ada%home@[evil",
    "user@[192.0.2.1]",
    "user@[127.0.0.1]",
    "user@[IPv6:::1]",
    "user@[IPv6:2001:db8::1]",
    "user@[IPv6:::ffff:127.0.0.1]",
    "user@[x-tag:content]",
    "user@127.0.0.1",
    "user@127.1",
    "user@2130706433",
    "user@0x7f000001",
    "user@0x7f.0x1",
    "user@a.0X7F",
    "user@localhost",
    "user@LocalHost",
    "user@mail.localhost",
    '"user"@[127.0.0.1]',
    "user@[]",
    '"ada@example.com',
    'ada"@example.com',
    '"ada"lovelace@example.com',
    '"a"b"@example.com',
    '"ada\\"@example.com',
    '"a<b"@example.com',
    '"a\\>b"@example.com',
    "ada@example.com\r\nBcc: eve@example.com",
    "ada\u0000@example.com",
    "ada@ex\u0430mple.com",
    "\u00e4da@example.com",
    "ada@b\u00fccher.example",
    `${"a".repeat(65)}@example.com`,
    `a@${"b".repeat(64)}.example`,
    `a@${"b.".repeat(126)}example`,
  ])("in any other form is refused: %j", (text) => {
    expect(parseAddress(text)).toBeNull();
  });

  test("loses unnecessary quotes, because a suppressed address must have one spelling", () => {
    expect(parseAddress('"ada"@example.com')).toBe("ada@example.com");
    expect(parseAddress('"a\\d\\a"@example.com')).toBe("ada@example.com");
    expect(parseAddress('"a\\ b"@example.com')).toBe('"a b"@example.com');
  });

  test("that was accepted is accepted again unchanged", () => {
    const local = fc.oneof(
      fc.string({ unit: fc.constantFrom(...ATEXT, "."), maxLength: 20 }),
      fc
        .string({ unit: fc.constantFrom(...ATEXT, " ", "@", '\\"', "\\\\", ","), maxLength: 20 })
        .map((text) => `"${text}"`),
    );
    const domain = fc.string({ unit: fc.constantFrom(..."ab1-."), maxLength: 20 });
    const address = fc.tuple(local, domain).map(([left, right]) => `${left}@${right}`);
    fc.assert(
      fc.property(address, (text) => {
        const taken = parseAddress(text);
        return taken === null || parseAddress(taken) === taken;
      }),
    );
  });

  test("is parsed quickly, whatever it looks like", () => {
    for (const text of [
      "a.".repeat(127),
      `"${"\\a".repeat(126)}`,
      `a@${"a-".repeat(126)}`,
      `a@[IPv6:${":".repeat(240)}]`,
    ]) {
      expect(parseAddress(text)).toBeNull();
    }
  });
});

describe("a recipient", () => {
  test.each([
    ["u\u0308ber@example.com", "über@example.com"],
    ["a@bu\u0308cher.example", "a@xn--bcher-kva.example"],
    ["\u1112\u1161\u11ab".repeat(21).concat("@x.test"), "\ud55c".repeat(21).concat("@x.test")],
  ])("keeps one spelling, however its letters and marks were written: %j", (text, address) => {
    expect(parseRecipient(text)).toBe(address);
  });

  test("is judged in time, however many accents are on one letter", () => {
    const accents = "\u0301\u0323".repeat(1_000_000);
    expect(parseRecipient(`a${accents}@example.com`)).toBeNull();
    expect(parseRecipient(`é@a${accents}.example`)).toBeNull();
    for (let n = 0; n < 1_000; n += 1) {
      expect(parseRecipient(`a${accents.slice(0, 120)}@x.test`)).toBeNull();
      expect(parseRecipient(`é@a${accents.slice(0, 240)}.test`)).toBeNull();
    }
  }, 5_000);
});
