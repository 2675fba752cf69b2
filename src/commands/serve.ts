import { join } from "node:path";
import { type App, startApp } from "../app/app.ts";
import { CHANNELS } from "../app/channels.ts";
import type { Place } from "../app/place.ts";
import { hasEmbeddedStore } from "../app/stores.ts";
import { type Config, doubtsAbout } from "../config/config.ts";
import { SETTINGS } from "../config/settings.ts";
import type { DemoTenant } from "../demo/demo-tenant.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import { availableCores } from "../processes/available-cores.ts";
import { listChildren, PROCESSES_MAX_DEFAULT, planProcesses } from "../processes/process-plan.ts";
import { openFilesDoubt } from "../runtime/open-files.ts";
import { called, processTelemetry } from "./command-line.ts";

/** The most time that stopping may take; anything slower is cut off. */
const STOP_MS_MAX = 10_000;

export interface ServeOptions {
  readonly config: Config;
  readonly version: string;
  /** Whether the operator's token came from the environment, and so is in no file. */
  readonly isTokenGiven: boolean;
  /** The same for the password of the analysts' port. */
  readonly isPasswordGiven: boolean;
}

/** Runs the roles until a signal asks it to stop or a part fails. */
export async function serve(options: ServeOptions): Promise<number> {
  const { config, version } = options;
  const place = planPlace(config);
  const telemetry = processTelemetry(config, place.kind === "main" ? "main" : undefined);
  for (const doubt of doubtsAbout(config)) telemetry.log("warn", doubt);
  warnOfOpenFiles(config, place, telemetry);
  const signalled = nextSignal();
  const house = await Promise.race([
    startApp({ channels: CHANNELS, config, telemetry, version, place }),
    signalled.then(() => null),
  ]);
  // Stopped before any request was accepted: the started parts end with the process.
  if (house === null) return 0;
  console.log(firstScreen(options, house, place));
  let code = 0;
  let graceMs = 0;
  try {
    const signal = await Promise.race([signalled, house.broken]);
    // An interrupt comes from somebody waiting at a terminal, and a lone process has no neighbour to hand over to.
    if (signal === "SIGTERM" && config.redis !== null) graceMs = config.drainGraceMs;
    telemetry.log("info", "stopping: finishing what is under way", { signal });
  } catch (error) {
    code = 1;
    telemetry.log("error", "a part is gone for good; stopping", { error: String(error) });
  }
  const overdue = setTimeout(() => {
    telemetry.log("error", "not everything stopped in time");
    process.exit(1);
  }, STOP_MS_MAX);
  await house.stop(graceMs);
  clearTimeout(overdue);
  return code;
}

/** Whether the roles are spread over several processes. */
function planPlace(config: Config): Place {
  const { roles, shards } = config;
  const wanted = config.processes ?? { total: Math.min(availableCores(), PROCESSES_MAX_DEFAULT) };
  const plan = planProcesses({ roles, wanted, hasStores: hasEmbeddedStore(config), shards });
  return plan.api + plan.dispatcher === 0 ? { kind: "alone" } : { kind: "main", plan };
}

/**
 * Warns about a low limit of open files. Children have the same limit, and need at most as many files, except for the stores.
 */
function warnOfOpenFiles(config: Config, place: Place, telemetry: Telemetry): void {
  const roles = place.kind === "main" ? place.plan.mainRoles : config.roles;
  const doubt = openFilesDoubt({
    hasStores: hasEmbeddedStore(config),
    delivers: config.roles.includes("dispatcher"),
    serves: place.kind !== "main" || roles.includes("api"),
  });
  if (doubt !== null) telemetry.log("warn", doubt);
}

/** Further signals have no effect: a terminal interrupts both npm and us, and npm forwards its own. */
function nextSignal(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => resolve(signal));
  });
}

function firstScreen(options: ServeOptions, house: App, place: Place): string {
  const { config, isTokenGiven, isPasswordGiven } = options;
  const { url, serviceUrl, metricsUrl, adminUrl, smtpAddress, clickhouseUrl, demo } = house;
  const rows: [string, string][] = [];
  if (url !== null) {
    rows.push(
      ["API", url],
      ["Dashboard", `${adminUrl ?? url}/dash`],
      ["OpenAPI", `${url}/openapi.json (to read: ${url}/docs)`],
    );
  }
  const service = metricsUrl === null && adminUrl === null ? "/health, /ready, /metrics" : "/health, /ready";
  if (url === null) rows.push(["Service", `${serviceUrl} (${service})`]);
  if (adminUrl !== null)
    rows.push(["Admin", `${adminUrl} (${url === null ? "" : "/dash, "}/metrics, /health, /ready)`]);
  if (metricsUrl !== null) rows.push(["Metrics", `${metricsUrl}/metrics`]);
  if (smtpAddress !== null) {
    const certificate = config.submissionCertificate === null ? ", self-signed certificate" : "";
    rows.push(["SMTP", `${smtpAddress} (STARTTLS${certificate}: docs/smtp.md)`]);
  }
  if (clickhouseUrl !== null) {
    rows.push(["ClickHouse", `${clickhouseUrl} (read-only: docs/analysts.md)`]);
    const file = join(config.home, "clickhouse-http-password");
    rows.push(["  password", isPasswordGiven ? "from CLICKHOUSE_HTTP_PASSWORD" : `in ${file}`]);
  }
  rows.push(["Roles", config.roles.join(", ")], ...processRows(config, house, place), ["Data folder", config.home]);
  rows.push(["Operator token", isTokenGiven ? "from OPERATOR_TOKEN" : `in ${join(config.home, "operator-token")}`]);
  if (config.providers === "sandbox") rows.push(["Providers", sandboxRow(config)]);
  if (demo.apiKey !== null) rows.push(["Demo tenant", "demo"], ["API key", `${demo.apiKey} (shown this once)`]);
  const lines = ["", "Waybill is ready.", "", ...rows.map(([name, value]) => `  ${name.padEnd(15)} ${value}`), ""];
  if (url !== null) lines.push(...firstEmail(url, demo));
  return lines.join("\n");
}

function sandboxRow(config: Config): string {
  const real: string[] = PROVIDER_ADDRESSES.filter((key) => config[key] !== null).map((key) => SETTINGS[key].name);
  const { outboundAllow, spamFilter } = config;
  if (outboundAllow?.some((network) => !LOOPBACK.test(network)) === true) real.push(SETTINGS.outboundAllow.name);
  if (spamFilter !== "off" && spamFilter !== "builtin") real.push(SETTINGS.spamFilter.name);
  return real.length === 0 ? "sandbox: nothing leaves this machine" : `sandbox, except ${real.join(", ")}`;
}

const LOOPBACK = /^(?:127\.[\d.]+\/(?:[89]|[12]\d|3[0-2])|::1\/128)$/;
/** Each replaces the sandbox's address, except for the trace collector, which has none. */
const PROVIDER_ADDRESSES = [
  "smtpUrl",
  "whatsappApiUrl",
  "googleWalletApiUrl",
  "googleTokenUrl",
  "googleCallbackKeysUrl",
  "apnsUrl",
  "tracesUrl",
] as const;

/** Returns one row per process, with its roles and parts. */
function processRows(config: Config, { children }: App, place: Place): [string, string][] {
  if (place.kind !== "main") return [];
  const { mainRoles } = place.plan;
  const own = [...mainRoles, ...(hasEmbeddedStore(config) ? ["stores"] : [])];
  const rows: [string, string][] = [["Processes", `${1 + children.size} (docs/processes.md)`]];
  rows.push(["  main", `${own.join(", ") || "watches the others"} (${process.pid})`]);
  const roles = listChildren(place.plan);
  for (const role of ["api", "dispatcher"]) {
    const pids = Array.from(children).flatMap(([name, pid]) => (roles.get(name) === role ? [pid] : []));
    if (pids.length > 0) rows.push([`  ${role}`, `${pids.length} (${pids.join(", ")})`]);
  }
  return rows;
}

function firstEmail(url: string, { exists, apiKey }: DemoTenant): readonly string[] {
  const intro = exists
    ? [`Send an e-mail (a new key: ${called("key create demo")}):`]
    : [
        `Send an e-mail (${called("tenant create NAME --id ID --permissions allow_raw_html")} makes a tenant,`,
        `${called("key create ID")} its key):`,
      ];
  const body = JSON.stringify({ to_address: "ann@example.com", subject: "Hello", html: "<p>Hello from Waybill</p>" });
  return [
    ...(apiKey === null ? intro : ["Send a first e-mail:"]),
    "",
    `  curl -s ${url}/v1/send/email -H 'X-API-Key: ${apiKey ?? "YOUR_KEY"}' \\`,
    `    -H 'Content-Type: application/json' -d '${body}'`,
    "",
  ];
}
