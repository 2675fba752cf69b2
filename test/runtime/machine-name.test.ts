import { expect, test } from "bun:test";
import { machineName } from "../../src/runtime/machine-name.ts";

const HOSTS = `127.0.0.1 localhost.localdomain localhost
127.0.1.1\tMail-1.Example.com mail-1 # the name of this machine
192.0.2.9 box.example.net box-alias
::1 ip6-localhost`;

test.each([
  ["a name with dots is the full one", "MX.example.org", "mx.example.org"],
  ["the hosts file completes a short one", "mail-1", "mail-1.example.com"],
  ["a name that the file does not know stays without", "elsewhere", null],
  ["a canonical name does not complete itself", "box", null],
  ["localhost.localdomain names no machine", "localhost", null],
  ["nor does the kernel's", "localhost.localdomain", null],
])("%s", (_what, name, full) => {
  expect(machineName(name, HOSTS)).toBe(full);
});
