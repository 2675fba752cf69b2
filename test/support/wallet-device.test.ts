import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { WalletDevice } from "./wallet-device.ts";

/** A service that follows the test's script, even against the protocol. */
let listing: () => Response;
let latest: (request: Request) => Response;
const logged: string[] = [];
let server: Bun.Server<undefined>;

beforeAll(() => {
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => {
      const { pathname } = new URL(request.url);
      if (pathname.endsWith("/log")) {
        logged.push(...JSON.parse(await request.text()).logs);
        return new Response();
      }
      if (request.method === "POST") return new Response(null, { status: 201 });
      return pathname.includes("/registrations/") ? listing() : latest(request);
    },
  });
});
beforeEach(() => {
  logged.length = 0;
});
afterAll(() => server.stop(true));

const listed = (serials: readonly string[], lastUpdated?: string) => () =>
  Response.json({ serialNumbers: serials, lastUpdated });
const fresh = (modified: string | null) => () =>
  new Response("new", { headers: modified === null ? {} : { "last-modified": modified } });
const [MONDAY, TUESDAY] = ["Mon, 16 Nov 2026 07:00:00 GMT", "Tue, 17 Nov 2026 07:00:00 GMT"];

async function aDevice(): Promise<WalletDevice> {
  const device = new WalletDevice("device-1", "aa");
  const serviceUrl = `http://127.0.0.1:${server.port}/wallet`;
  const bytes = new Uint8Array([1]);
  await device.add({ passTypeId: "pass.a", serial: "S1", authenticationToken: "t", serviceUrl, bytes });
  return device;
}

async function pushed(device: WalletDevice): Promise<void> {
  device.push("pass.a");
  await device.idle();
}

test("a device complains of nothing when each push brings a new pass", async () => {
  const device = await aDevice();
  for (const [tag, modified] of [
    ["1", MONDAY],
    ["2", TUESDAY],
  ] as const) {
    listing = listed(["S1"], tag);
    latest = fresh(modified);
    await pushed(device);
    device.nothingIsInFlight();
  }
  expect([device.complaints, logged, device.fetches]).toEqual([[], [], 2]);
});

test.each([
  ["a push for nothing", () => () => new Response(null, { status: 204 }), fresh(MONDAY), "spurious push"],
  ["a listing without a tag", () => listed(["S1"]), fresh(TUESDAY), "omitted a lastUpdated tag"],
  ["a tag that stays", () => listed(["S1"], "1"), fresh(TUESDAY), "remained the same"],
  ["a pass that it has not", () => listed(["S2"], "2"), fresh(TUESDAY), "unregistered serial number"],
  ["a pass without a date", () => listed(["S1"], "2"), fresh(null), "'last-modified' header"],
  ["a pass that it had", () => listed(["S1"], "2"), fresh(MONDAY), "ignored the 'if-modified-since'"],
  ["a pass that has not changed", () => listed(["S1"], "2"), () => new Response(null, { status: 304 }), "unchanged"],
] as const)("a device complains of %s, in Apple's words, to the service", async (_, listingOf, latestOf, words) => {
  const device = await aDevice();
  listing = listed(["S1"], "1");
  latest = fresh(MONDAY);
  await pushed(device);
  device.nothingIsInFlight();
  listing = listingOf();
  latest = latestOf;
  await pushed(device);
  expect(device.complaints).toEqual([expect.stringContaining(words)]);
  expect(logged).toEqual(device.complaints);
});

test("a device forgives a push that is late, and a pass that it had early, once each", async () => {
  const device = await aDevice();
  listing = listed(["S1"], "1");
  latest = fresh(MONDAY);
  await pushed(device);
  listing = listed(["S1"], "2");
  latest = () => new Response(null, { status: 304 });
  await pushed(device);
  listing = () => new Response(null, { status: 204 });
  await pushed(device);
  expect(device.complaints).toEqual([]);
  await pushed(device);
  listing = listed(["S1"], "3");
  await pushed(device);
  expect(device.complaints).toEqual([expect.stringContaining("spurious"), expect.stringContaining("unchanged")]);
});
