import { expect, test } from "bun:test";
import { extractHost, isLoopback } from "../../src/domain/texts/host.ts";

const CASES: readonly [host: string, isHere: boolean][] = [
  ["localhost", true],
  ["LOCALHOST", true],
  ["127.0.0.1", true],
  ["127.8.9.10", true],
  ["::1", true],
  ["::ffff:127.0.0.1", true],
  [extractHost(new URL("http://[::ffff:127.0.0.1]")), true],
  [extractHost(new URL("http://[0:0:0:0:0:0:0:1]")), true],
  ["::ffff:7e00:1", false],
  ["::ffff:10.0.0.1", false],
  ["127.example.org", false],
  ["localhost.example.org", false],
  ["10.0.0.1", false],
  ["169.254.1.1", false],
  ["::2", false],
  ["", false],
];

test.each(CASES)("whether %p is this machine: %p", (host, isHere) => {
  expect(isLoopback(host)).toBe(isHere);
});
