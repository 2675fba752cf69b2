import { parseArgs } from "node:util";

/** The location of the stores, and the number of processes per start. */
export type Shape = "embedded" | "processes" | "servers";

export interface SoakOptions {
  readonly seed: number;
  readonly minutes: number;
  /** Messages a second, over all tenants and channels. */
  readonly rate: number;
  readonly shape: Shape;
  /** `PROCESSES` of each start. */
  readonly processes: string;
  readonly tenants: number;
  /** The report's files: `FILE` in Markdown, and `FILE.json`; null: only the screen. */
  readonly report: string | null;
  /** Faults by name; null: all that this machine can do. */
  readonly only: ReadonlySet<string> | null;
  /** Faults by name to be left out. */
  readonly without: ReadonlySet<string>;
  /** Seconds between the end of a fault and the next one, on average. */
  readonly gapSeconds: number;
  /** How long jobs have to end after the last fault. */
  readonly drainMinutes: number;
  /** The size of the data folder's file system, where one of its own can be mounted. */
  readonly diskMib: number;
}

export const USAGE = `npm run soak -- [options]

  --hours N, --minutes N   how long there is load and trouble (10 minutes)
  --seed S                 faults and load are drawn from it
  --rate R                 messages a second (25)
  --processes P            PROCESSES of the start (api=1,dispatcher=2), stores in the data folder
  --servers                the same with a Redis and a PostgreSQL of their own behind proxies that break
  --embedded               everything in one process
  --tenants N              most of them quiet (2000)
  --only a,b               these faults alone; "none": no fault
  --without a,b            all faults but these
  --gap S                  seconds between two faults (20)
  --drain N                minutes that jobs have to end after the last fault (12)
  --disk-mib N             room of the data folder (3072)
  --report FILE            writes FILE (Markdown) and FILE.json
`;

/** Throws with a sentence about the first invalid option. */
export function readOptions(args: readonly string[]): SoakOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      hours: { type: "string" },
      minutes: { type: "string" },
      seed: { type: "string" },
      rate: { type: "string" },
      processes: { type: "string" },
      embedded: { type: "boolean" },
      servers: { type: "boolean" },
      tenants: { type: "string" },
      report: { type: "string" },
      only: { type: "string" },
      without: { type: "string" },
      gap: { type: "string" },
      drain: { type: "string" },
      "disk-mib": { type: "string" },
    },
  });
  const { embedded = false, servers = false } = values;
  if (embedded && (servers || values.processes !== undefined)) {
    throw new Error("--embedded is one process with its own stores: without --processes and --servers");
  }
  const minutes = parseNumber("--minutes", values.minutes, 10);
  return {
    seed: parseNumber("--seed", values.seed, Math.floor(Math.random() * 1_000_000)),
    minutes: values.hours === undefined ? minutes : 60 * parseNumber("--hours", values.hours, 1),
    rate: parseNumber("--rate", values.rate, 25),
    shape: embedded ? "embedded" : servers ? "servers" : "processes",
    processes: embedded ? "1" : (values.processes ?? "api=1,dispatcher=2"),
    tenants: parseNumber("--tenants", values.tenants, 2_000),
    report: values.report ?? null,
    only: values.only === undefined ? null : new Set(values.only.split(",")),
    without: new Set(values.without?.split(",") ?? []),
    gapSeconds: parseNumber("--gap", values.gap, 20),
    drainMinutes: parseNumber("--drain", values.drain, 12),
    diskMib: parseNumber("--disk-mib", values["disk-mib"], 3_072),
  };
}

function parseNumber(name: string, text: string | undefined, usual: number): number {
  if (text === undefined) return usual;
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value) || value < 0)
    throw new Error(`${name} takes a number, not ${text}`);
  return value;
}
