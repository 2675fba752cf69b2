import type { SandboxMessage } from "../../../src/domain/jobs/report.ts";
import { Front, OPERATOR_TOKEN } from "../../http/support/front.ts";
import { must } from "../../support/must.ts";

/** A name that an attacker chooses in the hope that an operator's browser runs it. */
export const CANARY = `<img src=x onerror="top.owned=1"><script>top.owned=1</script>`;

export const JOB = "01a1fd15-0a3f-702b-89f2-ebefa432acf3";
const AT = "2026-11-22T19:30:00.000Z";

const job = {
  job_id: JOB,
  channel: "email",
  status: "failed",
  outcome: "failed",
  attempts: 2,
  created_at: AT,
  finished_at: "2026-11-22T19:36:10.000Z",
  error: `the mail server refused the message: 550 5.7.1 ${CANARY}`,
  template: "welcome",
  recipient_domain: "example.com",
} as const;

const BOUNCED = {
  tenant_id: "other",
  job_id: "01a1fd15-0a3f-702b-89f2-ebefa432acf4",
  channel: "email",
  status: "success",
  outcome: "bounced",
  attempts: 1,
  created_at: AT,
  finished_at: AT,
} as const;

const HISTORY = {
  ...job,
  history: [
    {
      at: "2026-11-22T19:30:01.000Z",
      outcome: "retry",
      relay: "mx.example.com:25",
      reply: "451 4.7.1 Try again later",
      next_attempt_at: "2026-11-22T19:36:01.000Z",
    },
    { at: "2026-11-22T19:36:10.000Z", outcome: "failed", relay: "mx.example.com:25", reply: `550 5.7.1 ${CANARY}` },
  ],
  events: [
    { event_id: 7, event_type: "failed", result: { error: `550 5.7.1 ${CANARY}` }, created_at: "2026-11-22T19:36:10Z" },
  ],
  result: { error: `550 5.7.1 ${CANARY}` },
};

const HTML =
  `<style>h1{color:rgb(10, 20, 30)}</style><h1>Welcome, Ann</h1><p style="color:rgb(1, 2, 3)">Two tickets.</p>` +
  `<a href="/dash/api/session">all of it</a><svg onload="top.owned=1"></svg><iframe srcdoc="&lt;script&gt;top.owned=1&lt;/script&gt;"></iframe>` +
  `<form action="/dash/api/session"><button>x</button></form><meta http-equiv="refresh" content="0;url=/dash/api/session">${CANARY}`;

const CONTENT = {
  channel: "email",
  from: "shop@example.com",
  to: "ann@example.com",
  subject: CANARY,
  html: HTML,
  text: CANARY,
};

const MAIL: SandboxMessage = {
  channel: "email",
  received_at: AT,
  from: "shop@example.com",
  to: "ann@example.com",
  subject: `Your order ${CANARY}`,
  source: [
    "From: shop@example.com",
    "To: ann@example.com",
    `Subject: Your order ${CANARY}`,
    "MIME-Version: 1.0",
    "Content-Type: text/html; charset=utf-8",
    "",
    HTML,
  ].join("\r\n"),
};

function overview() {
  const counts = (value: number) => Array.from({ length: 60 }, (_, at) => value + (at % 7));
  const series = (channel: string, outcome: string, value: number) => ({ channel, outcome, counts: counts(value) });
  return {
    at: new Date().toISOString(),
    totals: {
      tenants: 2,
      accepted_today: 1_204,
      sent_today: 1_200,
      bounced_today: 1,
      delivered_today: 1_190,
      failed_today: 3,
    },
    queue: {
      depth: 14,
      incomplete: false,
      oldest_seconds: 754,
      outbox_oldest_seconds: null,
      redis_memory_bytes: 1_048_576,
      redis_memory_limit_bytes: null,
    },
    rates: {
      from: new Date(Date.now() - 3_600_000).toISOString(),
      interval_seconds: 60,
      series: [
        series("email", "accepted", 120_000),
        series("email", "delivered", 118_000),
        series("email", "failed", 0),
      ],
      sent: [],
    },
    shards: [{ shard: 0, depth: 14, oldest_seconds: 754, process: null }],
    tenants: [{ tenant_id: "acme", channel: "email", depth: 14, oldest_seconds: 754, waits: "away" }],
    processes: [
      {
        name: `waybill-1 ${CANARY}`,
        roles: ["api", "dispatcher"],
        started_at: AT,
        shards: 1,
        loop_delay_ms: 1.2,
        event_store_lag_seconds: 0.3,
        breakers: [
          { channel: "email", relay: `mx.example.com:25 ${CANARY}`, state: "open", since: AT, waiting_jobs: 14 },
        ],
        paused: [{ tenant_id: "acme", channel: "whatsapp" }],
      },
    ],
    expiring: [
      { kind: "apple_certificate", tenant_id: "acme", name: "pass.com.example", expires_at: "2026-12-01T00:00:00Z" },
    ],
    alarms: [
      {
        severity: "ticket",
        title: "A certificate expires",
        detail: "In nine days.",
        runbook: "docs/runbook.md#expiry",
      },
      {
        severity: "ticket",
        title: "12 % of email fails",
        detail: "30 in the last half hour",
        runbook: "docs/runbook.md#waybillfailureratehigh",
        channel: "email",
        minutes: 30,
      },
      {
        severity: "page",
        title: `A mail server is away ${CANARY}`,
        detail: "14 e-mails wait.",
        runbook: "docs/runbook.md#relay",
      },
    ],
  };
}

/** The dashboard on a free port, over a real registry, with names that are attacks. Jobs and overview are made up. */
export class DashboardWorld {
  /** While true, the overview's stream is broken. */
  isStreamBroken = false;
  /** Bodies of calls that would queue a job again. */
  readonly retries: unknown[] = [];

  private constructor(
    readonly front: Front,
    private readonly server: Bun.Server<undefined>,
    readonly readerToken: string,
  ) {}

  static async start(): Promise<DashboardWorld> {
    const front = await Front.start({
      sandbox: { messages: (to) => (to === null || to === MAIL.to ? [MAIL] : []), erase: () => 0 },
    });
    const readerToken = await fill(front);
    // Tests on a busy machine take longer than a minute, after which a process without notifications no longer trusts
    // its memory.
    front.stores.start();
    const made: { world?: DashboardWorld } = {};
    const server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      development: false,
      fetch: (request) => made.world?.answer(request) ?? new Response(null, { status: 503 }),
    });
    made.world = new DashboardWorld(front, server, readerToken);
    return made.world;
  }

  get url(): string {
    return `http://127.0.0.1:${this.server.port}`;
  }

  async stop(): Promise<void> {
    await this.server.stop(true);
    await this.front.stop();
  }

  private async answer(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    const fixture = await this.fixtureFor(request, pathname, searchParams);
    return fixture ?? this.front.server.handle(request);
  }

  private async fixtureFor(request: Request, path: string, query: URLSearchParams): Promise<Response | null> {
    if (path === "/dash/api/usage") return usage(query);
    if (path === "/dash/api/overview") return Response.json(overview());
    if (path === "/dash/api/failures") return Response.json({ groups: GROUPS });
    if (path === "/dash/api/rates") return Response.json(rates());
    if (path === "/dash/api/overview/live")
      return this.isStreamBroken ? new Response(null, { status: 503 }) : streamed();
    if (path === "/dash/api/jobs")
      return Response.json({ jobs: [{ tenant_id: "acme", ...job }, BOUNCED], next_cursor: null, incomplete: false });
    if (path === "/dash/api/tenants/acme/jobs") {
      const jobs = query.get("status") === "running" ? [] : [job];
      return Response.json({ jobs, next_cursor: null, incomplete: false });
    }
    if (path === `/dash/api/tenants/acme/jobs/${JOB}`) return Response.json(HISTORY);
    if (path === `/dash/api/tenants/acme/jobs/${JOB}/content`) return Response.json(CONTENT);
    if (!path.startsWith("/dash/api/tenants/acme/jobs/") || request.method !== "POST") return null;
    const body: unknown = await request.json().catch(() => null);
    this.retries.push(body);
    const isCount = typeof body === "object" && body !== null && "dry_run" in body;
    if (isCount) return Response.json({ count: 37 });
    return Response.json({ retried: 35, skipped: 2, next_cursor: null }, { status: 202 });
  }
}

const GROUPS = [
  {
    tenant_id: "acme",
    channel: "email",
    type: "failed",
    failure_class: "recipient",
    jobs: 37,
    sent: 1_200,
    example: `550 5.1.1 no such user ${CANARY}`,
    last_at: AT,
  },
  {
    tenant_id: "other",
    channel: "email",
    type: "bounced",
    failure_class: "mailbox_full",
    jobs: 2,
    sent: 40,
    example: null,
    last_at: AT,
  },
];

function rates() {
  const counts = Array.from({ length: 168 }, (_, at) => 1_000 + (at % 24) * 90);
  const series = ["sent", "delivered", "failed"].map((outcome) => ({ channel: "email", outcome, counts }));
  return { from: "2026-11-15T00:00:00.000Z", interval_seconds: 3_600, series };
}

/** Two tenants, one per page. */
function usage(query: URLSearchParams): Response {
  const month = query.get("month");
  const [id, name, charged, next] = query.has("cursor") ? ["other", "Other", 7, null] : ["acme", CANARY, 12, "acme"];
  if (query.get("format") === "csv") {
    return new Response(`tenant_id,month\r\n${id},${month}\r\n`, { headers: { "next-cursor": next ?? "" } });
  }
  const record = {
    tenant_id: id,
    tenant_name: name,
    month,
    api_calls: 1_310,
    accepted: 1_042,
    sent: { email: 1_029, whatsapp: 0, wallet: 13 },
    delivered: 1_017,
    bounced: 12,
    failed: 3,
    suppressed: 10,
    tokens_charged: charged,
    tokens_given_back: 2,
    tokens_topped_up: 500,
    tokens_taken: 40,
    tokens_billed: Number(charged) - 2,
  };
  return Response.json({ usage: [record], next_cursor: next });
}

function streamed(): Response {
  const body = new ReadableStream({
    start: (out) => out.enqueue(new TextEncoder().encode(`data: ${JSON.stringify(overview())}\n\n`)),
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

/** Fills the registry. Returns the token of an operator with read access. */
async function fill(front: Front): Promise<string> {
  const { registry } = front;
  await must(registry.changeTenant("acme", { name: `Acme ${CANARY}` }));
  const slug = "welcome";
  await must(registry.putTemplate("acme", { slug, channel: "email", subject: CANARY, html: HTML, text: CANARY }));
  await must(registry.putSuppression("acme", "out@example.com", "unsubscribed"));
  const calls = [
    ["POST", "/tenants", { id: "other", name: "W".repeat(60) }],
    ["POST", "/tenants/acme/keys", { name: CANARY }],
    ["POST", "/tenants/acme/tokens", { amount: 5, reason: CANARY }],
    ["PUT", "/tenants/acme/aliases/hello", { meta_name: "hello_world", params: [CANARY] }],
    ["POST", "/tenants/acme/domains", { domain: "mail.example.com" }],
    ["PUT", "/tenants/acme/credentials/email", { from_address: "shop@example.com", from_name: CANARY }],
    ["PUT", "/plans/narrow", { requests_per_minute: 10 }],
    ["POST", "/operators", { name: `ann ${CANARY}`, role: "write" }],
  ] as const;
  for (const [method, path, body] of calls) {
    const { status, text } = await front.operate(method, path, body);
    if (status >= 300) throw new Error(`${path}: ${status} ${text}`);
  }
  const hook = await front.post("/v1/webhooks", { url: `https://hooks.example.com/${"w".repeat(80)}` });
  if (hook.status !== 201) throw new Error(`a webhook: ${hook.status} ${hook.text}`);
  const { body } = await front.operate("POST", "/operators", { name: "reader", role: "read" });
  return String(body["token"]);
}

export { OPERATOR_TOKEN };
