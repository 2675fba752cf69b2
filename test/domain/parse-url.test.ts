import { describe, expect, test } from "bun:test";
import { parseUrl } from "../../src/domain/texts/parse-url.ts";

const accents = "\u0301\u0323".repeat(250_000);
const escaped = "%CC%81%CC%A3".repeat(100_000);

describe("an address", () => {
  test.each([
    `http://a${accents}/`,
    `http://a${escaped}/`,
    `https:a${accents}`,
    `\0 ht\ntps:\\\t/${accents}`,
    `ftp://user@a${accents}:21`,
    `http://a@b@${"ü".repeat(64)}.test/`,
    `http://${"a.".repeat(200)}test/`,
  ])(
    "whose host no resolver takes is none, and that is found in time",
    (text) => expect(parseUrl(text)).toBeNull(),
    5_000,
  );

  test.each([
    "https://example.com/",
    `https://${"a".repeat(63)}.${"b".repeat(63)}.example:8443/`,
    `https://${encodeURIComponent("московскаябиржа")}.${encodeURIComponent("рф")}/`,
    `https://b${"\u00ad".repeat(500)}it.ly/x`,
    `https://b${encodeURIComponent("\u200b".repeat(100))}it.ly/x`,
    `https://${"Việt".normalize("NFD").repeat(12)}.example/`,
    `https://${"user".repeat(100)}@example.com/${"a".repeat(500)}`,
    "https://[2001:db8::1]:8443/",
    "https://bücher.example./?q=1#x",
    "HTTPS:\\\\example.com\\a",
    "\n https://exa\tmple.com ",
    `mailto:${"a".repeat(500)}@example.com`,
    `javascript:${"a".repeat(500)}`,
    `data:text/html,${"é".repeat(500)}`,
    "no address",
    "http://",
    "",
  ])("is otherwise what it always is: %j", (text) => expect(parseUrl(text)?.href).toBe(URL.parse(text)?.href));
});
