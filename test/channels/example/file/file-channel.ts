import { appendFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Channel } from "../../../../src/domain/channels/channel.ts";
import type { QueuedJob } from "../../../../src/domain/jobs/job.ts";
import type { Outcome } from "../../../../src/domain/jobs/outcome.ts";
import type { Tenant } from "../../../../src/domain/tenants/tenant.ts";
import { isJsonObject } from "../../../../src/domain/texts/json.ts";

/** One attempt, one outcome: retries, pace and fairness are the engine's. */
export class FileChannel implements Channel {
  readonly name = "file";
  readonly slots = 8;

  constructor(private readonly folder: string) {}

  async deliver(job: QueuedJob, tenant: Tenant): Promise<Outcome> {
    const payload: unknown = JSON.parse(job.payload);
    if (!isJsonObject(payload) || typeof payload["text"] !== "string") {
      return { kind: "failed", error: "the message cannot be read" };
    }
    // Each tenant has a folder of its own. Both names are safe in a path: their checks allow neither a slash nor a dot.
    const folder = join(this.folder, tenant.tenantId);
    try {
      await mkdir(folder, { recursive: true });
      await appendFile(join(folder, `${job.recipient}.txt`), `${payload["text"]}\n`);
    } catch (error) {
      return { kind: "retry", why: `the file could not be written: ${String(error)}` };
    }
    return { kind: "delivered", result: { file: `${job.recipient}.txt` } };
  }
}
