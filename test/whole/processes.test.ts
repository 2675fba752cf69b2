import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { runCommand } from "../support/command.ts";
import { eventually } from "../support/eventually.ts";
import { isAlive } from "../support/is-alive.ts";
import { createTenants, finishedEvents, type LoadTenant } from "../support/load.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { Undo } from "../support/undo.ts";
import { startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

const HOOK_MS = 120_000;
const SPREAD = { PROCESSES: "api=2,dispatcher=2" };

/** The child processes of a start, by name. */
function findChildren({ pid }: Waybill): ReadonlyMap<string, number> {
  const { stdout } = Bun.spawnSync(["ps", "-ww", "-o", "pid=,args=", "--ppid", String(pid)]);
  const found = Array.from(stdout.toString().matchAll(/^\s*(\d+) .* child (\S+)$/gm));
  return new Map(found.map(([, child = "", name = ""]) => [name, Number(child)]));
}

/** Over a connection of its own, so that any of the processes may get it. */
function fresh(url: string, init: RequestInit = {}): Promise<Response> {
  return fetch(url, { ...init, keepalive: false, headers: { connection: "close", ...init.headers } });
}

describe("a start with two API processes and two dispatchers", () => {
  let home: Awaited<ReturnType<typeof temporaryHome>>;
  let waybill: Waybill;

  beforeAll(async () => {
    home = await temporaryHome();
    waybill = await startWaybill(home.path, SPREAD);
  }, HOOK_MS);

  afterAll(async () => {
    await waybill?.kill();
    await home?.remove();
  }, HOOK_MS);

  test("says what runs where", () => {
    const children = findChildren(waybill);
    expect([...children.keys()].sort()).toEqual(["api-1", "api-2", "dispatcher-1", "dispatcher-2"]);
    expect(waybill.screen).toContain(`main          recorder, stores (${waybill.pid})`);
    expect(waybill.screen).toContain(`api           2 (${children.get("api-1")}, ${children.get("api-2")})`);
  });

  test("every API process accepts messages, and shows the sandbox's messages and their outcomes", async () => {
    const jobIds: string[] = [];
    for (let n = 0; n < 20; n += 1) {
      const response = await fresh(`${waybill.url}/v1/send/email`, {
        method: "POST",
        headers: { "x-api-key": waybill.demoKey, "content-type": "application/json" },
        body: JSON.stringify({ to_address: `n${n}@fresh.test`, subject: "Hello", html: "<p>Hello</p>" }),
      });
      expect(response.status).toBe(202);
      jobIds.push(((await response.json()) as { job_id: string }).job_id);
    }
    await finishedEvents(waybill, { id: "demo", apiKey: waybill.demoKey }, jobIds, 30_000);
    const token = (await Bun.file(`${waybill.home}/operator-token`).text()).trim();
    for (let n = 0; n < 20; n += 1) {
      const path = `/dash/api/sandbox/messages?limit=5&to=n${n}@fresh.test`;
      const response = await fresh(`${waybill.url}${path}`, { headers: { authorization: `Bearer ${token}` } });
      expect(((await response.json()) as { messages: unknown[] }).messages).toHaveLength(1);
    }
  }, 300_000);

  test("devices' complaints to one process are readable from any other", async () => {
    const logs = [`one ${crypto.randomUUID()}`];
    await fresh(`${waybill.url}/wallet/v1/log`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ logs }),
    });
    for (let n = 0; n < 10; n += 1) {
      const { body } = await waybill.operator("GET", "/sandbox/device-log?limit=5");
      expect(body.complaints.map(({ message }: { message: string }) => message)).toEqual(logs);
    }
  });

  test("every API process serves exports, including those written by the engine", async () => {
    const token = (await Bun.file(`${waybill.home}/operator-token`).text()).trim();
    const day = new Date().toISOString().slice(0, 10);
    const yesterday = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
    for (const [format, begins] of [
      ["csv", "tenant_id,event_id"],
      ["parquet", "PAR1"],
    ] as const) {
      for (let n = 0; n < 8; n += 1) {
        const path = `/dash/api/export?format=${format}&from=${yesterday}&to=${day}`;
        const response = await fresh(`${waybill.url}${path}`, { headers: { authorization: `Bearer ${token}` } });
        expect(await response.text()).toStartWith(begins);
      }
    }
  });

  test("metrics cover all processes", async () => {
    for (let n = 0; n < 30; n += 1) await fresh(`${waybill.url}/health`);
    const text = await (await fresh(`${waybill.url}/metrics`)).text();
    expect(text).toContain('waybill_http_requests_total{route="health",method="GET",status="200"} 30');
    expect(text).toContain('waybill_shards_held{role="dispatcher"} 16');
    for (const name of ["api-1", "api-2", "dispatcher-1", "dispatcher-2"])
      expect(text).toContain(`waybill_child_up{process="${name}"} 1`);
  });

  test("wrong operator tokens from one address are counted together", async () => {
    const guess = { headers: { authorization: "Bearer wrong-wrong-wrong" } };
    let counted = 0;
    for (let n = 0; n < 30; n += 1) {
      const { status, headers } = await fresh(`${waybill.url}/dash/api/plans`, guess);
      expect(status).toBe(401);
      counted += Number(!headers.has("retry-after"));
      // Queries every process, over the channels that also announce a wrong token: by then they have received it.
      await (await fresh(`${waybill.url}/metrics`)).text();
    }
    // Ten in all, except for one in flight while the others were notified of it.
    expect(counted).toBeGreaterThanOrEqual(10);
    expect(counted).toBeLessThanOrEqual(12);
  });

  test("a child that hangs is replaced, and its shards are taken over", async () => {
    const before = findChildren(waybill);
    for (const name of ["api-1", "dispatcher-1"]) process.kill(before.get(name) ?? 0, "SIGKILL");
    await eventually(
      "both work again",
      async () => {
        const now = findChildren(waybill);
        if (["api-1", "dispatcher-1"].some((name) => [undefined, before.get(name)].includes(now.get(name))))
          return false;
        const { body } = await waybill.request("", "GET", "/ready").catch(() => ({ body: null }));
        return body?.status === "ready" && body.away === undefined;
      },
      90_000,
    );
    const text = await eventually("all shards are held", async () => {
      const said = await (await fresh(`${waybill.url}/metrics`)).text();
      return said.includes('waybill_shards_held{role="dispatcher"} 16') ? said : null;
    });
    expect(text).toContain('waybill_child_exits_total{process="api-1"} 1');
    // The former process's counts are not lost with it.
    expect(text).toMatch(/waybill_http_requests_total\{route="health",method="GET",status="200"\} 30/);
  }, 300_000);
});

describe("an accepted message", () => {
  const MESSAGES = 600;
  const undo = new Undo();
  let sink: SmtpSink;
  let home: Awaited<ReturnType<typeof temporaryHome>>;
  let waybill: Waybill;
  let tenants: readonly LoadTenant[];
  let accepted: Map<LoadTenant, string[]>;

  beforeAll(async () => {
    home = undo.add(await temporaryHome(), (one) => one.remove());
    sink = undo.add(await startSmtpSink(), (one) => one.stop());
    waybill = await startWaybill(home.path, { ...SPREAD, SMTP_URL: sink.url });
    undo.add(null, () => waybill.kill());
    tenants = await createTenants(waybill, 20);
  }, HOOK_MS);
  afterAll(() => undo.run(), HOOK_MS);
  beforeEach(() => {
    accepted = new Map(tenants.map((tenant) => [tenant, []]));
  });

  /** Sends until that many are accepted; meanwhile `disturb` is called once a third of them is. */
  async function sendWhile(disturb: () => Promise<void>): Promise<void> {
    const third = Promise.withResolvers<void>();
    let count = 0;
    let asked = 0;
    const send = async () => {
      while (count < MESSAGES) {
        const tenant = tenants[asked % tenants.length];
        asked += 1;
        if (tenant === undefined) return;
        const body = { to_address: `u${asked}@example.com`, subject: "Hello", html: "<p>Hello</p>" };
        const answer = await waybill.request(tenant.apiKey, "POST", "/v1/send/email", body).catch(() => null);
        // An unanswered request is not accepted.
        if (answer?.status !== 202) continue;
        accepted.get(tenant)?.push(answer.body.job_id);
        count += 1;
        if (count > MESSAGES / 3) third.resolve();
      }
    };
    const senders = Array.from({ length: 16 }, send);
    await third.promise;
    await disturb();
    await Promise.all(senders);
  }

  async function expectAllSent(): Promise<void> {
    for (const [tenant, jobIds] of accepted) {
      const { byJob, ids } = await finishedEvents(waybill, tenant, jobIds, 60_000);
      expect(new Set(ids).size).toBe(ids.length);
      for (const jobId of jobIds) expect(byJob.get(jobId)).toEqual(["sent"]);
    }
  }

  test("is sent and recorded once when an API process and a dispatcher are killed", async () => {
    await sendWhile(async () => {
      const before = findChildren(waybill);
      for (const name of ["api-2", "dispatcher-2"]) process.kill(before.get(name) ?? 0, "SIGKILL");
      await eventually("others are in their place", async () => findChildren(waybill).size === 4, 30_000);
    });
    await expectAllSent();
  }, 300_000);

  test("is sent and recorded once when the main process is killed, whose children end with it", async () => {
    await sendWhile(async () => {
      const children = [...findChildren(waybill).values()];
      expect(children).toHaveLength(4);
      await waybill.kill();
      await eventually("no child is left", async () => !children.some(isAlive));
      waybill = await startWaybill(home.path, { ...SPREAD, SMTP_URL: sink.url });
    });
    await expectAllSent();
  }, 300_000);

  test("is sent once when the start is stopped and a single process starts next", async () => {
    const repeats = () => [...sink.received.values()].reduce((sum, times) => sum + times - 1, 0);
    const before = repeats();
    await sendWhile(async () => {
      const children = [...findChildren(waybill).values()];
      expect(await waybill.stop("SIGTERM")).toBe(0);
      expect(children.filter(isAlive)).toEqual([]);
      waybill = await startWaybill(home.path, { PROCESSES: "1", SMTP_URL: sink.url });
      expect(findChildren(waybill).size).toBe(0);
    });
    await expectAllSent();
    expect(repeats()).toBe(before);
  }, 300_000);
});

describe("a start of several processes is refused", () => {
  const undo = new Undo();
  afterAll(() => undo.run());

  test("when another program has its port, shared or not", async () => {
    for (const reusePort of [false, true]) {
      const home = undo.add(await temporaryHome(), (one) => one.remove());
      const other = Bun.serve({ hostname: "127.0.0.1", port: 0, reusePort, fetch: () => new Response() });
      undo.add(other, (one) => one.stop(true));
      const environment = { ...SPREAD, WAYBILL_HOME: home.path, PORT: String(other.port) };
      const { code, output, errors } = await runCommand([], environment);
      expect([code, output]).toEqual([2, ""]);
      expect(errors.trim().split("\n").at(-1)).toStartWith(
        `waybill: PORT is ${other.port}; it should be a port that is free`,
      );
    }
  }, 300_000);

  test("when PROCESSES is invalid, or names a role that ROLES does not", async () => {
    for (const [PROCESSES, ROLES] of [
      ["0", "api"],
      ["api=0", "api"],
      ["api=1,api=2", "api"],
      ["dispatcher=2", "api,recorder"],
      ["many", "api"],
    ] as const) {
      const home = undo.add(await temporaryHome(), (one) => one.remove());
      const { code, errors } = await runCommand([], { WAYBILL_HOME: home.path, PROCESSES, ROLES });
      expect([code, errors.trim().split("\n").length]).toEqual([2, 1]);
      expect(errors).toStartWith("waybill: PROCESSES ");
    }
  });
});

test("a child is not a command that a person starts", async () => {
  const { code, errors } = await runCommand(["child", "api-1"], {});
  expect(code).toBe(2);
  expect(errors).toContain("PROCESSES");
});
