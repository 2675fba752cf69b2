import { FENCED, type Fenced, type Lease, type Settlement } from "../core/journal.ts";
import { EVENT_LETTER, encodeBox, encodeResult, HELD_PENDING, STATUS_LETTER } from "./codec.ts";
import type { RedisConnection } from "./connection.ts";
import { shardPrefix } from "./keys.ts";
import type { Quarantine } from "./quarantine.ts";
import { Script, type ScriptArgument } from "./script.ts";
import settleLua from "./settle.lua" with { type: "text" };

const script = new Script(settleLua, "run");

/** Under a lease that is held or by which the jobs were lent, and the shard's time by the owner's reckoning. */
type Way = readonly [as: "held" | "lent", shardTimeMs: number | null];

/** The third verb: what became of the jobs. */
export class SettleCalls {
  constructor(
    private readonly connection: RedisConnection,
    private readonly quarantine: Quarantine,
  ) {}

  async settle(
    lease: Lease,
    settlements: readonly Settlement[],
    shardTimeMs: number | null,
  ): Promise<"settled" | Fenced> {
    return (await this.call(lease, settlements, ["held", shardTimeMs])) ? "settled" : FENCED;
  }

  /** Of jobs that were lent under the lease, whoever holds it by now. */
  async settleLent(lease: Lease, settlements: readonly Settlement[], shardTimeMs: number | null): Promise<void> {
    const ended = settlements.filter(({ kind }) => kind === "final" || kind === "retry");
    if (ended.length > 0) await this.call(lease, ended, ["lent", shardTimeMs]);
  }

  /** False: fenced. */
  private async call(lease: Lease, settlements: readonly Settlement[], [as, shardTimeMs]: Way): Promise<boolean> {
    const reckoned = shardTimeMs === null ? "" : Math.round(shardTimeMs);
    const args: ScriptArgument[] = [lease.token, as === "lent" ? 1 : 0, reckoned];
    for (const settlement of settlements) encodeSettlement(settlement, args);
    // The script answers how many were new and what is in quarantine, or null when it is fenced.
    const reply = (await script.run(this.connection, [shardPrefix(lease.shard)], args)) as [number, string[]] | null;
    if (reply === null) return false;
    this.quarantine.tell(lease.shard, reply[1]);
    return true;
  }
}

/** Adds to `args`, which all settlements of a call share. */
function encodeSettlement(settlement: Settlement, args: ScriptArgument[]): void {
  const { job } = settlement;
  const bytes = settlement.kind === "start" ? 0 : (job.stored?.bytes ?? Buffer.byteLength(job.payload));
  const [letters, detail, result] = encodeOutcome(settlement);
  const template = job.template === undefined ? "" : JSON.stringify(job.template);
  const texts = detail === "" && result === "" && template === "" ? "" : `${detail}\n${result}\n${template}`;
  args.push(encodeBox(job), job.jobId, job.entryId, `${job.attempts} ${job.waits ?? 0} ${bytes} ${letters}`, texts);
}

/** Letters for status, what is special and event type; event result (a retry or loan: ms until it is due), job result. */
function encodeOutcome(settlement: Settlement): readonly [letters: string, detail: string, result: string] {
  switch (settlement.kind) {
    case "final": {
      const { status, event, result, isGivenUp } = settlement;
      const letters = STATUS_LETTER[status] + (isGivenUp ? GIVEN_UP : NONE) + EVENT_LETTER[event.type];
      return [letters, encodeResult(event.result), encodeResult(result)];
    }
    case "retry": {
      const status = settlement.status === "pending" ? HELD_PENDING : STATUS_LETTER.running;
      return [status + (settlement.isUncounted ? UNCOUNTED : NONE) + NONE, `${Math.ceil(settlement.delayMs)}`, ""];
    }
    case "lend":
      return [LENT + NONE + NONE, `${Math.ceil(settlement.forMs)}`, ""];
    case "start":
      return [START + NONE + NONE, "", ""];
  }
}

const START = "g";
const LENT = "l";
const UNCOUNTED = "w";
const GIVEN_UP = "u";
const NONE = "-";
