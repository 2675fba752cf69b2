import { expect } from "bun:test";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { unzipSync } from "fflate";
import { eventually } from "../support/eventually.ts";
import { recently } from "../support/recent-days.ts";
import { type DevicePass, WalletDevice } from "../support/wallet-device.ts";
import { type Answer, finalJob, type Waybill } from "../support/waybill.ts";
import { signed, status, webhookBody } from "../support/whatsapp-webhook.ts";
import type { OutsideWorld } from "./outside-world.ts";

const DOMAIN = "mail.acme.test";
const PHONE_NUMBER_ID = "777";
const ACCESS_TOKEN = "own-access-token";
/** Larger than a payload may be in Redis under later releases. */
export const LARGE_HTML = `<p>${"A long letter. ".repeat(24_000)}</p>`;
/** One of the waiting jobs starts now, the next in twenty seconds: a raised pace may be noticed only then. */
const SLOW_PER_SECOND = 0.05;
const HTML = '<p>Hello, <a href="https://shop.example/?a=1">here</a></p>';
/** Two of them are spent on passes. */
const TOKENS = 55;
const CLASS_ID = "3388000000012345678.final";

/** The longest wait for steps that are slow beside other tests. */
export const PATIENCE_MS = 60_000;

type Headers = Readonly<Record<string, string>>;

const READ = ["", "/templates", "/aliases", "/domains", "/suppressions", "/tokens"].map(
  (path) => `/tenants/acme${path}`,
);

/** A job's expected end: its status and the types of its events, in their order. */
export interface Job {
  readonly tenant: string;
  readonly status: "success" | "failed" | "suppressed";
  readonly events: readonly string[];
}

/** The requests to a former release and its answers, and the facts that must stay true ever after. */
export class FormerLife {
  readonly keys = new Map<string, string>();
  /** By id. */
  readonly jobs = new Map<string, Job>();
  /** Recipients that get one message each. */
  readonly recipients = new Set<string>();
  /** Jobs whose message may have been with the mail server when this life ended. */
  readonly inFlight = new Set<string>();
  /** The answers to operators' reads, by path, and the history by id. */
  readonly read = new Map<string, unknown>();
  readonly events = new Map<number, HistoryEvent>();
  readonly device = new WalletDevice("device-1", "00ff".repeat(16));
  pass: (DevicePass & { readonly passId: string }) | null = null;
  googlePassId = "";
  /** A job that was accepted with an idempotency key, and which has ended. */
  once = { jobId: "", key: "order-1042", to: "once@example.com" };

  constructor(
    readonly waybill: Waybill,
    readonly world: OutsideWorld,
  ) {}

  apiKey(tenant: string): string {
    return this.keys.get(tenant) ?? "";
  }

  /** Goes on with another start on the same folder. */
  beside(waybill: Waybill): FormerLife {
    return Object.assign(new FormerLife(waybill, this.world), {
      ...this,
      waybill,
      keys: new Map(this.keys),
      jobs: new Map(this.jobs),
      recipients: new Set(this.recipients),
      inFlight: new Set(),
    });
  }

  /** Tenants, and all other parts of the registry. */
  async furnish(): Promise<void> {
    const { waybill, world } = this;
    await this.operator("PUT", "/plans/slow", { requests_per_minute: 1_000, deliveries_per_second: SLOW_PER_SECOND });
    const tenant = { channels: ["email", "whatsapp", "wallet"], permissions: ["allow_raw_html"], tokens: 50 };
    await this.operator("POST", "/tenants", {
      ...tenant,
      id: "acme",
      name: "Acme",
      plan: "pro",
      allow_custom: ["email", "whatsapp"],
    });
    await this.operator("POST", "/tenants", { ...tenant, id: "slow", name: "Slow", plan: "slow" });
    for (const id of ["acme", "slow"])
      this.keys.set(id, (await this.operator("POST", `/tenants/${id}/keys`)).body.api_key);
    const email = {
      channel: "email",
      subject: "Welcome, {{.name}}",
      html: '<p>Hello {{.name}}, <a href="https://shop.example/?a=1">here</a></p>',
      text: "Hello {{.name}}",
    };
    await this.operator("PUT", "/tenants/acme/templates/welcome", email);
    const pass_data = { organization_name: "Acme", description: "Ticket", label_color: "#22C55E" };
    const card = { channel: "wallet", pass_type: "apple", style: "eventTicket", pass_data };
    await this.operator("PUT", "/tenants/acme/templates/ticket", card);
    const alias = { meta_name: "order_hx01", language_code: "pt_BR", header: { type: "image", id: "42" } };
    await this.operator("PUT", "/tenants/acme/aliases/order", alias);
    await this.operator("PUT", "/tenants/acme/credentials/whatsapp", {
      phone_number_id: PHONE_NUMBER_ID,
      access_token: ACCESS_TOKEN,
    });
    const { body } = await this.operator("POST", "/tenants/acme/domains", { domain: DOMAIN });
    world.dns.publish(body.DNSRecords.relay);
    const verified = await waybill.request(this.apiKey("acme"), "POST", `/v1/domains/${DOMAIN}/verify`);
    expect(verified.body).toMatchObject({ RelayStatus: "verified" });
    await this.operator("PUT", "/tenants/acme/credentials/email", {
      from_address: `shop@${DOMAIN}`,
      from_name: "Acme",
    });
    await this.operator("PUT", "/tenants/acme/suppressions/cyd@example.com", { reason: "manual" });
    await this.operator("POST", "/tenants/acme/tokens", { amount: 5, reason: "order 1042" });
    const class_data = {
      id: CLASS_ID,
      issuerName: "Acme",
      eventName: { defaultValue: { language: "en", value: "The final" } },
    };
    const made = await this.call("POST", "/v1/google/classes", { class_type: "eventTicket", class_data });
    expect(made.status).toBe(201);
  }

  /** Work of all kinds that comes to its end, with all its consequences. */
  async finish(): Promise<void> {
    const { world } = this;
    await this.send(
      "ann@example.com",
      { events: ["sent", "opened", "clicked"] },
      { template_id: "welcome", data: { name: "Ann" } },
    );
    await this.mail("nouser@example.com", { status: "failed", events: ["failed"] });
    await this.mail("cyd@example.com", { status: "suppressed", events: ["suppressed"] });
    await this.mail("dan@example.com", { events: ["sent"] });
    const key = { "idempotency-key": this.once.key };
    this.once = { ...this.once, jobId: await this.mail(this.once.to, { events: ["sent"] }, { headers: key }) };
    await this.chat("5491122334455", ["sent", "delivered"]);
    for (const jobId of this.jobs.keys()) await this.ended(jobId);
    for (const link of extractLinks(world.sources.get("ann@example.com"))) await fetch(link, { redirect: "manual" });
    await callBack(this.waybill, [status(world.wamids.get("5491122334455") ?? "", "delivered")]);
    await this.makePasses();
    await eventually(
      "the history is written",
      async () => (await this.fetchHistory("acme")).length === this.countEvents("acme"),
      PATIENCE_MS,
    );
  }

  /** Waiting mail: for another try, and for its tenant's turn. */
  async leaveWaiting(): Promise<void> {
    await this.mail("eve@away.test", { events: ["sent"] });
    await eventually("it was tried", () => this.world.deferred > 0, PATIENCE_MS);
    for (const n of [1, 2, 3]) await this.mail(`slow-${n}@example.com`, { tenant: "slow", events: ["sent"] });
    await this.mail("large@example.com", { tenant: "slow", events: ["sent"] }, { html: LARGE_HTML });
    await eventually("the first has its turn", () => this.world.arrived.has("slow-1@example.com"), PATIENCE_MS);
  }

  /** Work in all states in which a process can be killed that delivers but does not record. */
  async leaveUnfinished(): Promise<void> {
    const { world } = this;
    const sent = [await this.mail("fay@example.com", { events: ["sent"] }), await this.chat("5491122334466", ["sent"])];
    for (const jobId of sent) await this.ended(jobId);
    await this.mail("gus@away.test", { events: ["sent"] });
    await this.mail("slow-4@example.com", { tenant: "slow", events: ["sent"] });
    await this.mail("hal@silent.test", { events: ["sent"] });
    await eventually("its answer is awaited", () => world.unanswered > 0, PATIENCE_MS);
    this.inFlight.add("hal@silent.test");
    for (let n = 0; n < 20; n += 1) {
      await this.mail(`burst-${n}@example.com`, { events: ["sent"] });
      this.inFlight.add(`burst-${n}@example.com`);
    }
  }

  /** Reads the data that must be the same under any release. */
  async remember(): Promise<void> {
    for (const path of READ) this.read.set(path, (await this.operator("GET", path)).body);
    for (const event of await this.fetchHistory("acme")) this.events.set(event.event_id, event);
  }

  async expectRemembered(): Promise<void> {
    for (const [path, body] of this.read) {
      expect([path, (await this.operator("GET", path)).body]).toMatchObject([path, body]);
    }
    const events = new Map((await this.fetchHistory("acme")).map((event) => [event.event_id, event]));
    for (const [id, event] of this.events) expect(events.get(id)).toEqual(event);
  }

  /** Waits for no outcome. */
  async mail(
    to: string,
    job: Partial<Job>,
    { html = HTML, headers = {} }: { readonly html?: string; readonly headers?: Headers } = {},
  ): Promise<string> {
    return this.send(to, job, { subject: "Hello", html }, headers);
  }

  async chat(phone_number: string, events: readonly string[]): Promise<string> {
    const sent = await this.call("POST", "/v1/send/whatsapp", { phone_number, template_id: "order", params: ["Ada"] });
    expect([sent.status, sent.body.error]).toEqual([202, undefined]);
    this.recipients.add(phone_number);
    return this.note(sent.body.job_id, { events });
  }

  /** Lifts the limit of the slow tenant. */
  async hurry(): Promise<void> {
    await this.operator("PUT", "/plans/slow", { requests_per_minute: 1_000, deliveries_per_second: 100 });
  }

  /** Links and keys that the former life handed out, and its stored settings, work in this one. */
  async expectAllWorks(): Promise<void> {
    const { waybill, world } = this;
    const letter = { to_address: this.once.to, subject: "Hello", html: HTML };
    const repeated = await this.post(letter, { headers: { "idempotency-key": this.once.key } });
    expect(repeated).toMatchObject({ status: 202, body: { job_id: this.once.jobId } });

    const source = world.sources.get("dan@example.com");
    const [, click = ""] = extractLinks(source);
    const clicked = await fetch(click, { redirect: "manual" });
    expect([clicked.status, clicked.headers.get("location")]).toEqual([302, "https://shop.example/?a=1"]);
    expect((await fetch(extractUnsubscribeLink(source), { method: "POST" })).status).toBe(200);
    for (const [to, reason] of [
      ["dan@example.com", "unsubscribed"],
      ["cyd@example.com", "manual"],
    ] as const) {
      const jobId = await this.mail(to, { status: "suppressed", events: ["suppressed"] });
      expect(await this.ended(jobId)).toMatchObject({
        status: "suppressed",
        result: { reason },
      });
    }

    // The former release dropped the content of a job that failed for good, or kept it without a way to read it.
    const [failed] = [...this.jobs].find(([, job]) => job.status === "failed") ?? [];
    const retried = await waybill.operator("POST", `/tenants/acme/jobs/${failed}/retry`);
    expect(retried).toMatchObject({ status: 409, body: { error: expect.stringContaining("no longer kept") } });

    const wamid = world.wamids.get("5491122334455") ?? "";
    await callBack(waybill, [status(wamid, "read")]);
    await eventually(
      "the report has found its job",
      async () => {
        return (await this.fetchHistory("acme")).some(({ event_type }) => event_type === "read");
      },
      PATIENCE_MS,
    );
    const sent = [await this.mail("ivy@example.com", { events: ["sent"] }), await this.chat("5491122334477", ["sent"])];
    for (const jobId of sent) expect((await this.ended(jobId)).status).toBe("success");
    expect(world.sources.get("ivy@example.com")?.replace(/\r\n[ \t]/g, " ")).toMatch(
      new RegExp(`^DKIM-Signature: .*d=${DOMAIN};`, "m"),
    );
    expect([...world.tokens]).toEqual([`Bearer ${ACCESS_TOKEN}`]);
    await this.expectPassesWork();
  }

  private async expectPassesWork(): Promise<void> {
    const { waybill, pass, device } = this;
    if (pass === null) throw new Error("no pass was made");
    const { body } = await this.call("GET", `/v1/passes/${pass.passId}/status`);
    expect(body).toMatchObject({ version: 1, installed_devices: 1, is_installed: true });
    const pass_data = { auxiliary_fields: [{ key: "round", value: "2" }] };
    const updated = await this.call("PUT", `/v1/passes/${pass.passId}`, { pass_data });
    await this.ended(updated.body.job_id);
    const arrived = `/sandbox/messages?to=${device.pushToken}`;
    await eventually(
      "the push",
      async () => (await waybill.operator("GET", arrived)).body.messages.length > 0,
      PATIENCE_MS,
    );
    device.push(pass.passTypeId);
    await device.idle();
    expect(JSON.stringify(passJson(device.getBytes(pass)))).toContain('"value":"2"');
    expect(device.complaints).toEqual([]);
    expect((await this.call("GET", `/v1/passes/${this.googlePassId}/status`)).body).toMatchObject({
      version: 1,
      pass_type: "google",
    });
    expect((await waybill.operator("GET", "/tenants/acme")).body.tokens).toBe(TOKENS - 2);
  }

  async fetchHistory(tenant: string): Promise<readonly HistoryEvent[]> {
    const path = `/v1/events?${recently()}&limit=500`;
    // Without a channel the list holds e-mail and chat.
    const lists = [path, `${path}&channel=wallet`].map((one) => this.waybill.request(this.apiKey(tenant), "GET", one));
    return (await Promise.all(lists)).flatMap(({ body }) => body.events);
  }

  /** The number of events of the tenant's jobs when all have ended. */
  countEvents(tenant: string): number {
    return [...this.jobs.values()]
      .filter((job) => job.tenant === tenant)
      .reduce((sum, { events }) => sum + events.length, 0);
  }

  async operator(method: string, path: string, body?: unknown): Promise<Answer> {
    const answer = await this.waybill.operator(method, path, body);
    expect([method, path, answer.status < 300 ? "done" : answer.body]).toEqual([method, path, "done"]);
    return answer;
  }

  /** The job, once it has ended. */
  async ended(jobId: string): Promise<Answer["body"]> {
    return finalJob(this.waybill, this.apiKey(this.jobs.get(jobId)?.tenant ?? "acme"), jobId, PATIENCE_MS);
  }

  call(method: string, path: string, body?: unknown): Promise<Answer> {
    return this.waybill.request(this.apiKey("acme"), method, path, body);
  }

  private async send(to_address: string, job: Partial<Job>, message: object, headers: Headers = {}): Promise<string> {
    const { status: code, body } = await this.post({ to_address, ...message }, { tenant: job.tenant, headers });
    expect([to_address, code]).toEqual([to_address, 202]);
    if (job.status === undefined) this.recipients.add(to_address);
    return this.note(body.job_id, job);
  }

  private async post(
    message: object,
    { tenant = "acme", headers = {} }: { readonly tenant?: string | undefined; readonly headers?: Headers },
  ): Promise<{ readonly status: number; readonly body: { readonly job_id: string } }> {
    const answer = await fetch(`${this.waybill.url}/v1/send/email`, {
      method: "POST",
      headers: { "x-api-key": this.apiKey(tenant), "content-type": "application/json", ...headers },
      body: JSON.stringify(message),
    });
    // The status says whether it has a job.
    return { status: answer.status, body: (await answer.json()) as { readonly job_id: string } };
  }

  private note(jobId: string, { tenant = "acme", status: end = "success", events = [] }: Partial<Job>): string {
    this.jobs.set(jobId, { tenant, status: end, events });
    return jobId;
  }

  private async makePasses(): Promise<void> {
    const apple = await this.call("POST", "/v1/passes/create", {
      template_id: "ticket",
      pass_data: { serial_number: "PLAYER-1", auxiliary_fields: [{ key: "round", label: "Round", value: "1" }] },
    });
    expect([apple.status, apple.body.error]).toEqual([202, undefined]);
    const job = await this.ended(this.note(apple.body.job_id, { events: ["sent"] }));
    const bytes = new Uint8Array(Buffer.from(job.result.pkpass_base64, "base64"));
    const { webServiceURL, authenticationToken, passTypeIdentifier, serialNumber } = passJson(bytes);
    const passTypeId = String(passTypeIdentifier);
    this.pass = {
      passId: job.result.pass_id,
      passTypeId,
      serial: String(serialNumber),
      authenticationToken: String(authenticationToken),
      serviceUrl: String(webServiceURL),
      bytes,
    };
    expect(await this.device.add(this.pass)).toBe(201);
    const object_data = { ticketHolderName: "Ada" };
    const data = {
      class_id: CLASS_ID,
      class_type: "eventTicket",
      object_id: "3388000000012345678.ticket-1",
      object_data,
    };
    const google = await this.call("POST", "/v1/passes/create", { pass_type: "google", pass_data: data });
    const made = await this.ended(this.note(google.body.job_id, { events: ["sent"] }));
    expect(made.status).toBe("success");
    this.googlePassId = made.result.pass_id;
  }
}

export interface HistoryEvent {
  readonly event_id: number;
  readonly job_id: string;
  readonly event_type: string;
}

export function passJson(bytes: Uint8Array | null): Record<string, unknown> {
  return JSON.parse(new TextDecoder().decode(bytes === null ? undefined : unzipSync(bytes)["pass.json"]));
}

/** Makes a call of the chat provider. */
export async function callBack(waybill: Waybill, statuses: readonly object[]): Promise<void> {
  const secret = (await readFile(join(waybill.home, "webhook-secret"), "utf8")).trim();
  const { body, signature } = signed(JSON.stringify(webhookBody({ statuses }, PHONE_NUMBER_ID)), secret);
  const headers = { "X-Hub-Signature-256": signature };
  const response = await fetch(`${waybill.url}/webhook/whatsapp`, { method: "POST", headers, body });
  expect(response.status).toBe(200);
}

/** The pixel and the first tracked link of a message as received. */
export function extractLinks(source = ""): readonly string[] {
  const html = source.replaceAll("=\r\n", "").replaceAll("=3D", "=");
  return [/src="(http[^"]+\/t\/o\/[^"]+)"/, /href="(http[^"]+\/t\/c\/[^"]+)"/].flatMap(
    (link) => link.exec(html)?.[1] ?? [],
  );
}

export function extractUnsubscribeLink(source = ""): string {
  return /^List-Unsubscribe: <(http[^>]+)>/im.exec(source)?.[1] ?? "";
}
