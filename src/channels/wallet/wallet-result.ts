import type { JobRecord } from "../../domain/jobs/job.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import type { CallTurns } from "../../http/call-turns.ts";
import type { FileLinks } from "./pass-file-links.ts";
import type { BundleMaker, PassStore, SaveLinks } from "./passes.ts";
import { noSuchPass, unusable } from "./refusals.ts";

interface PassResultPorts {
  readonly passes: Pick<PassStore, "find" | "bundle">;
  readonly bundles: BundleMaker;
  readonly saveLinks: SaveLinks;
  readonly fileLinks: Pick<FileLinks, "createLink">;
  readonly fileTurns: CallTurns;
}

/**
 * Returns a job in its tenant's view. The stored result of a pass's job is only `{pass_id}`, which keeps files and
 * links out of the queue and the event store: the pass's current file or link is added on reading, or, for an Apple
 * pass that a message carried, the link to the file. Throws an `ApiError` if there is none, and otherwise as
 * `CallTurns` does.
 */
export async function withPass(
  { passes, bundles, saveLinks, fileLinks, fileTurns }: PassResultPorts,
  tenant: Tenant,
  job: JobRecord,
): Promise<JobRecord> {
  const { result } = job;
  if (job.status !== "success" || result === null) return job;
  const passId = result["pass_id"];
  if (typeof passId !== "string") return job;
  const pass = await passes.find(tenant.tenantId, passId);
  if (pass === null) return job;
  if (pass.content.type === "google") {
    const link = saveLinks.buildLink(pass, tenant);
    if (typeof link !== "string") {
      // A message's result lacks only its pass, and a job whose link will never exist must not fail every call.
      if (job.channel !== "wallet" || link.isForGood) return job;
      throw unusable(link);
    }
    return { ...job, result: { ...result, save_link: link } };
  }
  if (job.channel !== "wallet") {
    return { ...job, result: { ...result, download_url: fileLinks.createLink(pass.tenantId, [passId]).url } };
  }
  // A stored bundle needs no credentials; a later version is signed by its own job.
  const bundle = await fileTurns.inTurn(
    tenant.tenantId,
    async () => (await passes.bundle(passId)) ?? bundles.getBundle(pass, tenant),
  );
  if (bundle === null) throw noSuchPass();
  if ("why" in bundle) throw unusable(bundle);
  return { ...job, result: { ...result, pkpass_base64: Buffer.from(bundle.bytes).toString("base64") } };
}
