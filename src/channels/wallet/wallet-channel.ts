import type { Channel } from "../../domain/channel.ts";
import { ApiError, isOutage } from "../../domain/errors.ts";
import type { QueuedJob } from "../../domain/job.ts";
import { parseJsonObject } from "../../domain/json.ts";
import type { Outcome } from "../../domain/outcome.ts";
import { remember } from "../../domain/remember.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import type { Tenant } from "../../domain/tenant.ts";
import type { WalletPayload } from "../../domain/wallet.ts";
import type { AppleBundles } from "./apple/apple-bundles.ts";
import type { PassPusher } from "./apple/push/pass-pusher.ts";
import { walletLimits } from "./limits.ts";
import type { Pass, PassStore } from "./passes.ts";
import { Turns } from "./turns.ts";

/** Delivers passes to Google's wallet. Rejects only if the registry is unreachable. */
export interface GoogleDelivery {
  deliver(pass: Pass, payload: WalletPayload, tenant: Tenant, signal: AbortSignal): Promise<Outcome>;
}

export interface WalletChannelOptions {
  readonly passes: Pick<PassStore, "find" | "finishCreate" | "undoCreate">;
  readonly bundles: Pick<AppleBundles, "bundleOf" | "signerOf">;
  readonly pusher: Pick<PassPusher, "push" | "stop">;
  readonly google: GoogleDelivery;
  readonly telemetry: Telemetry;
}

const AWAY: Outcome = { kind: "retry", why: "the registry cannot be reached", isUncounted: true };

/**
 * Creates passes and delivers their changes to their holders.
 *
 * Invariants:
 * W1. One delivery at a time works on a pass: its tenant's shard has one owner, and `turns` serializes its deliveries
 *     here.
 * W2. An Apple pass is pushed only after its version's bundle is stored: a device that asks at once finds it.
 * W3. A version that is stored and was pushed from here is neither signed nor pushed again, so many updates in a row
 *     cost the same as one.
 * W4. The result of a push never changes the outcome: the pass is up to date, and devices also ask by themselves.
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
        return await this.bring(payload, tenant, signal);
      } catch (error) {
        if (isOutage(error)) return AWAY;
        if (error instanceof ApiError) return { kind: "failed", error: error.message };
        throw error;
      }
    });
  }

  async giveBack(job: QueuedJob): Promise<void> {
    const payload = parsePayload(job.payload);
    if (payload?.action !== "update") await this.options.passes.undoCreate(job.tenantId, job.jobId);
  }

  /** Ends the background work of the deliveries. Safe to repeat. */
  close(): void {
    this.options.pusher.stop();
  }

  private async bring(payload: WalletPayload, tenant: Tenant, signal: AbortSignal): Promise<Outcome> {
    const { passes, google } = this.options;
    const pass = await passes.find(tenant.tenantId, payload.passId);
    if (pass === null || pass.state === "failed") return { kind: "failed", error: "the pass does not exist any more" };
    // The version was stored before the job was accepted; a registry that lost it may regain it.
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
    { action }: WalletPayload,
    tenant: Tenant,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const bundle = await this.options.bundles.bundleOf(pass, tenant);
    if (action === "update") await this.push(pass, bundle.version, tenant, signal);
    return { kind: "delivered", result: { pass_id: pass.passId } };
  }

  private async push(pass: Pass, version: number, tenant: Tenant, signal: AbortSignal): Promise<void> {
    const { bundles, pusher, telemetry } = this.options;
    if ((this.pushed.get(pass.passId) ?? 0) >= version) return;
    try {
      await pusher.push(pass.passId, await bundles.signerOf(pass, tenant), signal);
    } catch (error) {
      // The retry finds the bundle and pushes it.
      if (isOutage(error)) throw error;
      telemetry.log("warn", "devices were not told of an update", { pass: pass.passId, error: String(error) });
    }
    remember(this.pushed, { key: pass.passId, value: version, max: walletLimits.pushedVersionsRememberedMax });
  }
}

/** The payload as the request handler wrote it, or null if it has another form. */
function parsePayload(text: string): WalletPayload | null {
  const parsed = parseJsonObject(text);
  if (parsed === null) return null;
  const { action, passId, version, notifyMessage } = parsed;
  if (action !== "create" && action !== "update") return null;
  if (typeof passId !== "string" || typeof version !== "number") return null;
  return { action, passId, version, ...(typeof notifyMessage === "string" ? { notifyMessage } : {}) };
}
