/**
 * Sends requests repeatedly, in a separate process so that it slows no measurement: `bun test/support/run-flood.ts`
 * with a `Flood` as JSON on standard input prints `ready` when it starts, and the number of answers per status, as
 * JSON, when all are sent or on SIGTERM.
 */
import type { Flood } from "./flood.ts";

// `startFlood` passes a flood of this form.
const flood = (await Bun.stdin.json()) as Flood;
const statuses: Record<string, number> = {};
const body = new TextEncoder().encode(buildBody(flood));
const total = flood.total ?? Number.POSITIVE_INFINITY;
let asked = 0;
const stopped = new AbortController();

process.on("SIGTERM", () => {
  stopped.abort();
  finish();
});

function finish(): never {
  console.log(JSON.stringify(statuses));
  process.exit(0);
}

function buildBody({ content, bytes }: Flood): string {
  if (content === "objects") {
    const objects = Array.from({ length: Math.floor(bytes / 3) - 20 }, () => "{}").join(",");
    return `{"data":[${objects}]}`;
  }
  const mail = { to_address: "flood@example.com", subject: "Hello", html: "<p>Hello</p>" };
  if (content === "mail") return JSON.stringify(mail);
  return JSON.stringify({ ...mail, data: { text: "x".repeat(bytes - 200) } });
}

async function send(): Promise<void> {
  const apiKey = flood.apiKeys[asked++ % flood.apiKeys.length] ?? "";
  let status = "broken";
  try {
    const headers = { "x-api-key": apiKey, "content-type": "application/json" };
    const response = await fetch(flood.url, { method: "POST", headers, body, signal: stopped.signal });
    await response.bytes();
    status = String(response.status);
  } catch {
    // The server closed the connection and refuses the rest of the request.
  }
  statuses[status] = (statuses[status] ?? 0) + 1;
}

async function sendOn(pauseMs: number): Promise<void> {
  while (!stopped.signal.aborted && asked < total) {
    await send();
    if (pauseMs > 0) await Bun.sleep(pauseMs);
  }
}

async function sendAtRate(perSecond: number): Promise<void> {
  const startedMs = performance.now();
  const answers: Promise<void>[] = [];
  for (let sent = 0; !stopped.signal.aborted && sent < total; sent += 1) {
    await Bun.sleep(Math.max(0, startedMs + (sent * 1000) / perSecond - performance.now()));
    answers.push(send());
  }
  await Promise.all(answers);
}

console.log("ready");
const { rate } = flood;
if ("perSecond" in rate) await sendAtRate(rate.perSecond);
else await Promise.all(Array.from({ length: rate.connections }, () => sendOn(rate.pauseMs)));
finish();
