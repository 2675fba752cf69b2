import { CHANNELS } from "../app/channels.ts";
import { hasEmbeddedStore, openEventStore } from "../app/stores.ts";
import type { Config } from "../config/config.ts";
import { type DemoRequest, writeDemoData } from "../demo/demo-data.ts";
import { eventsKeptUntilMs } from "../events/schema/retention.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { FolderLock } from "../storage/folder-lock.ts";
import { runningStart } from "../tasks/control-socket.ts";
import { processTelemetry, UsageError } from "./command-line.ts";
import { withRegistry } from "./with-registry.ts";

const DAY_MS = 86_400_000;
const SEED = 1;
const PER_DAY = 1_000;
/** The whole history is in memory while it is built. */
const PER_DAY_MAX = 10_000;

export interface DemoDataOptions {
  readonly seed?: string | undefined;
  readonly "per-day"?: string | undefined;
  readonly until?: string | undefined;
  readonly force?: boolean | undefined;
}

/** `waybill demo-data`: a month of events for tenants `demo-…`, for the dashboard and for analysts. */
export async function demoData(config: () => Config, options: DemoDataOptions): Promise<number> {
  const request = requestFrom(options);
  const settings = config();
  refuseExpired(request, settings);
  const written = await write(settings, request);
  console.log(
    `${String(written)} events of 30 days are there, for the tenants demo-…; they end before ${day(request.untilMs)}.`,
  );
  return 0;
}

const say = (line: unknown) => console.log(String(line));

async function write(config: Config, request: DemoRequest): Promise<unknown> {
  const lock = hasEmbeddedStore(config) ? FolderLock.tryAcquire(config.home) : null;
  if (hasEmbeddedStore(config) && lock === null) {
    return runningStart(config.home).ask("demo-data", { ...request }, say);
  }
  const options = { config, channels: CHANNELS, clock: systemClock, telemetry: processTelemetry(config) };
  const eventStore = await openEventStore(options, "leave");
  try {
    await eventStore.identity();
    return await withRegistry(config, ({ registry }) => writeDemoData({ registry, eventStore }, request, say));
  } finally {
    await eventStore.close();
    lock?.release();
  }
}

function requestFrom(options: DemoDataOptions): DemoRequest {
  const today = Math.floor(systemClock.nowMs() / DAY_MS) * DAY_MS;
  const untilMs = options.until === undefined ? today : Date.parse(`${options.until}T00:00:00Z`);
  const isDay = options.until === undefined || /^\d{4}-\d{2}-\d{2}$/.test(options.until);
  // Events of the future would block the ids of real ones.
  if (!isDay || !(untilMs <= today)) throw new UsageError("--until takes a day like 2026-11-01, today at the latest");
  return {
    seed: wholeNumber("--seed", options.seed, { otherwise: SEED, max: 2 ** 31 }),
    perDay: wholeNumber("--per-day", options["per-day"], { otherwise: PER_DAY, max: PER_DAY_MAX }),
    untilMs,
    isForced: options.force === true,
  };
}

/** Refuses days whose events would expire at once. */
function refuseExpired({ untilMs }: DemoRequest, { eventsKeptMonths }: Config): void {
  if (eventsKeptUntilMs(untilMs, eventsKeptMonths) > systemClock.nowMs()) return;
  throw new UsageError(`--until takes a day of the last ${eventsKeptMonths} months (EVENTS_KEPT_MONTHS)`);
}

function wholeNumber(
  name: string,
  text: string | undefined,
  { otherwise, max }: { otherwise: number; max: number },
): number {
  if (text === undefined) return otherwise;
  const value = Number(text);
  if (/^[1-9]\d*$/.test(text) && value <= max) return value;
  throw new UsageError(`${name} takes a whole number from 1 to ${max}`);
}

function day(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
