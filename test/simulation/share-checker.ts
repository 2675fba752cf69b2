import type { QueueQuota } from "../../src/domain/jobs/queue.ts";
import type { Watch } from "./promises.ts";

/** A tenant's unfinished jobs. */
export interface Share {
  readonly jobs: number;
  readonly bytes: number;
}

/** The figures of a job that count. */
interface Counted {
  readonly tenant: { readonly tenantId: string };
  /** Of its payload. */
  readonly bytes: number;
}

const NOTHING: Share = { jobs: 0, bytes: 0 };

/** Each tenant's share of the queue, computed from the unfinished jobs. */
export class ShareChecker {
  private readonly shares = new Map<string, Share>();

  constructor(private readonly watch: Watch) {}

  findShare(tenantId: string): Share {
    return this.shares.get(tenantId) ?? NOTHING;
  }

  begun(truth: Counted, quota: QueueQuota | undefined): void {
    this.add(truth, 1);
    if (quota === undefined) return;
    const { tenantId } = truth.tenant;
    const { jobs, bytes } = this.findShare(tenantId);
    const isWithin = jobs <= quota.jobs && bytes <= quota.bytes;
    this.watch.demand(isWithin, "share", () => `${tenantId} has ${jobs} jobs of ${bytes} bytes`);
  }

  ended(truth: Counted): void {
    this.add(truth, -1);
  }

  /** The queue went back in time: these are the unfinished jobs that it has. */
  recount(unfinished: readonly Counted[]): void {
    this.shares.clear();
    for (const truth of unfinished) this.add(truth, 1);
  }

  /** Compares a tenant's counted load with its jobs. */
  compare(tenantId: string, counted: Share): void {
    const { jobs, bytes } = this.findShare(tenantId);
    const isExact = counted.jobs === jobs && counted.bytes === bytes;
    const detail = () => `${tenantId}: ${counted.jobs} jobs of ${counted.bytes} bytes for ${jobs} of ${bytes}`;
    this.watch.demand(isExact, "share", detail);
  }

  get tenants(): Iterable<string> {
    return this.shares.keys();
  }

  private add({ tenant: { tenantId }, bytes }: Counted, by: 1 | -1): void {
    const share = this.findShare(tenantId);
    this.shares.set(tenantId, { jobs: share.jobs + by, bytes: share.bytes + by * bytes });
  }
}
