import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { METRIC_HELP } from "../../src/runtime/telemetry/metric-help.ts";
import { eventually } from "../support/eventually.ts";
import { startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

const ROOT = join(import.meta.dir, "../..");
const RULES = "infra/prometheus/alerts.yaml";

/** Metrics that a server has only after their first event, or with a setting that this one lacks. */
const RARE = [
  "api_key_expiry_seconds",
  "chat_account_news_total",
  "child_up",
  "google_callbacks_total",
  "jobs_held",
  "leases_in_doubt_total",
  "leases_lost_total",
  "mail_log_lag_seconds",
  "mail_log_lines_unreadable_total",
  "mail_log_up",
  "quarantined_total",
  "relay_open",
  "trace_spans_dropped_total",
  "trace_spans_exported_total",
  "webhook_parts_unknown_total",
  "webhooks_disabled",
] as const;

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: { readonly summary: string; readonly runbook_url: string };
}

let home: Awaited<ReturnType<typeof temporaryHome>>;
let waybill: Waybill;
let metrics: string;

beforeAll(async () => {
  home = await temporaryHome();
  waybill = await startWaybill(home.path, {});
  for (const domain of ["example.com", "reject.test", "defer.test", "slow.test"]) {
    const body = { to_address: `ann@${domain}`, subject: "Hi", html: "<p>Hi</p>" };
    expect((await waybill.request(waybill.demoKey, "POST", "/v1/send/email", body)).status).toBe(202);
  }
  metrics = await eventually("a server at work has metrics of all that it does", async () => {
    const text = await (await fetch(`${waybill.url}/metrics`)).text();
    const isWhole = [
      'outcome="delivered"',
      'cause="refused"} 1',
      "waybill_tenant_queue_jobs{",
      "recorder_lag_seconds{",
    ];
    return isWhole.every((part) => text.includes(part)) ? text : null;
  });
}, 300_000);

afterAll(async () => {
  await waybill.kill();
  await home.remove();
});

const read = (path: string) => readFile(join(ROOT, path), "utf8");

async function rules(): Promise<readonly Rule[]> {
  const document = Bun.YAML.parse(await read(RULES)) as { groups: { rules: Rule[] }[] };
  return document.groups.flatMap((group) => group.rules);
}

/** Expressions of the dashboard's panels. */
async function panels(): Promise<readonly string[]> {
  const { panels: all } = JSON.parse(await read("infra/grafana/waybill.json")) as {
    panels: { targets?: { expr: string }[] }[];
  };
  return all.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
}

function familiesIn(expression: string): readonly string[] {
  const names = expression.match(/waybill_\w+/g) ?? [];
  return names.map((name) => name.replace(/_seconds_(bucket|count|sum)$/, "_seconds"));
}

test("every metric of the dashboard and of the alerts is one that a server has", async () => {
  const expressions = [...(await panels()), ...(await rules()).map(({ expr }) => expr)];
  expect(expressions.length).toBeGreaterThan(35);
  const known = new Set(Array.from(metrics.matchAll(/^# TYPE (\S+)/gm), ([, name]) => name ?? ""));
  const missing = [...new Set(expressions.flatMap(familiesIn))].filter((name) => !known.has(name));
  expect(missing.map((name) => name.replace("waybill_", "")).sort()).toEqual([...RARE]);
  for (const name of RARE) expect(METRIC_HELP.has(name.replace(/_total$/, ""))).toBe(true);
});

test("expressions sum by labels that their metrics have", async () => {
  const rare = new Set<string>(RARE.map((name) => `waybill_${name}`));
  for (const expression of [...(await panels()), ...(await rules()).map(({ expr }) => expr)]) {
    const families = familiesIn(expression);
    if (families.some((name) => rare.has(name))) continue;
    const labels = Array.from(expression.matchAll(/by \(([\w, ]+)\)/g), ([, list = ""]) => list.split(", ")).flat();
    // Prometheus itself sets the instance.
    for (const label of new Set(labels.filter((each) => each !== "instance"))) {
      const has = families.some((name) => new RegExp(`^${name}\\w*\\{[^}]*\\b${label}="`, "m").test(metrics));
      expect([expression, label, has]).toEqual([expression, label, true]);
    }
  }
});

test("every metric explains itself", () => {
  for (const [, name = "", help = ""] of metrics.matchAll(/^# HELP waybill_(\S+) (.*)$/gm)) {
    if (/^(process|nodejs)_/.test(name)) continue;
    expect([name, METRIC_HELP.get(name.replace(/_total$/, ""))]).toEqual([name, help]);
  }
});

test("every alert has a section in the runbook, and the runbook has none without an alert", async () => {
  const runbook = await read("docs/runbook.md");
  const sections = runbook.split(/^## /m).slice(1);
  const alerts = await rules();
  expect(sections.map((text) => text.slice(0, text.indexOf("\n")))).toEqual(alerts.map(({ alert }) => alert));
  for (const [i, { alert, annotations }] of alerts.entries()) {
    expect(annotations.runbook_url).toBe(`docs/runbook.md#${alert.toLowerCase()}`);
    expect(annotations.summary).not.toBe("");
    for (const part of ["**Look at:**", "**Do:**"]) expect([alert, sections[i]?.includes(part)]).toEqual([alert, true]);
  }
});

const promtool = Bun.which("promtool");

test.skipIf(promtool === null)(
  "each alert fires by its fault and none when all is well (Debian: prometheus)",
  async () => {
    const run = Bun.spawn([promtool ?? "", "test", "rules", "infra/prometheus/alerts.test.yaml"], {
      cwd: ROOT,
      stdout: "pipe",
      stderr: "pipe",
    });
    const said = await new Response(run.stdout).text();
    expect([await run.exited, said.includes("SUCCESS")]).toEqual([0, true]);
  },
  // It evaluates every rule for every minute of every case.
  30_000,
);

test("each alert has a case that fires it", async () => {
  const cases = await read("infra/prometheus/alerts.test.yaml");
  for (const { alert } of await rules()) expect(cases).toContain(`name: ${alert} fires`);
  expect(cases).toContain("nothing fires when all is well");
});
