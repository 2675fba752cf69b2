import type { Channel } from "../../src/domain/channels/channel.ts";
import type { QueuedJob } from "../../src/domain/jobs/job.ts";
import type { Outcome } from "../../src/domain/jobs/outcome.ts";
import type { Tenant } from "../../src/domain/tenants/tenant.ts";

/** A channel whose provider follows the test's script. */
export class RecordingChannel implements Channel {
  readonly name = "email";
  readonly slots = 512;
  readonly delivered: string[] = [];
  inFlight = 0;

  constructor(private readonly provider: (job: QueuedJob, signal: AbortSignal) => Outcome | Promise<Outcome>) {}

  async deliver(job: QueuedJob, _tenant: Tenant, signal: AbortSignal): Promise<Outcome> {
    this.inFlight += 1;
    this.delivered.push(job.jobId);
    try {
      return await this.provider(job, signal);
    } finally {
      this.inFlight -= 1;
    }
  }
}
