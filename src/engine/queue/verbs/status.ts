import type { AcceptedCount, KnownStatuses, ProcessStatus, ProcessStatuses } from "../../../domain/process-status.ts";
import type { RedisConnection } from "../connection.ts";
import { MEMBERS_PREFIX } from "../keys.ts";
import { Script } from "../script.ts";
import statusLua from "./status.lua" with { type: "text" };

/** A process without a new status for this long is not listed. */
const STATUS_KEPT_MS = 15_000;
/** Processes that are read; if there are more, the ones with the latest status. */
const STATUSES_MAX = 200;
/** A longer status is published without its lists. */
const STATUS_CHARS_MAX = 65_536;
const MINUTE_MS = 60_000;

const script = new Script(statusLua, "run", { STATUS_KEPT_MS, STATUSES_MAX });

/** The statuses that processes publish for each other, in Redis. */
export class RedisStatuses implements ProcessStatuses {
  constructor(private readonly connection: RedisConnection) {}

  async tellStatus(status: ProcessStatus, accepted: readonly AcceptedCount[]): Promise<void> {
    const whole = JSON.stringify(status);
    const text =
      whole.length <= STATUS_CHARS_MAX ? whole : JSON.stringify({ ...status, breakers: [], paused: [], held: [] });
    const counts = accepted.flatMap(({ minuteMs, channel, jobs }) => [Math.floor(minuteMs / MINUTE_MS), channel, jobs]);
    await script.run(this.connection, [MEMBERS_PREFIX], ["tell", status.name, text, ...counts]);
  }

  async withdrawStatus(name: string): Promise<void> {
    await script.run(this.connection, [MEMBERS_PREFIX], ["withdraw", name]);
  }

  async statuses(): Promise<KnownStatuses> {
    // The script answers three members.
    const reply = (await script.run(this.connection, [MEMBERS_PREFIX], ["read"])) as [string[], string[], string];
    const [statuses, counts, today] = reply;
    return {
      statuses: statuses.flatMap((text) => readStatus(text)).sort((a, b) => (a.name < b.name ? -1 : 1)),
      accepted: readCounts(counts),
      acceptedToday: Number(today),
    };
  }
}

/** Returns none if another release wrote it in another form. */
function readStatus(text: string): readonly ProcessStatus[] {
  try {
    // Checked below as far as readers rely on it.
    const status = JSON.parse(text) as ProcessStatus;
    const { name, roles, startedAtMs, delivers, records, breakers, paused, held = [] } = status;
    const isWhole = typeof name === "string" && Number.isFinite(startedAtMs);
    return isWhole && [roles, delivers, records, breakers, paused, held].every(Array.isArray) ? [status] : [];
  } catch {
    return [];
  }
}

function readCounts(counts: readonly string[]): readonly AcceptedCount[] {
  const read: AcceptedCount[] = [];
  for (let at = 0; at + 1 < counts.length; at += 2) {
    const [minute = "", channel = ""] = (counts[at] ?? "").split(" ");
    read.push({ minuteMs: Number(minute) * MINUTE_MS, channel, jobs: Number(counts[at + 1]) });
  }
  return read;
}
