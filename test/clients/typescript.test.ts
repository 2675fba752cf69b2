import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFile } from "node:fs/promises";
import { connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { Waybill, WaybillError, WaybillOperator, type WaybillOptions } from "../../clients/typescript/waybill.ts";
import { eventually } from "../support/eventually.ts";
import { recentDays } from "../support/recent-days.ts";
import { type Waybill as Running, startWaybill, temporaryHome } from "../support/waybill.ts";

let home: Awaited<ReturnType<typeof temporaryHome>>;
let server: Running;
let waybill: Waybill;
let operator: WaybillOperator;

beforeAll(async () => {
  home = await temporaryHome();
  server = await startWaybill(home.path);
  waybill = createClient({});
  const token = (await readFile(join(home.path, "operator-token"), "utf8")).trim();
  operator = new WaybillOperator({ url: server.url, token });
}, 300_000);

afterAll(async () => {
  await server?.stop();
  await home?.remove();
}, 300_000);

/** Uses the demo tenant's key. */
function createClient(options: Partial<WaybillOptions>): Waybill {
  return new Waybill({ url: server.url, apiKey: server.demoKey, ...options });
}

async function catchFailure(call: Promise<unknown>): Promise<WaybillError> {
  const error = await call.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (error instanceof WaybillError) return error;
  throw new Error(`it ended with ${String(error)}`);
}

/** A tenant of its own, and its key. */
async function tenantOn(plan: string, id: string): Promise<string> {
  await operator.tenants.create({ id, name: id, plan, channels: ["email"], permissions: ["allow_raw_html"] });
  return (await operator.keys.create(id)).api_key;
}

const HELLO = { to_address: "ann@example.com", subject: "Hello", html: "<p>Hello</p>" };

describe("a tenant", () => {
  test("sends an e-mail, and reads what became of it", async () => {
    const { job_id, status } = await waybill.emails.send(HELLO);
    expect(status).toBe("pending");
    expect(await waybill.jobs.wait(job_id)).toEqual({ job_id, status: "success", result: {} });
    const { events } = await eventually("it is delivered", async () => {
      const found = await waybill.jobs.events(job_id);
      return found.events.length === 2 ? found : null;
    });
    expect(events.map(({ event_type }) => event_type)).toEqual(["sent", "delivered"]);
  });

  test("sends a chat message", async () => {
    const { job_id } = await waybill.whatsapp.send({
      phone_number: "5491122334455",
      template_id: "order_ready",
      params: ["Ann"],
    });
    expect(await waybill.jobs.wait(job_id)).toMatchObject({ status: "success" });
  });

  test("creates, downloads and updates a pass", async () => {
    const { job_id } = await waybill.passes.create({
      pass_type: "apple",
      pass_data: { serial_number: "client-1", organization_name: "Acme", description: "Ticket" },
    });
    const job = await waybill.jobs.wait(job_id);
    if (job.status !== "success" || job.result.pass_id === undefined) throw new Error(JSON.stringify(job));
    const passId = job.result.pass_id;
    const file = new Uint8Array(await waybill.passes.download(passId));
    expect(new TextDecoder().decode(file.subarray(0, 2))).toBe("PK");
    expect(await waybill.passes.update(passId, { pass_data: { logo_text: "New" } })).toMatchObject({
      pass_id: passId,
      status: "updating",
    });
    expect(await waybill.passes.status(passId)).toMatchObject({ pass_type: "apple", installed_devices: 0 });
  });

  test("sees why a job failed", async () => {
    const { job_id } = await waybill.emails.send({ ...HELLO, to_address: "ann@reject.test" });
    const job = await waybill.jobs.wait(job_id);
    expect(job.status === "failed" && job.result.error).toContain("550");
  });

  test("pages through its events without missing or repeating one", async () => {
    const alone = createClient({ apiKey: await tenantOn("pro", "paging") });
    const sent: string[] = [];
    for (let at = 0; at < 5; at++) sent.push((await alone.emails.send(HELLO)).job_id);
    const query = { ...recentDays(), event_type: "sent", limit: 2 } as const;
    const found = await eventually("all are in the event store", async () => {
      const events = await Array.fromAsync(alone.events.list(query));
      return events.length === sent.length ? events : null;
    });
    expect(found.map(({ job_id }) => job_id).toSorted()).toEqual(sent.toSorted());
    const pages = await Array.fromAsync(alone.events.list(query).pages());
    expect(pages.map(({ events }) => events.length)).toEqual([2, 2, 1]);
  });

  test("is told what is wrong with a request", async () => {
    const error = await catchFailure(waybill.emails.send({ ...HELLO, to_address: "nobody" }));
    expect(error).toMatchObject({ status: 400, code: "bad_request", requestId: expect.stringMatching(/./) });
    expect(error).toMatchObject({ reason: "invalid_member", param: "to_address" });
    expect(error.message).toContain("to_address");
  });

  test("is told which rules its HTML violates", async () => {
    const error = await catchFailure(waybill.emails.send({ ...HELLO, html: "<p>Hi</p><script></script>" }));
    expect(error).toMatchObject({ status: 422, code: "unprocessable", violations: [{ rule: "script" }] });
    expect(error.reason).toBe("html_violation");
  });

  test("cannot be led to another operation by an id", async () => {
    await expect(waybill.jobs.get("..")).rejects.toThrow(TypeError);
    expect(await catchFailure(waybill.jobs.get("a/../../../health"))).toMatchObject({ status: 404, code: "not_found" });
  });

  test("that has the wrong key is told so, without retries", async () => {
    const waits: number[] = [];
    const sleep = async (ms: number) => void waits.push(ms);
    const error = await catchFailure(createClient({ apiKey: "wb_wrong", sleep }).emails.send(HELLO));
    expect(error).toMatchObject({ status: 401, code: "unauthorized" });
    expect(waits).toEqual([]);
  });
});

describe("an operator", () => {
  test("lists all tenants, page by page", async () => {
    await tenantOn("free", "first-of-many");
    await tenantOn("free", "second-of-many");
    const tenants = await Array.fromAsync(operator.tenants.list({ limit: 1 }));
    expect(tenants.map(({ id }) => id)).toEqual(expect.arrayContaining(["demo", "first-of-many", "second-of-many"]));
  });

  test("suppresses an address, and lifts that again", async () => {
    await operator.suppressions.put("demo", "gone+1@example.com");
    const { job_id } = await waybill.emails.send({ ...HELLO, to_address: "gone+1@example.com" });
    expect(await waybill.jobs.wait(job_id)).toMatchObject({ status: "suppressed", result: { reason: "manual" } });
    expect(await operator.suppressions.delete("demo", "gone+1@example.com")).toBeNull();
    expect(await Array.fromAsync(operator.suppressions.list("demo"))).toEqual([]);
  });

  test("exports events as a stream", async () => {
    const file = await operator.events.export({ ...recentDays(), format: "csv" });
    expect(await new Response(file).text()).toContain("event_id");
  });
});

describe("retries", () => {
  test("a send whose answer is lost is repeated, and sends once", async () => {
    const proxy = await DroppingProxy.start(server.url);
    try {
      const waits: number[] = [];
      const sleep = async (ms: number) => void waits.push(ms);
      const client = createClient({ url: proxy.url, sleep });
      const { job_id } = await client.emails.send({ ...HELLO, to_address: "once@example.com" });
      expect([proxy.dropped, waits.length]).toEqual([1, 1]);
      await waybill.jobs.wait(job_id);
      const { messages } = await operator.sandbox.messages({ to: "once@example.com" });
      expect(messages).toHaveLength(1);
    } finally {
      proxy.stop();
    }
  });

  test("a call without a key that changes something is not repeated when its answer is lost", async () => {
    const proxy = await DroppingProxy.start(server.url);
    try {
      const client = createClient({ url: proxy.url, sleep: () => Promise.reject(new Error("it would be repeated")) });
      expect(await catchFailure(client.domains.verify("example.com"))).toMatchObject({
        status: null,
        code: "no_answer",
      });
      expect(proxy.dropped).toBe(1);
    } finally {
      proxy.stop();
    }
  });

  test("a tenant over its limit waits for as long as it is told", async () => {
    await operator.plans.put("single", { requests_per_minute: 1 });
    const apiKey = await tenantOn("single", "hasty");
    const waits: number[] = [];
    const sleep = async (ms: number) => {
      waits.push(ms);
      await operator.plans.put("single", { requests_per_minute: 1000 });
    };
    await createClient({ apiKey }).emails.send(HELLO);
    const refused = await catchFailure(createClient({ apiKey, retries: 0 }).emails.send(HELLO));
    expect(refused).toMatchObject({ status: 429, code: "too_many_requests" });
    const told = (refused.retryAfterSeconds ?? 0) * 1000;
    expect(told).toBeWithin(1_000, 61_001);
    expect(await createClient({ apiKey, sleep }).emails.send(HELLO)).toMatchObject({ status: "pending" });
    expect(waits).toHaveLength(1);
    // A second may have passed between the two.
    expect(waits[0]).toBeWithin(told - 1_000, told + 1);
  });

  test("a key of the caller's own makes two sends one", async () => {
    const options = { idempotencyKey: "order-1042-receipt" };
    const first = await waybill.emails.send(HELLO, options);
    expect(await waybill.emails.send(HELLO, options)).toEqual(first);
    expect((await waybill.emails.send(HELLO)).job_id).not.toBe(first.job_id);
  });

  test("a server that is away is tried three times more, with growing waits", async () => {
    const waits: number[] = [];
    const proxy = await DroppingProxy.start(server.url);
    proxy.stop();
    const client = createClient({ url: proxy.url, sleep: async (ms) => void waits.push(ms) });
    expect(await catchFailure(client.emails.send(HELLO))).toMatchObject({ status: null, code: "no_answer" });
    for (const [at, ms] of [500, 1_000, 2_000].entries()) expect(waits[at]).toBeWithin(ms / 2, ms + 1);
    expect(waits).toHaveLength(3);
  });

  test("an attempt ends after its timeout", async () => {
    const client = createClient({ timeoutMs: 20, retries: 0, fetch: (_, { signal }) => silence(signal) });
    expect(await catchFailure(client.domains.list())).toMatchObject({ status: null, code: "timeout" });
  });

  test("a caller ends a call with its own reason, while it runs and while it waits for a retry", async () => {
    const reason = new Error("the user left");
    const [running, waiting] = [new AbortController(), new AbortController()];
    const call = createClient({ fetch: (_, { signal }) => silence(signal) }).domains.list({ signal: running.signal });
    running.abort(reason);
    await expect(call).rejects.toBe(reason);
    const away = createClient({
      fetch: () => {
        setTimeout(() => waiting.abort(reason));
        return Promise.reject(new Error("away"));
      },
    });
    await expect(away.domains.list({ signal: waiting.signal })).rejects.toBe(reason);
  });
});

describe("a client", () => {
  test("shows its key to no other host, and takes no redirect for an answer", async () => {
    const seen: string[] = [];
    const other = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => stolen(request, seen) });
    const elsewhere = `http://127.0.0.1:${other.port}/v1/jobs/1`;
    const moved = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => Response.redirect(elsewhere, 302) });
    try {
      const client = createClient({ url: `http://127.0.0.1:${moved.port}` });
      for (const call of [client.jobs.get("1"), client.emails.send(HELLO)]) {
        const error = await catchFailure(call);
        expect(error).toMatchObject({ status: 302, code: "redirected" });
        expect(error.message).toContain(elsewhere);
      }
      // A `fetch` of the caller's that follows redirects regardless.
      const following = createClient({
        url: `http://127.0.0.1:${moved.port}`,
        fetch: (url, init) => fetch(url, { ...init, redirect: "follow" }),
      });
      expect(await catchFailure(following.jobs.get("1"))).toMatchObject({ code: "redirected" });
      expect(seen).toHaveLength(1);
    } finally {
      await Promise.all([other.stop(true), moved.stop(true)]);
    }
  });

  test("tells the key of a send that nobody knows the end of", async () => {
    const client = createClient({ retries: 0, fetch: () => Promise.reject(new Error("away")) });
    expect((await catchFailure(client.emails.send(HELLO))).idempotencyKey).toMatch(/^[0-9a-f-]{36}$/);
    expect((await catchFailure(client.emails.send(HELLO, { idempotencyKey: "mine" }))).idempotencyKey).toBe("mine");
    expect((await catchFailure(client.domains.list())).idempotencyKey).toBeNull();
  });

  test.each(["", "ключ", "two\nlines", "x".repeat(256)])("refuses the idempotency key %j", async (idempotencyKey) => {
    await expect(waybill.emails.send(HELLO, { idempotencyKey })).rejects.toThrow(TypeError);
  });

  test.each(["", "wb_ключ", "wb_1\n", " wb_1"])("refuses the key %j, and does not repeat it", (apiKey) => {
    expect(() => createClient({ apiKey })).toThrow("a key is printable ASCII without blanks; this one is not");
  });

  test.each([500, 503, 520, 524])("repeats a send after %i, with its key", async (status) => {
    const keys: (string | null)[] = [];
    const client = createClient({
      sleep: async () => {},
      fetch: async (_, init) => {
        keys.push(new Headers(init.headers).get("idempotency-key"));
        return keys.length === 1 ? new Response("", { status }) : Response.json({ job_id: "1", status: "pending" });
      },
    });
    expect(await client.emails.send(HELLO)).toMatchObject({ job_id: "1" });
    expect([keys.length, new Set(keys).size]).toEqual([2, 1]);
  });

  test("waits for a job no longer than it was told, whatever its calls take", async () => {
    const startedMs = performance.now();
    const client = createClient({ fetch: (_, { signal }) => silence(signal) });
    const error = await catchFailure(client.jobs.wait("1", { withinMs: 50 }));
    expect(error).toMatchObject({ code: "timeout", message: "job 1 is not known after 50 ms" });
    expect(performance.now() - startedMs).toBeLessThan(10_000);
  });
});

function stolen(request: Request, seen: string[]): Response {
  seen.push(String(request.headers.get("x-api-key")));
  return Response.json({ job_id: "1", status: "success", result: {} });
}

/** A server that never answers. */
function silence(signal: AbortSignal | null | undefined): Promise<Response> {
  return new Promise((_, reject) => {
    signal?.addEventListener("abort", () => reject(signal.reason));
  });
}

/** Passes requests on. It closes the first connection once its answer arrives, and keeps that answer. */
class DroppingProxy {
  dropped = 0;
  private readonly sockets = new Set<Socket>();

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  static async start(target: string): Promise<DroppingProxy> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("it has no port");
    const proxy = new DroppingProxy(server, `http://127.0.0.1:${address.port}`);
    server.on("connection", (caller) => proxy.link(caller, Number(new URL(target).port)));
    return proxy;
  }

  stop(): void {
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
  }

  private link(caller: Socket, port: number): void {
    const target = connect(port, "127.0.0.1");
    for (const socket of [caller, target]) this.sockets.add(socket.on("error", () => socket.destroy()));
    caller.pipe(target);
    target.on("data", (answer) => {
      if (this.dropped > 0) return void caller.write(answer);
      this.dropped += 1;
      caller.destroy();
      target.destroy();
    });
    target.on("close", () => caller.destroy());
    caller.on("close", () => target.destroy());
  }
}
