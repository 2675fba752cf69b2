import type { JobRecord } from "../../domain/job.ts";
import type { Tenant } from "../../domain/tenant.ts";
import type { BundleMaker, PassStore, SaveLinks } from "./passes.ts";
import { noSuchPass, unusable } from "./refusals.ts";

interface PassResultPorts {
  readonly passes: Pick<PassStore, "find" | "bundle">;
  readonly bundles: BundleMaker;
  readonly saveLinks: SaveLinks;
}

/**
 * A job as its tenant sees it. A wallet job's stored result is only `{pass_id}`, which keeps files out of the queue and
 * the event store: the pass's current file or link is added on reading. Throws an `ApiError` if there is none.
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
    const link = saveLinks.linkOf(pass, tenant);
    if (typeof link !== "string") throw unusable(link);
    return { ...job, result: { ...result, save_link: link } };
  }
  // A stored bundle needs no credentials; a later version is signed by its own job.
  const bundle = (await passes.bundle(passId)) ?? (await bundles.bundleOf(pass, tenant));
  if (bundle === null) throw noSuchPass();
  if ("why" in bundle) throw unusable(bundle);
  return { ...job, result: { ...result, pkpass_base64: Buffer.from(bundle.bytes).toString("base64") } };
}
