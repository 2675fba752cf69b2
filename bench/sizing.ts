/**
 * Writes the tables of docs/sizing.md anew from `FIGURES`: `bun bench/sizing.ts`. A test holds the page to them.
 */
import { join } from "node:path";

/** What an e-mail takes, as `npm run bench` measured it: the only figures that the page is computed from. */
export const FIGURES = {
  /** CPU of each part for a message, in microseconds. */
  micros: {
    /** `whole`, the API's process, its event loop. */
    api: 60,
    /** `webhook`, ten statuses a body, server CPU: a later report of a message. */
    report: 13,
    /** `whole`, the dispatcher's process: composing and handing over a small mail, events and settling included. */
    dispatcher: 270,
    /** `whole`, signed, less the above: RSA-2048. */
    dkim: 880,
    /** `backlog`, recorded in batches of a thousand, less the two inserts of each: for each event. */
    row: 11,
    /** `whole`, Redis CPU: accept, pull, settle and record. */
    redis: 63,
    /** `webhook`, ten statuses a body, Redis CPU. */
    redisReport: 8,
  },
  /**
   * `recorder`: inserts a second of a process that has events to record, however many, and what each takes whatever it
   * holds (cores at 100 events a second / inserts a second), event store included.
   */
  inserts: { perSecond: 4.7, cpuMs: 25 },
  /** Bytes for a message. */
  bytes: {
    /** `backlog`: in Redis while it waits. */
    queued: 448,
    /** `memory`: in Redis from its end until fifteen minutes after. */
    finished: 190,
    /** `whole`: appended to Redis' file. */
    appended: 753,
    /** `backlog`: in the event store, for each event and for each job, indexes and sums included. */
    event: 15.3,
    job: 14,
    /** `mail`: over the wire. */
    mail: 1_175,
  },
  /** `sent`, and what becomes of it later: delivered, opened, clicked, bounced. */
  eventsPerMessage: 2.3,
  /** MiB of a process at rest and at the peak of a burst (`memory`). */
  processMiB: { rest: 540, peak: 950 },
} as const;

/** What the page assumes of the service. */
export const ASSUMED = {
  /** The busiest second beside the mean of the day. */
  peakFactor: 8,
  /** Of a core, and of Redis' only thread, that is used at that peak. */
  usedAtPeak: 0.5,
  /** Hours of the mean that wait while a relay is away. */
  outageHours: 6,
  /** Copies of the event store, and of Redis' data (a master and its replica). */
  replicas: 2,
  eventsKeptMonths: 13,
  jobsKeptDays: 90,
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
  /** Share of one Redis thread at the peak, and how many masters keep it at `usedAtPeak`. */
  readonly redisThread: number;
  readonly redisMasters: number;
  readonly redisGiB: number;
  readonly appendedMiBPerSecond: number;
  /** On one copy. */
  readonly eventStoreGiB: number;
  readonly mailMbitPerSecond: number;
}

export function sizeOf(perDay: number): Size {
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
    appendedMiBPerSecond: (peakPerSecond * bytes.appended) / 1024 ** 2,
    eventStoreGiB: (eventBytes + perDay * bytes.job * jobsKeptDays) / GIB,
    mailMbitPerSecond: (peakPerSecond * bytes.mail * 8) / 1_000_000,
  };
}

function insertCores(): number {
  const { perSecond, cpuMs } = FIGURES.inserts;
  return (perSecond * cpuMs) / 1_000;
}

/** Messages a second at which each part is at its end, with one core or thread of it wholly used. */
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

/** The page with its tables as they come out of the figures. */
export function withTables(page: string): string {
  const [head, rest] = page.split(BEGIN);
  const tail = rest?.split(END)[1];
  if (head === undefined || tail === undefined) throw new Error("docs/sizing.md has no place for its tables");
  return `${head}${BEGIN}\n\n${tables()}\n\n${END}${tail}`;
}

function tables(): string {
  const sizes = VOLUMES.map(sizeOf);
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
