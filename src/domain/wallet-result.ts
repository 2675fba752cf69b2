import type { FrontDoor } from "../http/front-door.ts";
import type { JobRecord } from "./job.ts";
import type { Tenant } from "./tenant.ts";

/**
 * A job as its tenant sees it. That of a wallet job is stored as `{pass_id}` alone, so that no file goes through the
 * journal and the ledger: the pass's current file or its link is added when somebody asks.
 */
export async function withPass(door: FrontDoor, tenant: Tenant, job: JobRecord): Promise<JobRecord> {
  const { result } = job;
  if (job.channel !== "wallet" || job.status !== "success" || result === null) return job;
  const passId = result["pass_id"];
  if (typeof passId !== "string") return job;
  const { bundles, passes, saveLinks } = door.ports.wallet;
  const pass = await passes.find(tenant.tenantId, passId);
  if (pass === null) return job;
  if (pass.content.type === "google") {
    return { ...job, result: { ...result, save_link: saveLinks.linkOf(pass, tenant) } };
  }
  // What is kept needs no credentials; a later version is signed by its own job.
  const { bytes } = (await passes.bundle(passId)) ?? (await bundles.bundleOf(pass, tenant));
  return { ...job, result: { ...result, pkpass_base64: Buffer.from(bytes).toString("base64") } };
}
