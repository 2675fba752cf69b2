import type { CarriedPasses, MadePass } from "../../domain/channels/carried-pass.ts";
import type { QueuedJob } from "../../domain/jobs/job.ts";
import type { Outcome } from "../../domain/jobs/outcome.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import type { FileLinks } from "./pass-file-links.ts";
import type { BundleMaker, Pass, PassStore, SaveLinks } from "./passes.ts";
import type { GooglePassDeliverer } from "./wallet-channel.ts";

export interface MessagePassesPorts {
  readonly passes: Pick<PassStore, "find" | "noteMade" | "finishCreate" | "undoCreate" | "discard">;
  readonly bundles: BundleMaker;
  readonly google: GooglePassDeliverer & SaveLinks;
  readonly fileLinks: Pick<FileLinks, "createLink">;
}

/** How long a message waits before the next call to its pass's provider, if that was unavailable. */
const AWAY_MS = 10_000;

/**
 * Makes the passes that messages carry.
 *
 * Invariants:
 * C1. A pass stays `creating` until its message was sent: a failed job returns its token, and an update waits.
 * C2. Google's object is inserted before the message that links to it is sent, and recorded as ours before anyone can
 *     have the link: a later attempt at the message leaves it alone, even if a person has saved the pass by then.
 * C3. A bundle is signed and stored before the message that attaches it or links to it is sent; a version is signed
 *     once, and once more after each failure of the job, which removes the file.
 */
export class MessagePasses implements CarriedPasses {
  constructor(private readonly ports: MessagePassesPorts) {}

  async make(job: QueuedJob, passId: string, tenant: Tenant, signal: AbortSignal): Promise<MadePass | Outcome> {
    const pass = await this.ports.passes.find(tenant.tenantId, passId);
    if (pass === null || pass.state === "failed" || pass.jobId !== job.jobId) {
      return { kind: "failed", error: "the pass does not exist any more" };
    }
    return pass.content.type === "apple" ? this.appleFile(pass, tenant) : this.googleLink(pass, tenant, signal);
  }

  finish(passId: string): Promise<void> {
    return this.ports.passes.finishCreate(passId);
  }

  giveBack(tenantId: string, jobId: string): Promise<void> {
    return this.ports.passes.undoCreate(tenantId, jobId);
  }

  discard(tenantId: string, jobId: string): Promise<void> {
    return this.ports.passes.discard(tenantId, jobId);
  }

  private async googleLink(pass: Pass, tenant: Tenant, signal: AbortSignal): Promise<MadePass | Outcome> {
    const { google, passes } = this.ports;
    const { passId } = pass;
    if (pass.isMade !== true && pass.state === "creating") {
      const outcome = await google.deliver(
        pass,
        { action: "create", passId, version: 1, jobId: pass.jobId },
        tenant,
        signal,
      );
      if (outcome.kind !== "delivered") return beforeMessage(outcome);
      await passes.noteMade(passId);
    }
    const link = google.buildLink(pass, tenant);
    if (typeof link !== "string") return { kind: "failed", error: link.why };
    const save_token = link.slice(link.lastIndexOf("/") + 1);
    return { values: { pass_id: passId, save_link: link, save_token }, file: null };
  }

  private async appleFile(pass: Pass, tenant: Tenant): Promise<MadePass | Outcome> {
    const { bundles, fileLinks } = this.ports;
    const bundle = await bundles.getBundle(pass, tenant);
    if (bundle === null) return { kind: "failed", error: "there is no such pass" };
    if ("why" in bundle) return { kind: "failed", error: bundle.why };
    const { url: download_url, token: download_token } = fileLinks.createLink(pass.tenantId, [pass.passId]);
    const sha256 = new Bun.CryptoHasher("sha256").update(bundle.bytes).digest("hex");
    const filename = `${pass.serial.replace(UNFIT, "_")}.pkpass`;
    const values = { pass_id: pass.passId, download_url, download_token };
    return { values, file: { filename, sha256, body: bundle.bytes } };
  }
}

/** Characters that a file's name must not contain. */
const UNFIT = /[^A-Za-z0-9._-]/g;

/** Converts the outcome of the pass's provider to the message's, whose own relay or provider was not called. */
function beforeMessage(outcome: Exclude<Outcome, { kind: "delivered" }>): Outcome {
  switch (outcome.kind) {
    case "away":
      return { kind: "retry", why: outcome.why, afterMs: AWAY_MS, isUncounted: true, isUnsent: true };
    case "retry": {
      const { isSilence: _, ...others } = outcome;
      return { ...others, isUnsent: true };
    }
    default:
      return outcome;
  }
}
