import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { getServers, setServers } from "node:dns";
import { readFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { NetworkGuard } from "../../src/runtime/network-guard.ts";
import { DnsServer } from "../support/dns-server.ts";
import { eventually } from "../support/eventually.ts";

const open = new NetworkGuard({ allow: [], publicAllowed: true });
const sandboxed = new NetworkGuard({ allow: ["127.0.0.0/8", "::1/128"], publicAllowed: false });

describe("the guard of outgoing connections", () => {
  test.each(["8.8.8.8", "192.0.1.1", "172.32.0.1", "2606:4700::1111", "2a00:1450::1"])(
    "lets %s through",
    async (address) => {
      expect(await open.routeTo(address)).toEqual({
        kind: "allowed",
        address,
        addresses: [address],
        configured: false,
      });
    },
  );

  // biome-ignore format: a list of addresses
  test.each([
    "0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1",
    "192.0.2.1", "192.168.0.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "255.255.255.255", "::", "::1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:a9fe:a9fe", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1", "100::1",
    "2001::1", "2001:db8::1", "2002:7f00:1::", "fc00::1", "fd12::1", "fe80::1", "fec0::1", "ff02::1",
    "::ffff:0:7f00:1", "::ffff:0:808:808", "::ffff:8.8.8.8", "64:ff9b::808:808", "2001:0:4136:e378::1", "2002:808:808::1",
    "3fff::1", "3ffe::1", "4000::1", "5f00::1", "1fff::1", "fd00:ec2::254", "fe80::1%lo", "2606:4700::1111%lo",
    "168.63.129.16",
  ])("keeps %s away, which is not on the public Internet", async (address) => {
    expect(await open.routeTo(address)).toMatchObject({ kind: "refused" });
  });

  test("looks names up, and judges their addresses", async () => {
    expect(await open.routeTo("localhost")).toMatchObject({ kind: "refused" });
    expect(await sandboxed.routeTo("localhost")).toMatchObject({ kind: "allowed" });
  });

  test.each(["127.1", "0x7f.1", "0x7f000001", "2130706433", "017700000001", "0", "127.0.0.1.", "localhost."])(
    "keeps %s away, which some software reads as an address of this machine",
    async (host) => {
      expect((await open.routeTo(host)).kind).not.toBe("allowed");
    },
  );

  test("lets a name through only where all of its addresses are allowed, and names the one to connect to", async () => {
    const createGuard = (...addresses: readonly string[]) =>
      new NetworkGuard({ allow: [], publicAllowed: true, resolveHost: async () => addresses });
    expect(await createGuard("8.8.8.8", "1.1.1.1").routeTo("a.test")).toMatchObject({
      kind: "allowed",
      address: "8.8.8.8",
      addresses: ["8.8.8.8", "1.1.1.1"],
    });
    expect(await createGuard("8.8.8.8", "127.0.0.1").routeTo("a.test")).toMatchObject({ kind: "refused" });
    expect(await createGuard().routeTo("a.test")).toMatchObject({ kind: "refused" });
  });

  test.each([
    ["DNS_ENOTFOUND", "refused"],
    ["DNS_ENODATA", "refused"],
    ["DNS_ESERVFAIL", "unanswered"],
    ["DNS_ETIMEOUT", "unanswered"],
  ] as const)("tells a name that does not exist from one that nobody answered for: %s", async (code, kind) => {
    const rejectLookup = () => Promise.reject(Object.assign(new Error(code), { code }));
    const guard = new NetworkGuard({ allow: [], publicAllowed: true, resolveHost: rejectLookup });
    expect(await guard.routeTo("a.test")).toMatchObject({ kind });
  });

  test("lets only allowed networks through if nothing may leave the machine", async () => {
    for (const address of ["127.0.0.1", "::1"]) {
      const route = { kind: "allowed", address, addresses: [address], configured: true } as const;
      expect(await sandboxed.routeTo(address)).toEqual(route);
    }
    expect(await sandboxed.routeTo("8.8.8.8")).toMatchObject({ kind: "refused" });
    expect(await sandboxed.routeTo("10.0.0.1")).toMatchObject({ kind: "refused" });
  });

  test("allows a network that it is given", async () => {
    const inside = new NetworkGuard({ allow: ["10.2.0.0/16", "fd00::/8"], publicAllowed: true });
    expect(await inside.routeTo("10.2.3.4")).toMatchObject({ kind: "allowed" });
    expect(await inside.routeTo("10.3.3.4")).toMatchObject({ kind: "refused" });
    expect(await inside.routeTo("fd00::5")).toMatchObject({ kind: "allowed" });
  });
});

describe("its lookups", () => {
  const former = getServers();
  let server: DnsServer;

  beforeAll(async () => {
    server = await DnsServer.start();
    setServers([server.address]);
  });

  afterAll(async () => {
    setServers(former);
    await server.stop();
  });

  test("tell an address, a name without one, a name that does not exist and a server that cannot say apart", async () => {
    server.zone.set("public.example", [{ type: "A", value: "8.8.8.8" }]);
    server.zone.set("alias.example", [{ type: "CNAME", value: "public.example" }]);
    server.zone.set("inside.example", [{ type: "A", value: "10.1.2.3" }]);
    server.zone.set("mail-only.example", [{ type: "MX", value: "mx.example", priority: 10 }]);
    server.misbehaviours.set("broken.example", "servfail");
    expect(await open.routeTo("public.example")).toMatchObject({ kind: "allowed", addresses: ["8.8.8.8"] });
    expect(await open.routeTo("alias.example")).toMatchObject({ kind: "allowed", addresses: ["8.8.8.8"] });
    expect(await open.routeTo("inside.example")).toMatchObject({ kind: "refused", cause: "forbidden" });
    expect(await open.routeTo("mail-only.example")).toMatchObject({ kind: "refused", cause: "absent" });
    expect(await open.routeTo("nowhere.example")).toMatchObject({ kind: "refused", cause: "absent" });
    expect(await open.routeTo("broken.example")).toMatchObject({ kind: "unanswered" });
  });

  test("that nobody answers hold up nothing else, however many there are", async () => {
    server.zone.set("quick.example", [{ type: "A", value: "8.8.8.8" }]);
    const names = Array.from({ length: 8 * availableParallelism() }, (_, at) => `silent-${at}.example`);
    for (const name of names) server.misbehaviours.set(name, "silent");
    let answered = 0;
    const waiting = names.map((name) => open.routeTo(name).finally(() => (answered += 1)));
    await eventually("each of them is asked", () => names.every((name) => server.asked.includes(name)));
    expect(await readFile(import.meta.path, "utf8")).toContain("hold up nothing else");
    expect(await open.routeTo("quick.example")).toMatchObject({ kind: "allowed" });
    expect(answered).toBe(0);
    // The look-up is repeated before it is given up.
    for (const name of names) server.misbehaviours.delete(name);
    for (const route of await Promise.all(waiting)) expect(route).toMatchObject({ kind: "refused", cause: "absent" });
  });
});
