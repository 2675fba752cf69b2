import type { JobRecord } from "../../domain/job.ts";
import type { Tenant } from "../../domain/tenant.ts";
import type { BundleMaker, PassStore, SaveLinks } from "./passes.ts";

interface PassResultPorts {
  readonly passes: Pick<PassStore, "find" | "bundle">;
  readonly bundles: BundleMaker;
  readonly saveLinks: SaveLinks;
}

/**
 * A job as its tenant sees it. A wallet job's stored result is only `{pass_id}`, which keeps files out of the queue and
 * the event store: the pass's current file or link is added on reading.
 */
export async function withPass(
  { passes, bundles, saveLinks }: PassResultPorts,
  tenant: Tenant,
  job: JobRecord,
): Promise<JobRecord> {
  const { result } = job;
  if (job.channel !== "wallet" || job.status !== "success" || result === null) return job;
  const passId = result["pass_id"];
  if (typeof passId !== "string") return job;
  const pass = await passes.find(tenant.tenantId, passId);
  if (pass === null) return job;
  if (pass.content.type === "google") {
    return { ...job, result: { ...result, save_link: saveLinks.linkOf(pass, tenant) } };
  }
  // A stored bundle needs no credentials; a later version is signed by its own job.
  const { bytes } = (await passes.bundle(passId)) ?? (await bundles.bundleOf(pass, tenant));
  return { ...job, result: { ...result, pkpass_base64: Buffer.from(bytes).toString("base64") } };
}
