/**
 * Regenerates the tables of docs/sizing.md from `FIGURES`: `bun bench/sizing.ts`. A test compares the page with them.
 */
import { join } from "node:path";

/** The cost of an e-mail, as `npm run bench` measured it. The page is computed from these figures alone. */
export const FIGURES = {
  /** CPU of each part per message, in microseconds. */
  micros: {
    /** `whole`, the API's process, its event loop. */
    api: 60,
    /** `webhook`, ten statuses per body, server CPU: a later report on a message. */
    report: 13,
    /** `whole`, the dispatcher's process: composing and sending a small mail, including events and settling. */
    dispatcher: 270,
    /** `whole`, signed, minus the above: RSA-2048. */
    dkim: 880,
    /** `backlog`, recorded in batches of a thousand, without the two inserts per batch: per event. */
    row: 11,
    /** `whole`, Redis CPU: accept, pull, settle and record. */
    redis: 63,
    /** `webhook`, ten statuses per body, Redis CPU. */
    redisReport: 8,
  },
  /**
   * `recorder`: inserts per second of a process that has any number of events to record, and the cost of each whatever
   * its size (cores at 100 events per second / inserts per second), event store included.
   */
  inserts: { perSecond: 5.9, cpuMs: 29 },
  /** Bytes per message. */
  bytes: {
    /** `backlog`: in Redis while it waits. */
    queued: 448,
    /** `memory`: in Redis for fifteen minutes after its end. */
    finished: 190,
    /** In Redis for a day: an `Idempotency-Key` as `order-1042` (`engine/queue/queue-room.test.ts` holds the count to it). */
    key: 245,
    /** `whole`: appended to Redis's file. */
    appended: 753,
    /** `backlog`: in the event store, per event and per job, including indexes and sums. */
    event: 15.3,
    job: 14,
    /** `mail`: over the wire. */
    mail: 1_175,
  },
  /** `sent`, and later events: delivered, opened, clicked, bounced. */
  eventsPerMessage: 2.3,
} as const;

/** The page's assumptions about the service. */
export const ASSUMED = {
  /** The busiest second, relative to the day's mean. */
  peakFactor: 8,
  /** Utilisation of a core, and of Redis's only thread, at that peak. */
  usedAtPeak: 0.5,
  /** Hours of mean traffic that wait while a relay is away. */
  outageHours: 6,
  /** Copies of the event store, and of Redis's data (a master and its replica). */
  replicas: 2,
  /** Includes the month by which the oldest events outlive the settings: a month's rows are dropped together. */
  eventsKeptMonths: 13 + 1,
  jobsKeptDays: 90 + 30,
} as const;

const DAY_SECONDS = 86_400;
const FINISHED_KEPT_SECONDS = 900;
const GIB = 1024 ** 3;
const VOLUMES = [1_000_000, 10_000_000, 100_000_000] as const;

export interface Size {
  readonly perDay: number;
  readonly meanPerSecond: number;
  readonly peakPerSecond: number;
  readonly cores: Readonly<Record<"api" | "dispatcher" | "dkim" | "recorder", number>>;
  /** Share of one Redis thread at the peak, and the number of masters that keep it at `usedAtPeak`. */
  readonly redisThread: number;
  readonly redisMasters: number;
  readonly redisGiB: number;
  /** With a key of its own for each message. */
  readonly redisKeysGiB: number;
  readonly appendedMiBPerSecond: number;
  /** Per copy. */
  readonly eventStoreGiB: number;
  readonly mailMbitPerSecond: number;
}

export function computeSize(perDay: number): Size {
  const { micros, bytes, eventsPerMessage } = FIGURES;
  const { peakFactor, usedAtPeak, outageHours, eventsKeptMonths, jobsKeptDays } = ASSUMED;
  const meanPerSecond = perDay / DAY_SECONDS;
  const peakPerSecond = meanPerSecond * peakFactor;
  const coresAt = (each: number) => (peakPerSecond * each) / 1_000_000 / usedAtPeak;
  const redisMicros = micros.redis + (eventsPerMessage - 1) * micros.redisReport;
  const redisThread = (peakPerSecond * redisMicros) / 1_000_000;
  const waiting = meanPerSecond * outageHours * 3_600 * bytes.queued;
  const finished = peakPerSecond * FINISHED_KEPT_SECONDS * bytes.finished;
  const eventBytes = perDay * eventsPerMessage * bytes.event * eventsKeptMonths * 30.4;
  return {
    perDay,
    meanPerSecond,
    peakPerSecond,
    cores: {
      api: coresAt(micros.api + (eventsPerMessage - 1) * micros.report),
      dispatcher: coresAt(micros.dispatcher),
      dkim: coresAt(micros.dkim),
      recorder: insertCores() / usedAtPeak + coresAt(micros.row * eventsPerMessage),
    },
    redisThread,
    redisMasters: Math.max(1, Math.ceil(redisThread / usedAtPeak)),
    redisGiB: (waiting + finished) / GIB,
    redisKeysGiB: (perDay * bytes.key) / GIB,
    appendedMiBPerSecond: (peakPerSecond * bytes.appended) / 1024 ** 2,
    eventStoreGiB: (eventBytes + perDay * bytes.job * jobsKeptDays) / GIB,
    mailMbitPerSecond: (peakPerSecond * bytes.mail * 8) / 1_000_000,
  };
}

function insertCores(): number {
  const { perSecond, cpuMs } = FIGURES.inserts;
  return (perSecond * cpuMs) / 1_000;
}

/** Messages per second at which each part reaches its limit, with one core or thread fully used. */
export function ceilings(): readonly (readonly [part: string, perSecond: number])[] {
  const { micros, eventsPerMessage } = FIGURES;
  const perSecond = (each: number) => Math.round(1_000_000 / each / 100) * 100;
  return [
    ["Redis, one master", perSecond(micros.redis + (eventsPerMessage - 1) * micros.redisReport)],
    ["API, one process", perSecond(micros.api + (eventsPerMessage - 1) * micros.report)],
    ["dispatcher, one process, unsigned", perSecond(micros.dispatcher)],
    ["dispatcher, one core, signed", perSecond(micros.dispatcher + micros.dkim)],
    ["recorder and event store, one core", perSecond((micros.row * eventsPerMessage) / (1 - insertCores()))],
  ];
}

const BEGIN = "<!-- written by bench/sizing.ts -->";
const END = "<!-- end -->";

/** The page with its tables regenerated from the figures. */
export function withTables(page: string): string {
  const [head, rest] = page.split(BEGIN);
  const tail = rest?.split(END)[1];
  if (head === undefined || tail === undefined) throw new Error("docs/sizing.md has no place for its tables");
  return `${head}${BEGIN}\n\n${tables()}\n\n${END}${tail}`;
}

function tables(): string {
  const sizes = VOLUMES.map(computeSize);
  const row = (name: string, of: (size: Size) => string) => `| ${name} | ${sizes.map(of).join(" | ")} |`;
  const cores = (part: keyof Size["cores"]) => (size: Size) => shown(size.cores[part]);
  const volumes = [
    `| messages a day | ${VOLUMES.map((perDay) => perDay.toLocaleString("en")).join(" | ")} |`,
    `|---|${VOLUMES.map(() => "---|").join("")}`,
    row("a second: mean / peak", (size) => `${shown(size.meanPerSecond)} / ${shown(size.peakPerSecond)}`),
    row("cores, API: requests and reports", cores("api")),
    row("cores, dispatcher", cores("dispatcher")),
    row("… and for signing all of it (DKIM)", cores("dkim")),
    row("cores, recorder and event store", cores("recorder")),
    row("cores, together", (size) => shown(Object.values(size.cores).reduce((sum, each) => sum + each, 0))),
    row("Redis: share of one thread at the peak", (size) => `${shown(size.redisThread * 100)} %`),
    row("Redis: masters", (size) => String(size.redisMasters)),
    row("Redis: memory, all masters", (size) => `${shown(size.redisGiB)} GiB`),
    row("… and for an `Idempotency-Key` with each message", (size) => `${shown(size.redisKeysGiB)} GiB`),
    row("Redis: appended at the peak", (size) => `${shown(size.appendedMiBPerSecond)} MiB/s`),
    row("event store: disk, one copy", (size) => `${shown(size.eventStoreGiB)} GiB`),
    row("mail at the peak, as small as measured", (size) => `${shown(size.mailMbitPerSecond)} Mbit/s`),
  ];
  const ends = [
    "| part | messages/s |",
    "|---|---|",
    ...ceilings().map(([part, rate]) => `| ${part} | ${shown(rate)} |`),
  ];
  return [...volumes, "", "Where each part ends, alone and wholly used:", "", ...ends].join("\n");
}

/** Two significant digits. */
function shown(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(2)));
}

if (import.meta.main) {
  const page = Bun.file(join(import.meta.dir, "../docs/sizing.md"));
  await Bun.write(page, withTables(await page.text()));
}
