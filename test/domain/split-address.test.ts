import { expect, test } from "bun:test";
import { extractDomain, splitAddress } from "../../src/domain/texts/split-address.ts";

const CASES: readonly [text: string, local: string | null, domain: string][] = [
  ["jane@example.com", "jane", "example.com"],
  ['"a@b"@Example.com', '"a@b"', "Example.com"],
  ["@example.com", "", "example.com"],
  ["jane@", "jane", ""],
  ["4179123", null, "4179123"],
  ["", null, ""],
];

test.each(CASES)("%p is split at its last @", (text, local, domain) => {
  expect(splitAddress(text)).toEqual(local === null ? null : { local, domain });
  expect(extractDomain(text)).toBe(domain);
});
