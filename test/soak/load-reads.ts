import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { LoadContext } from "./soak-world.ts";

const POLLED_MAX = 400;
const ANALYSTS = [
  "SELECT count() FROM events",
  "SELECT event_type, count() FROM events GROUP BY event_type",
  "SELECT * FROM delivery_funnel LIMIT 20",
  "SELECT * FROM bounce_rate LIMIT 20",
  "SELECT tenant_id, count() AS c FROM jobs GROUP BY tenant_id ORDER BY c DESC LIMIT 10",
  "SELECT throwIf(number = 5) FROM numbers(10)",
];

/** The pages and queries of tenants, operators and analysts. */
export class ReadLoad {
  /** Jobs that are polled until the end, each by one poll at a time. */
  private readonly polled: { readonly apiKey: () => string; readonly jobId: string; isAsked: boolean }[] = [];
  private password = "";

  async read(context: LoadContext): Promise<void> {
    const kind = context.dice.next();
    if (kind < 0.6) return this.poll(context);
    if (kind < 0.85) return this.tenantPage(context);
    if (kind < 0.95) return this.operatorPage(context);
    return this.analyse(context);
  }

  /** A job that was just accepted, or one that was polled before. */
  private async poll({ dice, book, api, tenants }: LoadContext): Promise<void> {
    const fresh = book.messages.findLast(({ jobId }) => jobId !== null);
    const known = this.polled.some(({ jobId }) => jobId === fresh?.jobId);
    const tenant = tenants.all.find(({ id }) => id === fresh?.tenant);
    if (fresh !== undefined && fresh.jobId !== null && tenant !== undefined && !known && dice.chance(0.5)) {
      if (this.polled.length >= POLLED_MAX) this.polled.splice(dice.between(0, POLLED_MAX - 1), 1);
      this.polled.push({ apiKey: () => tenant.apiKey, jobId: fresh.jobId, isAsked: false });
    }
    const one = dice.chance(0.5)
      ? this.polled.at(-1)
      : this.polled[dice.between(0, Math.max(0, this.polled.length - 1))];
    if (one === undefined || one.isAsked) return;
    one.isAsked = true;
    const { status, body } = await api.tenant(one.apiKey(), "GET", `/v1/jobs/${one.jobId}`);
    one.isAsked = false;
    if (status === 200) book.polledJob(one.jobId, body.status);
    if (status === 404) book.misdeed("no status goes back", `job ${one.jobId} was accepted and is not known`);
  }

  private async tenantPage({ dice, api, tenants }: LoadContext): Promise<void> {
    const { apiKey } = tenants.sender(dice);
    const day = new Date().toISOString().slice(0, 10);
    const path = dice.pick([
      `/v1/events?from=${day}&to=${day}&limit=100`,
      `/v1/events?from=${day}&to=${day}&limit=20&channel=wallet`,
      "/v1/jobs?limit=50",
      "/v1/jobs?limit=20&status=failed",
      `/v1/metrics?from=${day}&to=${day}&interval=hour`,
      `/v1/metrics?from=${day}&to=${day}&interval=day&group_by=channel&metrics=sent,delivery_rate`,
      "/v1/suppressions?limit=20",
      "/v1/webhooks",
    ]);
    await api.tenant(apiKey, "GET", path);
  }

  private async operatorPage({ dice, api, tenants }: LoadContext): Promise<void> {
    const tenant = tenants.sender(dice).id;
    const day = new Date().toISOString().slice(0, 10);
    const path = dice.pick([
      "/tenants?limit=50",
      `/tenants/${tenant}`,
      `/tenants/${tenant}/usage`,
      "/overview",
      "/plans",
      "/audit?limit=20",
      `/export?from=${day}&to=${day}&tenant=${tenant}&format=csv`,
      `/export?from=${day}&to=${day}&tenant=${tenant}&format=parquet`,
    ]);
    await api.operator("GET", path);
  }

  private async analyse({ dice, analystsPort, folder, did }: LoadContext): Promise<void> {
    if (this.password === "") {
      this.password = await readFile(join(folder, "disk/home/clickhouse-http-password"), "utf8").catch(() => "");
    }
    const answer = await fetch(`http://127.0.0.1:${analystsPort}/?default_format=JSONEachRow`, {
      method: "POST",
      headers: { "x-clickhouse-key": this.password.trim() },
      body: dice.pick(ANALYSTS),
      signal: AbortSignal.timeout(30_000),
      keepalive: false,
    }).catch(() => null);
    await answer?.text().catch(() => undefined);
    did(`analysts: ${answer?.status ?? 0}`);
  }
}
