import { FENCED, type Fenced, type Lease, type Settled, type Settlement } from "../../../domain/jobs/queue.ts";
import { encodeTags } from "../../../domain/jobs/tags.ts";
import { engineLimits } from "../../limits.ts";
import {
  type ChannelLetters,
  countPayloadBytes,
  EVENT_LETTER,
  encodeResult,
  encodeTenantQueue,
  HELD_PENDING,
  STATUS_LETTER,
} from "../codec.ts";
import { shardPrefix } from "../keys.ts";
import { Script, type ScriptArgument } from "../script.ts";
import { type OwnerCallPorts, ShardCalls } from "../shard-calls.ts";
import settleLua from "./settle.lua" with { type: "text" };

/** Letters of a settlement besides a final status, or instead of one. */
const WORD = { START: "g", LEND: "l", UNCOUNTED: "w", GIVEN_UP: "u", ERASED: "e" } as const;
const NONE = "-";

const script = new Script(settleLua, "run", {
  ...WORD,
  KEPT_BYTES_MAX: engineLimits.keptBytesMax,
  KEPT_OUTBOX_BYTES_MAX: engineLimits.keptOutboxBytesMax,
  KEPT_DAY_BYTES_MAX: engineLimits.keptDayBytesMax,
  KEPT_DAY_MS: engineLimits.keptDayMs,
});

interface SettleCall {
  readonly lease: Lease;
  readonly settlements: readonly Settlement[];
  /** Under a lease that is held, or under which the jobs were lent. */
  readonly as: "held" | "lent";
  /** The owner's estimate. */
  readonly shardTimeMs: number | null;
}

/**
 * The number of new settlements, the quarantined data, and the jobs that a report ended with success; null: fenced.
 */
type SettleReply = [number, string[], string[]] | null;

/** The third verb: records the outcomes of jobs. One call serves all shards that have outcomes at that time. */
export class SettleCalls {
  private readonly calls: ShardCalls<SettleCall, SettleReply>;

  constructor(private readonly ports: OwnerCallPorts) {
    this.calls = new ShardCalls(ports, {
      callsMax: engineLimits.settleBatchMax,
      sizeMax: engineLimits.settleCallMax,
      measureSize: ({ settlements }) => settlements.length,
      send: (calls) => this.send(calls),
    });
  }

  async settle(
    lease: Lease,
    settlements: readonly Settlement[],
    shardTimeMs: number | null,
  ): Promise<Settled | Fenced> {
    const reported = await this.call({ lease, settlements, as: "held", shardTimeMs });
    if (reported === null) return FENCED;
    return reported.length === 0 ? "settled" : new Set(reported);
  }

  /** Settles jobs that were lent under the lease, whichever process holds it now. */
  async settleLent(lease: Lease, settlements: readonly Settlement[], shardTimeMs: number | null): Promise<void> {
    const some = settlements.filter(({ kind }) => kind !== "start");
    if (some.length > 0) await this.call({ lease, settlements: some, as: "lent", shardTimeMs });
  }

  /** Returns the jobs that a report ended with success; null: fenced. */
  private async call(call: SettleCall): Promise<readonly string[] | null> {
    const reply = await this.calls.submit(call.lease.shard, call);
    if (reply === null) return null;
    const [, quarantined, reported] = reply;
    this.ports.quarantine.tell(call.lease.shard, quarantined);
    return reported;
  }

  private async send(calls: readonly SettleCall[]): Promise<SettleReply[]> {
    const args: ScriptArgument[] = [];
    for (const { lease, settlements, as, shardTimeMs } of calls) {
      const reckoned = shardTimeMs === null ? "" : Math.round(shardTimeMs);
      args.push(lease.token, as === "lent" ? 1 : 0, reckoned, settlements.length);
      for (const settlement of settlements) encodeSettlement(this.ports.letters, settlement, args);
    }
    const keys = calls.map(({ lease }) => shardPrefix(lease.shard));
    // The script answers in this form.
    return (await script.run(this.ports.connection, keys, args)) as SettleReply[];
  }
}

/** Appends to `args`, which all settlements of a call share. */
function encodeSettlement(channels: ChannelLetters, settlement: Settlement, args: ScriptArgument[]): void {
  const { job } = settlement;
  const bytes = settlement.kind === "start" ? 0 : countPayloadBytes(job);
  const [letters, detail, result] = encodeOutcome(settlement);
  const template = job.template === undefined ? "" : JSON.stringify(job.template);
  // An erased recipient must not enter the history again.
  const isErased = job.suppressed === "erased";
  const recipient = job.recipient === "" || isErased ? "" : JSON.stringify(job.recipient);
  const attempt = "attempt" in settlement ? settlement.attempt : undefined;
  const texts = [detail, result, template, recipient, attempt === undefined ? "" : JSON.stringify(attempt)];
  const further = furtherLines(settlement);
  if (job.tags !== undefined && !isErased) texts.push(encodeTags(job.tags));
  else if (further !== "") texts.push("");
  args.push(
    encodeTenantQueue(channels, job),
    job.jobId,
    job.entryId,
    `${job.attempts} ${job.waits ?? 0} ${bytes} ${letters}`,
    further === "" && texts.every((text) => text === "") ? "" : texts.join("\n") + further,
  );
}

/** Encodes one line for each event about a further recipient. */
function furtherLines(settlement: Settlement): string {
  if (settlement.kind !== "final" || settlement.further === undefined) return "";
  return settlement.further.map(({ type, result }) => `\n${EVENT_LETTER[type]}${encodeResult(result)}`).join("");
}

/**
 * Encodes letters for status, peculiarity and event type; event result (for a retry or loan: ms until it is due), job
 * result.
 */
function encodeOutcome(settlement: Settlement): readonly [letters: string, detail: string, result: string] {
  switch (settlement.kind) {
    case "final": {
      const { status, event, result, isGivenUp, job } = settlement;
      const how = isGivenUp ? WORD.GIVEN_UP : job.suppressed === "erased" ? WORD.ERASED : NONE;
      const letters = STATUS_LETTER[status] + how + EVENT_LETTER[event.type];
      return [letters, encodeResult(event.result), encodeResult(result)];
    }
    case "retry": {
      const status = settlement.status === "pending" ? HELD_PENDING : STATUS_LETTER.running;
      return [status + (settlement.isUncounted ? WORD.UNCOUNTED : NONE) + NONE, `${Math.ceil(settlement.delayMs)}`, ""];
    }
    case "lend":
      return [WORD.LEND + NONE + NONE, `${Math.ceil(settlement.forMs)}`, ""];
    case "start":
      return [WORD.START + NONE + NONE, "", ""];
  }
}
