import type { QueuedJob } from "../../../domain/jobs/job.ts";
import { FENCED, type Fenced, type JobNews, type Lease } from "../../../domain/jobs/queue.ts";
import { engineLimits } from "../../limits.ts";
import { decodeNews } from "../codec.ts";
import { shardPrefix } from "../keys.ts";
import { Script, type ScriptArgument } from "../script.ts";
import { type OwnerCallPorts, ShardCalls } from "../shard-calls.ts";
import lookAgainLua from "./look-again.lua" with { type: "text" };

/** Runs even when Redis is full: it writes no data. */
const script = new Script(lookAgainLua, "run");

interface Look {
  readonly lease: Lease;
  readonly job: QueuedJob;
}

/** Looks up jobs that were pulled a while ago. One call serves all that start at that time. */
export class LookCalls {
  private readonly calls: ShardCalls<Look, string | null>;

  constructor(private readonly ports: OwnerCallPorts) {
    this.calls = new ShardCalls(ports, {
      callsMax: engineLimits.lookCallMax,
      sizeMax: engineLimits.lookCallMax,
      measureSize: () => 1,
      send: (looks) => this.send(looks),
    });
  }

  async lookAgain(lease: Lease, job: QueuedJob): Promise<JobNews | Fenced> {
    const reason = await this.calls.submit(lease.shard, { lease, job });
    return reason === null ? FENCED : decodeNews(reason);
  }

  private async send(looks: readonly Look[]): Promise<(string | null)[]> {
    const keys = looks.map(({ lease }) => shardPrefix(lease.shard));
    const args: ScriptArgument[] = [];
    for (const { lease, job } of looks) args.push(lease.token, job.tenantId, job.jobId, job.recipient, job.topic ?? "");
    // The script answers in this form.
    return (await script.run(this.ports.connection, keys, args)) as (string | null)[];
  }
}
