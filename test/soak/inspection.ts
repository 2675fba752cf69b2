import type { ExportedEvent } from "./book.ts";
import type { EventAudit as Audit } from "./event-audit.ts";
import { EventAudit } from "./event-audit.ts";
import { type AskedJob, judge, type Verdict } from "./judge.ts";
import { OPERATOR_TOKEN } from "./service-environment.ts";
import type { SoakWorld } from "./soak-world.ts";

const LOOK_EVERY_MS = 15_000;
const ASKED_MAX = 500;
const DAY_MS = 86_400_000;
const EXPORT_TRIES = 10;

/** Checks all promises until none is broken any more, or the time is over: work in flight has to end first. */
export async function inspect(
  world: SoakWorld,
  dispatchers: number,
  withinMs: number,
  say: (text: string) => void,
): Promise<readonly Verdict[]> {
  const giveUpAtMs = performance.now() + withinMs;
  while (true) {
    const events = await readExport(world).catch((error: unknown) => {
      world.book.misdeed("every event can be read", String(error));
      return new EventAudit(world.book);
    });
    const asked = await askForRest(world, events);
    const verdicts = judge({ book: world.book, faults: world.faults, events, asked }, dispatchers);
    const broken = verdicts.filter((one) => one.broken.length > 0);
    if (broken.length === 0 || performance.now() > giveUpAtMs) return verdicts;
    say(`not yet: ${broken.map((one) => `${one.promise} (${one.broken.length})`).join("; ")}`);
    await Bun.sleep(LOOK_EVERY_MS);
  }
}

/** All events of all tenants. */
async function readExport(world: SoakWorld): Promise<Audit> {
  const day = (ms: number) => new Date(ms).toISOString().slice(0, 10);
  // Clocks were up to an hour wrong.
  const path = `/dash/api/export?from=${day(Date.now() - 2 * DAY_MS)}&to=${day(Date.now() + DAY_MS)}&format=ndjson`;
  for (let tries = 1; ; tries += 1) {
    try {
      return await readLines(`${world.service.url}${path}`, new EventAudit(world.book));
    } catch (error) {
      if (tries === EXPORT_TRIES) throw error;
      await Bun.sleep(3_000);
    }
  }
}

async function readLines(url: string, audit: Audit): Promise<Audit> {
  const response = await fetch(url, { headers: { authorization: `Bearer ${OPERATOR_TOKEN}` }, keepalive: false });
  if (response.status !== 200 || response.body === null) throw new Error(`the export was answered ${response.status}`);
  let rest = "";
  const decoder = new TextDecoder();
  const takeLine = (line: string) => {
    // The export's format is documented.
    if (line !== "") audit.take(JSON.parse(line) as ExportedEvent);
  };
  for await (const chunk of response.body) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) takeLine(line);
  }
  takeLine(rest);
  return audit;
}

/** Asks the service about jobs without a final event. */
async function askForRest(world: SoakWorld, events: Audit): Promise<ReadonlyMap<string, AskedJob>> {
  const { book, api, tenants } = world;
  const asked = new Map<string, AskedJob>();
  const open = book.messages.filter(
    ({ fate, jobId }) => fate === "accepted" && jobId !== null && !events.isOver(jobId),
  );
  for (const { tenant, jobId } of open.slice(0, ASKED_MAX)) {
    const apiKey = tenants.all.find(({ id }) => id === tenant)?.apiKey ?? "";
    const { status, body } = await api.tenant(apiKey, "GET", `/v1/jobs/${jobId}`);
    const explained = await api.tenant(apiKey, "GET", `/v1/jobs/${jobId}/explain`);
    asked.set(jobId ?? "", {
      status: status === 200 ? body.status : String(status),
      result: JSON.stringify(body?.result ?? null).slice(0, 200),
      waitsFor: explained.body?.waits_for ?? null,
    });
  }
  return asked;
}
