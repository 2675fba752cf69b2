import { expect, test } from "bun:test";
import { resolveNameServers } from "../../../src/channels/email/wiring/name-servers.ts";
import { ConfigurationError } from "../../../src/domain/errors.ts";

test("a name server's name stands for its addresses, with its port; an address is left as it is", async () => {
  const servers = await resolveNameServers({ dnsServers: ["10.0.0.2:53", "localhost:5353", "[::1]:53"] });
  expect([servers.at(0), servers.at(-1)]).toEqual(["10.0.0.2:53", "[::1]:53"]);
  const found = servers.slice(1, -1);
  expect(found).toContain("127.0.0.1:5353");
  for (const server of found) expect(["127.0.0.1:5353", "[::1]:5353"]).toContain(server);
});

test("a name without an address is a mistake of DNS_SERVERS", async () => {
  const error = await resolveNameServers({ dnsServers: ["no-such.invalid:53"] }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ConfigurationError);
  expect(String(error)).toContain('DNS_SERVERS names "no-such.invalid:53"; its host should be a name with an address');
});
