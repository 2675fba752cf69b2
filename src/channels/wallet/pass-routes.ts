import type { Elysia } from "elysia";
import { ApiError } from "../../domain/errors.ts";
import { isJobId } from "../../domain/ids.ts";
import type { Pass } from "../../domain/passes.ts";
import { appleSignerOf, googleIssuerOf } from "../../domain/platform.ts";
import type { Tenant } from "../../domain/tenant.ts";
import type { AppleContent, WalletPayload } from "../../domain/wallet.ts";
import type { Exchange } from "../../http/exchange.ts";
import type { FrontDoor } from "../../http/front-door.ts";
import { acceptJob } from "../../http/sending/accept-job.ts";
import { admittedTenant, quotaOf } from "../../http/sending/serve-send.ts";
import { acceptPassUpdate, imagesOfUpdate, updatedContent } from "./request/accept-pass-update.ts";
import { missingCredentials } from "./routes.ts";

/** `/v1/passes/{pass_id}`: a tenant's passes, after their creation. */
export function passRoutes(app: Elysia, door: FrontDoor): void {
  app.put("/v1/passes/:id", ({ request, params: { id } }) =>
    door.serve("update_pass", request, (exchange) => updatePass(door, exchange, id)),
  );
  app.get("/v1/passes/:id/download", ({ request, params: { id } }) =>
    door.serve("download_pass", request, (exchange) => downloadPass(door, exchange, id)),
  );
  app.get("/v1/passes/:id/status", ({ request, params: { id } }) =>
    door.serve("pass_status", request, async (exchange) => {
      const tenant = await admittedTenant(door, exchange, "wallet");
      return exchange.json(200, await statusOf(door, tenant, await find(door, tenant, id)));
    }),
  );
}

/**
 * The update is merged here, under the pass's lock, so that versions follow the order of acceptance; its job brings
 * whatever version is the newest by then to the pass's holders. Where no job can be queued, the next update's does.
 */
async function updatePass(door: FrontDoor, exchange: Exchange, id: string | null): Promise<Response> {
  const { jobIds, platform, wallet } = door.ports;
  const tenant = await admittedTenant(door, exchange, "wallet");
  door.refuseFullQueue(exchange, tenant);
  const accepted = acceptPassUpdate((await door.json(exchange)).value);
  const found = await find(door, tenant, id);
  const { passId } = found;
  const { type } = found.content;
  if (type === "apple" && accepted.notifyMessage !== null) {
    throw new ApiError(400, "notify_message is for passes of type google: give the changed field a changeMessage");
  }
  if ((type === "apple" ? appleSignerOf : googleIssuerOf)(tenant, platform) === null) throw missingCredentials(type);
  const change = (pass: Pass) => updatedContent(accepted, pass, tenant.name);
  // As the pass is now; what it is linked to by the time of the job, its delivery looks at once more.
  const content = type === "google" ? change(found) : null;
  if (content?.type === "google") await wallet.google.requireOwnLinks(tenant, content);
  const jobId = jobIds.next();
  const { notificationKind, notifyMessage } = accepted;
  const { version } = await wallet.passes.update(tenant.tenantId, {
    passId,
    jobId,
    notificationKind,
    notifyMessage,
    images: imagesOfUpdate(accepted, found),
    change,
  });
  const brought: WalletPayload = { action: "update", passId, version };
  const payload = JSON.stringify(notifyMessage === null ? brought : { ...brought, notifyMessage });
  const work = { jobId, channel: "wallet", recipient: passId, payload } as const;
  const job = { ...work, quota: quotaOf(tenant.plan), idempotency: null };
  const answer = await acceptJob(door, { tenant, requestsPerMinute: null, job });
  // The change stays with the pass; the same request again, or the next update, brings it to the holders.
  if (answer.kind === "queue_full") throw door.queueFull(exchange, tenant, answer.what);
  return exchange.json(202, { pass_id: passId, job_id: jobId, status: "updating" });
}

/** A bundle that is older than the pass is signed anew first. */
async function downloadPass(door: FrontDoor, exchange: Exchange, id: string | null): Promise<Response> {
  const tenant = await admittedTenant(door, exchange, "wallet");
  const pass = await find(door, tenant, id);
  if (pass.content.type !== "apple") throw new ApiError(404, "a pass of type google has no file: use its save_link");
  const { bytes, modifiedAt } = await door.ports.wallet.bundles.bundleOf(pass, tenant);
  return exchange.body(200, bytes, {
    "content-type": "application/vnd.apple.pkpass",
    "content-disposition": `attachment; filename="${pass.passId}.pkpass"`,
    "last-modified": new Date(modifiedAt * 1000).toUTCString(),
    "cache-control": "private, no-store",
  });
}

async function statusOf(door: FrontDoor, tenant: Tenant, pass: Pass): Promise<object> {
  const { clock, wallet } = door.ports;
  const { passId: pass_id, version, content } = pass;
  if (content.type === "apple") {
    const installed_devices = await wallet.devices.count(pass_id);
    const status = appleStatus(content, clock.nowMs());
    return { pass_id, pass_type: "apple", version, status, installed_devices, is_installed: installed_devices > 0 };
  }
  const { googleStatus: google_status, hasUsers, isInstalled } = await wallet.google.status(tenant, pass);
  const seen = { status: google_status.toLowerCase(), google_status, has_users: hasUsers, is_installed: isInstalled };
  return { pass_id, pass_type: "google", version, ...seen };
}

function appleStatus({ pass }: AppleContent, nowMs: number): "active" | "expired" | "voided" {
  const { voided, expirationDate } = pass;
  if (voided === true) return "voided";
  return typeof expirationDate === "string" && Date.parse(expirationDate) <= nowMs ? "expired" : "active";
}

/** Throws 404 for what is no pass of this tenant's, without telling a stranger's from none. */
async function find(door: FrontDoor, tenant: Tenant, id: string | null): Promise<Pass> {
  const passId = id?.toLowerCase() ?? "";
  const pass = isJobId(passId) ? await door.ports.wallet.passes.find(tenant.tenantId, passId) : null;
  if (pass === null || pass.state === "failed") throw new ApiError(404, "there is no such pass");
  return pass;
}
