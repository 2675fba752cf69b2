import { FENCED, type Fenced, type Lease, type Settlement } from "../core/journal.ts";
import { limits } from "../core/limits.ts";
import { CHANNEL_LETTER, EVENT_LETTER, encodeResult, HELD_PENDING, STATUS_LETTER } from "./codec.ts";
import type { RedisConnection } from "./connection.ts";
import { shardPrefix } from "./keys.ts";
import { Script, type ScriptArgument } from "./script.ts";
import settleLua from "./settle.lua" with { type: "text" };

const script = new Script(settleLua, "run");

/** The third verb: what became of the jobs. */
export async function settle(
  connection: RedisConnection,
  lease: Lease,
  settlements: readonly Settlement[],
): Promise<"settled" | Fenced> {
  const args: ScriptArgument[] = [lease.token, limits.failedKeptMs, limits.failedBytesMax];
  for (const settlement of settlements) {
    const { job } = settlement;
    args.push(job.tenantId, job.jobId, job.entryId, CHANNEL_LETTER[job.channel], job.attempts, job.waits ?? 0);
    args.push(...encodeOutcome(settlement), job.template === undefined ? "" : JSON.stringify(job.template));
  }
  const reply = await script.run(connection, [shardPrefix(lease.shard)], args);
  return reply === null ? FENCED : "settled";
}

/** Status, what is special, event type, event result (a retry: ms until it is due) and job result. */
function encodeOutcome(settlement: Settlement): ScriptArgument[] {
  switch (settlement.kind) {
    case "final": {
      const { status, event, result, isGivenUp } = settlement;
      const how = isGivenUp ? GIVEN_UP : "";
      return [STATUS_LETTER[status], how, EVENT_LETTER[event.type], encodeResult(event.result), encodeResult(result)];
    }
    case "retry": {
      const status = settlement.status === "pending" ? HELD_PENDING : STATUS_LETTER.running;
      return [status, settlement.isUncounted ? UNCOUNTED : "", "", Math.ceil(settlement.delayMs), ""];
    }
    case "start":
      return [START, "", "", "", ""];
  }
}

const START = "g";
const UNCOUNTED = "w";
const GIVEN_UP = "u";
