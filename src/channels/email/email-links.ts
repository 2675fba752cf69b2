import type { TrackingChoice } from "../../domain/channels/email.ts";
import type { QueuedJob } from "../../domain/jobs/job.ts";
import { limits } from "../../domain/limits.ts";
import type { Tracking } from "./content/tracked-html.ts";
import { emailLimits } from "./limits.ts";
import type { LinkSigner } from "./links/link-tokens.ts";

/** Our links in a message: the tracking pixel, redirects for its own links, and the unsubscribe link. */
export class EmailLinks {
  private readonly base: string;

  /** @param publicUrl where readers reach the public links, for example `https://send.example.com` */
  constructor(
    publicUrl: string,
    private readonly signer: LinkSigner,
  ) {
    this.base = publicUrl.replace(/\/+$/, "");
  }

  /** Returns the headers for one-click unsubscribe (RFC 8058, 3.1). A DKIM signature must cover both. */
  headers(job: QueuedJob): readonly (readonly [name: string, value: string])[] {
    return [
      ["List-Unsubscribe", `<${this.unsubscribeUrl(job)}>`],
      ["List-Unsubscribe-Post", "List-Unsubscribe=One-Click"],
    ];
  }

  unsubscribeUrl({ tenantId, jobId, recipient, topic }: QueuedJob): string {
    const of = { tenantId, jobId, recipient };
    const link =
      topic === undefined ? { purpose: "unsubscribe" as const } : { purpose: "unsubscribe topic" as const, topic };
    return `${this.base}/u/${this.signer.sign({ ...of, ...link })}`;
  }

  /**
   * Returns the tracking for the job's HTML. A repeated delivery gets exactly the same HTML, unless the tenant's
   * setting has changed.
   */
  tracking({ tenantId, jobId }: QueuedJob, { opens, clicks }: Required<TrackingChoice>): Tracking {
    const tracked = new Map<string, string>();
    const ownUnsubscribing = `${this.base}/u/`;
    const trackedUrl = (url: string): string | null => {
      const known = tracked.get(url);
      if (known !== undefined) return known;
      if (url.startsWith(ownUnsubscribing)) return null;
      if (Buffer.byteLength(url) > limits.linkUrlBytesMax || tracked.size >= emailLimits.trackedLinksMax) return null;
      const made = `${this.base}/t/c/${this.signer.sign({ purpose: "click", tenantId, jobId, url })}`;
      tracked.set(url, made);
      return made;
    };
    const pixel = !opens ? null : `${this.base}/t/o/${this.signer.sign({ purpose: "open", tenantId, jobId })}.gif`;
    return { pixel, trackedUrl: clicks ? trackedUrl : () => null };
  }
}
