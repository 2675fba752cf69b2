import { describe, expect, test } from "bun:test";
import { webhookUrlRefusal } from "../../../src/channels/wallet/webhook-endpoint.ts";
import { NetworkGuard } from "../../../src/runtime/network-guard.ts";

const resolveAddresses = async (host: string) => {
  if (host === "localhost") return ["127.0.0.1"];
  if (host === "receiver.internal") return ["10.1.2.3"];
  throw Object.assign(new Error("not found"), { code: "ENOTFOUND" });
};
const live = new NetworkGuard({ allow: [], publicAllowed: true, resolveHost: resolveAddresses });
const office = new NetworkGuard({ allow: ["10.0.0.0/8"], publicAllowed: true, resolveHost: resolveAddresses });
const sandbox = new NetworkGuard({
  allow: ["127.0.0.0/8", "::1/128"],
  publicAllowed: false,
  resolveHost: resolveAddresses,
});

describe("a tenant's webhook address", () => {
  test.each([
    ["https://hooks.example.com/devices?k=1", live],
    ["https://hooks.example.com:8443", live],
    [`https://hooks.example.com/${"x".repeat(2_048 - 26)}`, live],
    ["https://1.1.1.1/x", live],
    ["https://bücher.example/x", live],
    ["http://10.1.2.3:8080/x", office],
    ["http://receiver.internal:8080/x", office],
    ["http://127.0.0.1:4000/hook", sandbox],
    ["http://localhost:4000/hook", sandbox],
    ["http://[::1]:4000/hook", sandbox],
    // Whether a server is there is found out when it is called.
    ["https://hooks.example.com/", sandbox],
  ])("is taken: %s", async (url, guard) => {
    expect(await webhookUrlRefusal(url, guard)).toBeNull();
  });

  // biome-ignore format: a list of addresses
  test.each([
    "", "hooks.example.com", "/devices", "https://", "https:///x", "ftp://hooks.example.com/", "javascript:alert(1)",
    "https://hooks.example.com/a b", "https://hooks.example.com/\n", "https://user@hooks.example.com/",
    "https://:pw@hooks.example.com/", "https://hooks.example.com/#x", "https://hooks.example.com:25/",
    `https://hooks.example.com/${"x".repeat(2_048 - 25)}`,
    "http://hooks.example.com/", "http://1.1.1.1/", "http://localhost/", "https://localhost/", "https://localhost./",
    "https://a.localhost/", "https://receiver.internal/", "https://printer.local/", "https://intranet/",
    "https://127.0.0.1/", "https://0x7f.1/", "https://2130706433/", "https://127.1/", "https://017700000001/",
    "https://①②⑦.0.0.1/", "https://0/", "https://169.254.169.254/latest/meta-data/", "https://10.0.0.1/",
    "https://[::1]/", "https://[::ffff:127.0.0.1]/", "https://[64:ff9b::7f00:1]/", "https://[fd00::1]/",
  ])("is refused where it leads to no public receiver over https: %s", async (url) => {
    expect(await webhookUrlRefusal(url, live)).toMatchObject({
      status: 400,
      message: expect.stringMatching(/^the field "wallet_webhook_url" .{10,}/),
    });
  });

  test("may be in the networks that are allowed, and in no others", async () => {
    expect(await webhookUrlRefusal("http://127.0.0.1:4000/", office)).toMatchObject({ status: 400 });
    expect(await webhookUrlRefusal("http://10.1.2.3/", sandbox)).toMatchObject({ status: 400 });
  });
});
