import {
  type CarriedPasses,
  type Carrier,
  carriesPass,
  type MadePass,
  type PassFile,
  type PassFiller,
  parseCarrier,
  valuesBefore,
} from "../../domain/channels/carried-pass.ts";
import type { Channel } from "../../domain/channels/channel.ts";
import type { ContentStore } from "../../domain/content-store.ts";
import { isOutage } from "../../domain/errors.ts";
import type { ChannelName, QueuedJob } from "../../domain/jobs/job.ts";
import type { Outcome } from "../../domain/jobs/outcome.ts";
import { remember } from "../../domain/remember.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import type { JsonObject } from "../../domain/texts/json.ts";
import { extended } from "./extended-channel.ts";
import type { PayloadRoom } from "./payload-room.ts";

export interface PassCarrierPorts {
  readonly passes: CarriedPasses;
  /** The fillers of the channels whose messages can carry passes. */
  readonly fillers: ReadonlyMap<ChannelName, PassFiller>;
  /** For files of passes. */
  readonly room: PayloadRoom;
  readonly telemetry: Telemetry;
}

/** Jobs of this process whose message was certainly not sent, until their tokens are refunded: a moment each. */
const UNSENT_MAX = 10_000;

/**
 * Wraps channels to deliver messages that carry passes: the pass is made first, then the channel gets its own payload with the
 * pass's values. It never learns of passes.
 *
 * D1. A pass is made once; a later try of the message finds it.
 * D2. A message that was sent is never sent again because its pass could not be finished: the sweep of passes finishes it.
 * D3. Token and serial are given back before a job is recorded as failed or suppressed, but only if its message was
 *     certainly not handed over. If a job is given up without a clear answer, the sweep refunds them once the job's end is
 *     known: a report that waits with the job can still make it a success.
 * D4. The files of passes in messages being delivered are bounded in bytes.
 * D5. An unavailable provider of passes delays messages with passes, without affecting the message's relay.
 */
export class PassCarrier {
  /** Files of passes whose messages are being delivered, by job. */
  private readonly files = new Map<string, PassFile>();
  private readonly unsent = new Map<string, true>();

  constructor(private readonly ports: PassCarrierPorts) {}

  /** The store of files that jobs send, with the passes of messages being delivered. */
  filesOver(contents: Pick<ContentStore, "get">): Pick<ContentStore, "get"> {
    return {
      get: async (ref, sha256) => {
        const file = this.files.get(ref.jobId);
        return file?.sha256 === sha256 ? file.body : contents.get(ref, sha256);
      },
    };
  }

  /** The channel, extended to take such jobs. */
  over(channel: Channel): Channel {
    const fill = this.ports.fillers.get(channel.name);
    if (fill === undefined) return channel;
    const deliver: Channel["deliver"] = async (job, tenant, signal, onHandOver) => {
      if (!carriesPass(job.payload)) return channel.deliver(job, tenant, signal, onHandOver);
      const outcome = await this.deliver(job, { tenant, signal, fill }, (whole) =>
        channel.deliver(whole, tenant, signal, onHandOver),
      );
      return this.noted(job, outcome);
    };
    const inner = channel.screen?.bind(channel);
    const screen: Channel["screen"] =
      inner &&
      (async (job, tenant, signal) => {
        const carrier = parseCarrier(job.payload);
        if (carrier === null) return inner(job, tenant, signal);
        const sample = { values: valuesBefore(carrier.pass), file: null };
        const outcome = await inner(withMessage(job, fill(carrier.message, sample)), tenant, signal);
        return outcome === null ? null : this.noted(job, outcome);
      });
    const giveBack = (job: QueuedJob) => this.giveBack(channel, job);
    return extended(channel, { deliver, giveBack, ...(screen && { screen }) });
  }

  private async deliver(
    job: QueuedJob,
    { tenant, signal, fill }: { readonly tenant: Tenant; readonly signal: AbortSignal; readonly fill: PassFiller },
    send: (whole: QueuedJob) => Promise<Outcome>,
  ): Promise<Outcome> {
    const carrier = parseCarrier(job.payload);
    if (carrier === null) return { kind: "failed", error: "the message cannot be read" };
    const made = await this.make(job, carrier, tenant, signal);
    if ("kind" in made) return made;
    if (signal.aborted) return LATER;
    const outcome = await this.holding(job, made.file, signal, () =>
      send(withMessage(job, fill(carrier.message, made))),
    );
    return outcome.kind === "delivered" ? await this.sent(carrier, outcome) : outcome;
  }

  /** Does the work while the file is at hand. */
  private async holding(
    { jobId, tenantId }: QueuedJob,
    file: PassFile | null,
    signal: AbortSignal,
    work: () => Promise<Outcome>,
  ): Promise<Outcome> {
    if (file === null) return work();
    const { room } = this.ports;
    const bytes = file.body.length;
    if (!(await room.take(tenantId, bytes, signal))) return LATER;
    this.files.set(jobId, file);
    try {
      return await work();
    } finally {
      this.files.delete(jobId);
      room.give(tenantId, bytes);
    }
  }

  private async make(
    job: QueuedJob,
    { pass }: Carrier,
    tenant: Tenant,
    signal: AbortSignal,
  ): Promise<MadePass | Outcome> {
    try {
      return await this.ports.passes.make(job, pass.passId, tenant, signal);
    } catch (error) {
      if (isOutage(error)) return LATER;
      throw error;
    }
  }

  private async sent(
    { pass: { passId } }: Carrier,
    outcome: Extract<Outcome, { kind: "delivered" }>,
  ): Promise<Outcome> {
    const { passes, telemetry } = this.ports;
    await passes.finish(passId).catch((error: unknown) => {
      telemetry.log("warn", "a message's pass is left to the sweep", { pass: passId, error: String(error) });
    });
    return { ...outcome, result: { ...outcome.result, pass_id: passId } };
  }

  private noted(job: QueuedJob, outcome: Outcome): Outcome {
    if (outcome.kind === "failed") remember(this.unsent, { key: job.jobId, value: true, max: UNSENT_MAX });
    return outcome;
  }

  private async giveBack(channel: Channel, job: QueuedJob): Promise<void> {
    await channel.giveBack?.(job);
    // It is unknown whether a payload that was not fetched carries a pass.
    const mayCarry = carriesPass(job.payload) || (job.stored !== undefined && job.payload === "");
    const { passes } = this.ports;
    if (mayCarry && job.suppressed !== null) await passes.discard(job.tenantId, job.jobId);
    else if (mayCarry && this.unsent.has(job.jobId)) await passes.giveBack(job.tenantId, job.jobId);
    this.unsent.delete(job.jobId);
  }
}

const LATER_MS = 1_000;
const LATER: Outcome = {
  kind: "retry",
  why: "the pass of the message could not be looked up",
  afterMs: LATER_MS,
  isUncounted: true,
  isUnsent: true,
};

function withMessage(job: QueuedJob, message: JsonObject): QueuedJob {
  return { ...job, payload: JSON.stringify(message) };
}
