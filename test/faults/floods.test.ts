import { afterEach, expect, test } from "bun:test";
import { connect } from "node:net";
import { startFlood } from "../support/flood.ts";
import type { LoadTenant } from "../support/load.ts";
import { recordProof } from "../support/proof.ts";
import type { ScriptedRelay } from "../support/scripted-relay.ts";
import { type SteadyResult, sendSteadily } from "../support/steady-sender.ts";
import type { Waybill } from "../support/waybill.ts";
import { boundMs, FaultWorld, mebibytes, readSize, residentBytes, TEST_LIMIT_MS, watchHealth } from "./fault-world.ts";

const SECONDS = readSize("FLOOD_SECONDS", 5);
const MEBIBYTE = 1024 * 1024;
/**
 * On two cores that the flood and other tests share. Without a flood it is a millisecond; where one tenant's bodies may
 * take all memory, it is seconds.
 */
const ACCEPT_MS_P50_MAX = 1_000;
const HAND_OVER_MS_MAX = 5_000;

let world = new FaultWorld();

afterEach(async () => {
  await world.undo.run();
  world = new FaultWorld();
}, 90_000);

interface Neighbourhood {
  readonly waybill: Waybill;
  readonly relay: ScriptedRelay;
  readonly neighbour: LoadTenant;
  /** Its limit is ten requests a minute. */
  readonly limited: LoadTenant;
  /** It has the same limit as the neighbour. */
  readonly hostile: LoadTenant;
  readonly alone: SteadyResult;
}

const load = (neighbour: LoadTenant) => ({ tenants: [neighbour], perSecond: 10, patienceMs: 10_000 });

async function neighbourhood(): Promise<Neighbourhood> {
  const relay = await world.relay();
  const wanted = [{ id: "neighbour" }, { id: "limited", plan: "limited" as const }, { id: "hostile" }];
  const { home, tenants } = await world.seededHome(wanted);
  const waybill = await world.start(home, { SMTP_URL: relay.url() });
  const [neighbour, limited, hostile] = tenants;
  if (neighbour === undefined || limited === undefined || hostile === undefined) throw new Error("three tenants");
  const alone = await sendSteadily(waybill, relay, { ...load(neighbour), name: "alone", seconds: 3 });
  return { waybill, relay, neighbour, limited, hostile, alone };
}

function record(fault: string, { alone }: Neighbourhood, beside: SteadyResult, note = ""): void {
  recordProof({
    fault,
    accepted: beside.accepted,
    lost: beside.missing,
    neighbourMs: beside.handOverMs.max,
    neighbourRatio: beside.handOverMs.p99 / alone.handOverMs.p99,
    note: `a neighbour is accepted in ${beside.acceptMs.p50} ms (p50), alone ${alone.acceptMs.p50} ms${note}`,
  });
}

function expectUndisturbed({ alone }: Neighbourhood, beside: SteadyResult): void {
  expect(beside.accepted).toBe(beside.asked);
  expect(beside.missing).toBe(0);
  expect(beside.acceptMs.p50).toBeLessThan(boundMs(ACCEPT_MS_P50_MAX, alone.acceptMs.p50));
  expect(beside.handOverMs.max).toBeLessThan(boundMs(HAND_OVER_MS_MAX, alone.handOverMs.max));
}

test(
  "a limited tenant's flood of large bodies does not slow another tenant",
  async () => {
    const here = await neighbourhood();
    const { waybill, relay, neighbour, limited } = here;
    const flood = world.undo.add(
      await startFlood({
        url: `${waybill.url}/v1/send/email`,
        apiKeys: [limited.apiKey],
        content: "text",
        bytes: 8 * MEBIBYTE,
        rate: { connections: readSize("FLOOD_CONNECTIONS", 50), pauseMs: 200 },
      }),
      (one) => one.stop(),
    );
    const beside = await sendSteadily(waybill, relay, { ...load(neighbour), name: "beside", seconds: SECONDS });
    const statuses = await flood.stop();
    record(
      "a limited tenant's flood of 8 MiB bodies, 50 at a time",
      here,
      beside,
      `; flood ${JSON.stringify(statuses)}`,
    );
    expectUndisturbed(here, beside);
  },
  TEST_LIMIT_MS,
);

test(
  "bodies that are cheap to send and expensive to read do not slow another tenant",
  async () => {
    const here = await neighbourhood();
    const { waybill, relay, neighbour, hostile } = here;
    const flood = world.undo.add(
      await startFlood({
        url: `${waybill.url}/v1/send/email`,
        apiKeys: [hostile.apiKey],
        content: "objects",
        bytes: 10 * MEBIBYTE,
        rate: { perSecond: 3 },
      }),
      (one) => one.stop(),
    );
    const beside = await sendSteadily(waybill, relay, { ...load(neighbour), name: "beside", seconds: SECONDS });
    const statuses = await flood.stop();
    record("three requests a second of 10 MiB of {}", here, beside, `; flood ${JSON.stringify(statuses)}`);
    expectUndisturbed(here, beside);
  },
  TEST_LIMIT_MS,
);

test(
  "bodies that never end fill no memory, and slow no other tenant",
  async () => {
    const here = await neighbourhood();
    const { waybill, relay, neighbour, limited } = here;
    const beforeBytes = await residentBytes(waybill.pid);
    const bodies = readSize("SLOW_BODIES", 40);
    const part = Buffer.alloc(9 * MEBIBYTE, "x");
    const { hostname, port } = new URL(waybill.url);
    for (let i = 0; i < bodies; i += 1) {
      const socket = world.undo.add(connect(Number(port), hostname), (one) => one.destroy());
      // The server may refuse the rest of it.
      socket.on("error", () => {});
      socket.write(
        `POST /v1/send/email HTTP/1.1\r\nHost: ${hostname}\r\nX-API-Key: ${limited.apiKey}\r\n` +
          `Content-Type: application/json\r\nContent-Length: ${10 * MEBIBYTE}\r\n\r\n{"data":"`,
      );
      socket.write(part);
    }
    const beside = await sendSteadily(waybill, relay, { ...load(neighbour), name: "beside", seconds: SECONDS });
    const grownBytes = (await residentBytes(waybill.pid)) - beforeBytes;
    record(`${bodies} bodies of 10 MiB that never end`, here, beside, `; memory grew by ${mebibytes(grownBytes)} MiB`);
    expectUndisturbed(here, beside);
    expect(mebibytes(grownBytes)).toBeLessThan(200);
  },
  TEST_LIMIT_MS,
);

test(
  "bodies in chunks of one byte fill no memory, and slow no other tenant, whether anybody knows their sender or not",
  async () => {
    const here = await neighbourhood();
    const { waybill, relay, neighbour, hostile } = here;
    const beforeBytes = await residentBytes(waybill.pid);
    const connections = readSize("CRUMBLED_BODIES", 20);
    const heads = [
      `POST /webhook/whatsapp HTTP/1.1\r\nX-Hub-Signature-256: sha256=${"a".repeat(64)}`,
      `POST /v1/send/email HTTP/1.1\r\nX-API-Key: ${hostile.apiKey}\r\nContent-Type: application/json`,
    ];
    const crumbs = Buffer.from(`${"1\r\nx\r\n".repeat(3_000_000)}0\r\n\r\n`);
    const health = watchHealth(waybill);
    for (let i = 0; i < connections; i += 1) {
      const { hostname, port } = new URL(waybill.url);
      const socket = world.undo.add(connect(Number(port), hostname), (one) => one.destroy());
      // The server refuses the rest of it.
      socket.on("error", () => {});
      socket.write(`${heads[i % heads.length]}\r\nHost: ${hostname}\r\nTransfer-Encoding: chunked\r\n\r\n`);
      socket.write(crumbs);
    }
    const beside = await sendSteadily(waybill, relay, { ...load(neighbour), name: "beside", seconds: 2 * SECONDS });
    const healthMs = await health.stop();
    const grownBytes = (await residentBytes(waybill.pid)) - beforeBytes;
    record(
      `${connections} bodies of 3 MB in chunks of one byte`,
      here,
      beside,
      `; memory grew by ${mebibytes(grownBytes)} MiB, /health took at most ${Math.round(healthMs)} ms`,
    );
    expect(mebibytes(grownBytes)).toBeLessThan(200);
    expectUndisturbed(here, beside);
    expect(healthMs).toBeLessThan(boundMs(HAND_OVER_MS_MAX, here.alone.acceptMs.max));
  },
  TEST_LIMIT_MS,
);
