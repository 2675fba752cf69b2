import { expect, test } from "bun:test";
import { Connections } from "../../../../src/channels/email/submission/connections.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";

function full(tenants: number): Connections {
  const connections = new Connections(new VirtualClock());
  for (let n = 0; n < 256; n += 1) {
    connections.enter(`c${n}`, `10.0.${n % 16}.${n}`);
    if (n < tenants) connections.logIn(`c${n}`, `tenant-${n % 16}`);
  }
  return connections;
}

test("a newcomer replaces the oldest connection that nobody has logged in on", () => {
  const connections = full(100);
  expect(connections.enter("new", "192.0.2.1")).toBe("c100");
  expect(connections.enter("newer", "192.0.2.1")).toBe("c101");
  expect(connections.size).toBe(256);
});

test("where everybody has logged in, a newcomer is told to come back", () => {
  const connections = full(256);
  expect(() => connections.enter("new", "192.0.2.1")).toThrow("4.7.0 too many connections are open");
  connections.leave("c7");
  expect(connections.enter("new", "192.0.2.1")).toBeNull();
});

test("a tenant has at most 32 connections, wherever they come from", () => {
  const connections = new Connections(new VirtualClock());
  for (let n = 0; n < 33; n += 1) connections.enter(`c${n}`, `10.0.0.${n}`);
  for (let n = 0; n < 32; n += 1) connections.logIn(`c${n}`, "acme");
  expect(() => connections.logIn("c32", "acme")).toThrow("4.7.0 too many connections of yours are open");
  connections.logIn("c32", "beta");
});

test("of an address that has 32 without a login, a newcomer replaces the oldest one, and none of another address", () => {
  const connections = new Connections(new VirtualClock());
  connections.enter("elsewhere", "192.0.2.2");
  for (let n = 0; n < 33; n += 1) {
    expect(connections.enter(`c${n}`, "192.0.2.1")).toBeNull();
    if (n === 0) connections.logIn("c0", "acme");
  }
  expect(connections.enter("new", "192.0.2.1")).toBe("c1");
  expect(connections.enter("newer", "192.0.2.1")).toBe("c2");
  expect(connections.size).toBe(34);
});

test("an IPv6 network of /64 counts as one address", () => {
  const connections = new Connections(new VirtualClock());
  for (let n = 0; n < 32; n += 1) connections.enter(`c${n}`, `2001:db8:1:2::${n + 1}`);
  expect(connections.enter("c32", "2001:db8:1:3::1")).toBeNull();
  expect(connections.enter("c33", "2001:db8:1:2:ffff::1")).toBe("c0");
});
