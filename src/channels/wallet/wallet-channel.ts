import type { Channel } from "../../domain/channels/channel.ts";
import { isOutage } from "../../domain/errors.ts";
import type { QueuedJob } from "../../domain/jobs/job.ts";
import type { Outcome } from "../../domain/jobs/outcome.ts";
import { remember } from "../../domain/remember.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import type { AppleBundles } from "./apple/apple-bundles.ts";
import type { PassPusher } from "./apple/push/pass-pusher.ts";
import { walletLimits } from "./limits.ts";
import type { Pass, PassStore } from "./passes.ts";
import { type GoogleTask, parsePayload, type WalletPayload } from "./payload.ts";

/** Delivers passes to Google's wallet. Rejects only if the registry is unreachable. */
export interface GooglePassDeliverer {
  deliver(pass: Pass, payload: GoogleTask, tenant: Tenant, signal: AbortSignal): Promise<Outcome>;
}

export interface WalletChannelOptions {
  readonly passes: Pick<PassStore, "find" | "finishCreate" | "undoCreate" | "discard">;
  readonly bundles: Pick<AppleBundles, "getBundle" | "findSigner">;
  readonly pusher: Pick<PassPusher, "push" | "stop">;
  readonly google: GooglePassDeliverer;
  readonly telemetry: Telemetry;
}

const AWAY: Outcome = { kind: "retry", why: "the registry cannot be reached", isUncounted: true };

/**
 * Creates passes and delivers their changes to their holders.
 *
 * Invariants:
 * W1. One delivery at a time works on a pass: its tenant's shard has one owner, and `turns` serializes its deliveries
 *     here.
 * W2. An Apple pass is pushed only after its version's bundle is stored: a device that fetches it at once finds it.
 * W3. A version that is stored and was pushed from here is neither signed nor pushed again, so many updates in a row
 *     cost the same as one.
 * W4. The result of a push never changes the outcome: the pass is up to date, and devices also check by themselves.
 */
export class WalletChannel implements Channel {
  readonly name = "wallet";
  readonly slots = walletLimits.walletDeliveriesMax;
  private readonly turns = new Turns();
  /** Pass → the version last pushed to its devices, least recent first. */
  private readonly pushed = new Map<string, number>();

  constructor(private readonly options: WalletChannelOptions) {}

  async deliver(job: QueuedJob, tenant: Tenant, signal: AbortSignal): Promise<Outcome> {
    const payload = parsePayload(job.payload);
    if (payload === null) return { kind: "failed", error: "the job of the pass cannot be read" };
    return this.turns.take(payload.passId, async () => {
      if (signal.aborted) return { kind: "retry", why: "the pass was busy for too long", isUncounted: true };
      try {
        return await this.bring({ ...payload, jobId: job.jobId }, tenant, signal);
      } catch (error) {
        if (isOutage(error)) return AWAY;
        throw error;
      }
    });
  }

  async giveBack(job: QueuedJob): Promise<void> {
    const payload = parsePayload(job.payload);
    if (payload?.action === "update") return;
    const { passes } = this.options;
    // Only a failed job can be retried.
    await (job.suppressed === null
      ? passes.undoCreate(job.tenantId, job.jobId)
      : passes.discard(job.tenantId, job.jobId));
  }

  /** Ends the background work of the deliveries. Safe to repeat. */
  close(): void {
    this.options.pusher.stop();
  }

  private async bring(payload: GoogleTask, tenant: Tenant, signal: AbortSignal): Promise<Outcome> {
    const { passes, google } = this.options;
    const pass = await passes.find(tenant.tenantId, payload.passId);
    if (pass === null || pass.state === "failed") return { kind: "failed", error: "the pass does not exist any more" };
    // The version was stored before the job was accepted; a registry that lost it may recover it.
    if (pass.version < payload.version) return { kind: "retry", why: "the registry is behind", isUncounted: true };
    const isApple = pass.content.type === "apple";
    const outcome = isApple
      ? await this.bringApple(pass, payload, tenant, signal)
      : await google.deliver(pass, payload, tenant, signal);
    if (outcome.kind === "delivered" && payload.action === "create") await passes.finishCreate(pass.passId);
    return outcome;
  }

  private async bringApple(
    pass: Pass,
    { action, isCurrent }: WalletPayload,
    tenant: Tenant,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const bundle = await this.options.bundles.getBundle(pass, tenant);
    if (bundle === null) return { kind: "failed", error: "there is no such pass" };
    if ("why" in bundle) return { kind: "failed", error: bundle.why };
    if (action === "update" && isCurrent !== true) await this.push(pass, bundle.version, tenant, signal);
    return { kind: "delivered", result: { pass_id: pass.passId } };
  }

  private async push(pass: Pass, version: number, tenant: Tenant, signal: AbortSignal): Promise<void> {
    const { bundles, pusher } = this.options;
    if ((this.pushed.get(pass.passId) ?? 0) >= version) return;
    try {
      const signer = await bundles.findSigner(pass, tenant);
      if ("why" in signer) this.notePushFailure(pass, signer.why);
      else await pusher.push(pass, signer, signal);
    } catch (error) {
      // The retry finds the bundle and pushes it.
      if (isOutage(error)) throw error;
      this.notePushFailure(pass, String(error));
    }
    remember(this.pushed, { key: pass.passId, value: version, max: walletLimits.pushedVersionsRememberedMax });
  }

  private notePushFailure({ passId }: Pass, error: string): void {
    this.options.telemetry.log("warn", "devices were not told of an update", { pass: passId, error });
  }
}

/**
 * Runs work with the same key one at a time, in order of request; work with different keys runs concurrently.
 *
 * Invariants:
 * T1. At most one piece of work runs per key.
 * T2. A key is remembered only while it has work.
 */
export class Turns {
  private readonly last = new Map<string, Promise<unknown>>();

  /** Runs `work` once all earlier work with this key has ended, whether it succeeded or failed. */
  async take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.last.get(key) ?? Promise.resolve();
    const mine = before.then(work, work);
    this.last.set(key, mine);
    try {
      return await mine;
    } finally {
      if (this.last.get(key) === mine) this.last.delete(key);
    }
  }
}
