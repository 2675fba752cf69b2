import { type Static, Type } from "@sinclair/typebox";
import type { AppleContent, PassContent } from "../../domain/channels/wallet.ts";
import type { Clock } from "../../domain/clock.ts";
import { isJobId, type JobIds } from "../../domain/ids.ts";
import { toQueueQuota } from "../../domain/jobs/queue.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import { ApiError } from "../../http/api-error.ts";
import { type Endpoint, reply, tenantEndpoint } from "../../http/endpoint.ts";
import type { Exchange } from "../../http/exchange.ts";
import { tenantFailure } from "../../http/failures.ts";
import type { FrontDoor } from "../../http/front-door.ts";
import { pathText } from "../../http/parameters.ts";
import { enumSchema, Uuid } from "../../http/schemas.ts";
import { acceptJob } from "../../http/sending/accept-job.ts";
import { keyConflict, REPLAYED } from "../../http/sending/accepted-answer.ts";
import { readIdempotency } from "../../http/sending/idempotency.ts";
import { IDEMPOTENCY_KEY, REPLAYED_HEADER } from "../../http/sending/send-endpoint.ts";
import type { GooglePassStatus, Pass, PassDevices, PassStore } from "./passes.ts";
import { encodePayload } from "./payload.ts";
import { resolveAppleSigner, resolveGoogleIssuer, type WalletPlatform } from "./platform.ts";
import type { WalletPorts } from "./ports.ts";
import { missingCredentials, noSuchPass, orRefuse, requireOwnLinks, requireSignable, unusable } from "./refusals.ts";
import { acceptPassUpdate, imagesOfUpdate, updatedContent } from "./request/accept-pass-update.ts";
import { PassUpdate } from "./request/pass-schema.ts";
import { Fault, fault } from "./request/readers.ts";
import { asSent } from "./request/sent-names.ts";

export interface PassEndpointPorts {
  readonly wallet: Pick<WalletPorts, "bundles" | "google" | "fileTurns" | "saves"> & {
    readonly passes: Pick<PassStore, "find" | "update">;
    readonly devices: Pick<PassDevices, "count">;
  };
  /** Provider credentials for tenants without their own. */
  readonly platform: WalletPlatform;
  readonly clock: Pick<Clock, "nowMs">;
  readonly jobIds: JobIds;
}

const PASS_ID = "01936f2e-7c1a-7c44-8b1e-6d0f2a9be310";

const UpdatingPass = Type.Object(
  {
    pass_id: Uuid,
    job_id: Uuid,
    status: Type.Literal("updating"),
    unchanged: Type.Optional(
      Type.Boolean({
        description: "True: the pass is so already and keeps its version, and who was told of it is not told again.",
      }),
    ),
  },
  { $id: "UpdatingPass" },
);

const Version = Type.Integer({ description: "1 from the start, one more with every update." });

const PassStatus = Type.Union(
  [
    Type.Object(
      {
        pass_id: Uuid,
        pass_type: Type.Literal("apple"),
        version: Version,
        status: enumSchema(["active", "expired", "voided"]),
        installed_devices: Type.Integer(),
        is_installed: Type.Boolean(),
      },
      { $id: "ApplePassStatus" },
    ),
    Type.Object(
      {
        pass_id: Uuid,
        pass_type: Type.Literal("google"),
        version: Version,
        status: enumSchema(
          ["active", "completed", "expired", "inactive", "not_found"],
          "`google_status` in lower case.",
        ),
        google_status: enumSchema(["ACTIVE", "COMPLETED", "EXPIRED", "INACTIVE", "not_found"]),
        has_users: Type.Boolean({ description: "At least one user saved the pass." }),
        is_installed: Type.Boolean({
          description:
            "Somebody has it, by what Google has told of saves and removals; of a class that Google does not tell of, by `has_users`.",
        }),
      },
      { $id: "GooglePassStatus" },
    ),
  ],
  { $id: "PassStatus" },
);
type PassStatus = Static<typeof PassStatus>;

export const NO_SUCH_PASS = tenantFailure(
  "NoSuchPass",
  "There is no such pass, or it is another tenant's.",
  "there is no such pass",
);

/** Members shared by the endpoints. */
const OF_PASS = {
  tag: "Passes",
  channel: "wallet",
  params: { id: pathText("The pass_id in the result of the job that created the pass.", PASS_ID) },
  fails: { 404: NO_SUCH_PASS },
} as const;

const KEY_USED = tenantFailure(
  "IdempotencyKeyUsed",
  "The Idempotency-Key was used with another request.",
  "this Idempotency-Key was used before with another body",
);

/** `/v1/passes/{pass_id}`: a tenant's passes after their creation. */
export function passEndpoints(ports: PassEndpointPorts): readonly Endpoint[] {
  return [updatePassEndpoint(ports), downloadPassEndpoint(ports), passStatusEndpoint(ports)];
}

function updatePassEndpoint(ports: PassEndpointPorts): Endpoint {
  return tenantEndpoint({
    ...OF_PASS,
    method: "PUT",
    path: "/v1/passes/:id",
    name: "update_pass",
    operation: "updatePass",
    summary: "Change a pass, and tell the devices that have it",
    description:
      "Fields are merged by their `key` (a Google object's text modules by their `id`), every other key is replaced, " +
      "null removes it. A field whose `value` is null is taken off, and one that is named in another group of fields moves there. " +
      "An update without a change makes no version and no push; an empty image leaves the present one, and a pass cannot get more than 4 MiB of images. A field with " +
      "`changeMessage` shows a banner, and so does `notify_message` for a Google pass. It is free of charge. " +
      "Versions follow the order in which updates are accepted. Where a 429 says that the share of the queue is used up, the " +
      "pass may be changed already: repeat the request, and its holders are told.",
    queues: true,
    scope: "send",
    headers: [IDEMPOTENCY_KEY],
    body: {
      schema: PassUpdate,
      examples: {
        apple: { value: { pass_data: { primary_fields: [{ key: "points", value: "130" }] } } },
        google: {
          value: {
            pass_data: { textModulesData: [{ id: "gate", header: "Gate", body: "B" }] },
            notify_message: "Your gate has changed",
            notification_kind: "match.upcoming",
          },
        },
      },
    },
    answers: {
      202: {
        description: "Stored, and its delivery queued.",
        schema: UpdatingPass,
        examples: [{ pass_id: PASS_ID, job_id: "01936f2e-7c1a-7b3e-9a55-2f1c8f0a4d11", status: "updating" }],
        headers: REPLAYED_HEADER,
      },
    },
    fails: { ...OF_PASS.fails, 422: KEY_USED },
    async handle({ door, exchange, tenant, params: { id }, body }) {
      const { isRepeat, isUnchanged, ...ids } = await updatePass(ports, { door, exchange, tenant }, id, body);
      const said = { ...ids, status: "updating", ...(isUnchanged ? { unchanged: isUnchanged } : {}) } as const;
      return reply(202, said, isRepeat ? REPLAYED : {});
    },
  });
}

function downloadPassEndpoint({ wallet }: PassEndpointPorts): Endpoint {
  return tenantEndpoint({
    ...OF_PASS,
    method: "GET",
    path: "/v1/passes/:id/download",
    name: "download_pass",
    operation: "downloadPass",
    summary: "The file of an Apple pass",
    answers: {
      200: {
        description: "The signed file of the pass's latest version.",
        schema: null,
        mediaType: "application/vnd.apple.pkpass",
        isBinary: true,
        headers: { "Content-Disposition": "A name for the file.", "Last-Modified": "When the file was signed." },
      },
    },
    /** Signs the bundle again first if it is older than the pass. */
    async handle({ exchange, tenant, params: { id } }) {
      const pass = await findPass(wallet, tenant, id);
      if (pass.content.type !== "apple") {
        throw new ApiError("no_such_file", "a pass of type google has no file: use its save_link");
      }
      const bundle = await wallet.fileTurns.inTurn(tenant.tenantId, () => wallet.bundles.getBundle(pass, tenant));
      if (bundle === null) throw noSuchPass();
      if ("why" in bundle) throw unusable(bundle);
      const { bytes, modifiedAt } = bundle;
      return exchange.file(200, bytes, {
        "content-type": "application/vnd.apple.pkpass",
        "content-disposition": `attachment; filename="${pass.passId}.pkpass"`,
        "last-modified": new Date(modifiedAt * 1000).toUTCString(),
        "cache-control": "private, no-store",
      });
    },
  });
}

function passStatusEndpoint(ports: PassEndpointPorts): Endpoint {
  return tenantEndpoint({
    ...OF_PASS,
    method: "GET",
    path: "/v1/passes/:id/status",
    name: "pass_status",
    operation: "getPassStatus",
    summary: "Whether a pass is valid, and on how many devices",
    description: "A Google pass is looked up at Google each time.",
    answers: {
      200: {
        description: "The pass as it is now.",
        schema: PassStatus,
        examples: {
          apple: {
            value: {
              pass_id: PASS_ID,
              pass_type: "apple",
              version: 3,
              status: "active",
              installed_devices: 2,
              is_installed: true,
            },
          },
          google: {
            value: {
              pass_id: PASS_ID,
              pass_type: "google",
              version: 1,
              status: "active",
              google_status: "ACTIVE",
              has_users: true,
              is_installed: true,
            },
          },
        },
      },
    },
    handle: async ({ tenant, params: { id } }) =>
      reply(200, await buildStatus(ports, tenant, await findPass(ports.wallet, tenant, id))),
  });
}

interface TenantCall {
  readonly door: FrontDoor;
  readonly exchange: Exchange;
  readonly tenant: Tenant;
}

interface QueuedUpdate {
  readonly pass_id: string;
  readonly job_id: string;
  readonly isRepeat: boolean;
  readonly isUnchanged: boolean;
}

/**
 * Merges the update under the pass's lock, so versions follow the order of acceptance; its job delivers the newest
 * version at that time to the pass's holders. If no job can be queued, the next update's job delivers the change.
 */
async function updatePass(
  { jobIds, platform, wallet }: PassEndpointPorts,
  { door, exchange, tenant }: TenantCall,
  id: string,
  body: unknown,
): Promise<QueuedUpdate> {
  const idempotency = readIdempotency(exchange, `update ${id.toLowerCase()}`, body);
  const earlier = idempotency === null ? null : await door.ports.queue.queuedUnder(tenant, idempotency);
  if (earlier?.isSame === true) {
    return { pass_id: id.toLowerCase(), job_id: earlier.jobId, isRepeat: true, isUnchanged: false };
  }
  const accepted = orRefuse(acceptPassUpdate(body));
  const found = await findPass(wallet, tenant, id);
  const { passId } = found;
  const { type } = found.content;
  if (type === "apple" && accepted.notifyMessage !== null) {
    orRefuse(asSent(FOR_GOOGLE, body));
  }
  const change = (pass: Pass) => asSent(updatedContent(accepted, pass, tenant.name), body);
  // Checks the request against the present pass, because its errors come before missing credentials. The delivery
  // checks the links again.
  const changed = orRefuse(change(found));
  const images = orRefuse(asSent(imagesOfUpdate(accepted, found), body));
  if (earlier !== null) throw keyConflict();
  if (type === "google") await requireOwnLinks(wallet.google, tenant, changed);
  // Content that the pass already has does not make an unrelated update fail.
  if (!hasSameNfc(found.content, changed)) requireSignable(changed, resolveAppleSigner(tenant, platform));
  if ((type === "apple" ? resolveAppleSigner : resolveGoogleIssuer)(tenant, platform) === null)
    throw missingCredentials(type);
  const jobId = jobIds.next();
  const { notificationKind, notifyMessage } = accepted;
  const updated = await wallet.passes.update(tenant.tenantId, {
    passId,
    jobId,
    notificationKind,
    notifyMessage,
    images,
    change: (pass) => {
      const content = change(pass);
      if (content instanceof Fault) return { why: content.message };
      // A notice to a Google pass's holders is a separate version in its history.
      return notifyMessage === null && Bun.deepEquals(content, pass.content) ? null : content;
    },
  });
  if (updated === null) throw noSuchPass();
  if ("why" in updated) throw new ApiError(400, updated.why);
  const { version, unchanged } = updated;
  const current = unchanged === "told" ? ({ isCurrent: true } as const) : {};
  const brought = { action: "update", passId, version, ...current } as const;
  const payload = encodePayload(notifyMessage === null ? brought : { ...brought, notifyMessage });
  const work = { jobId, channel: "wallet", recipient: passId, payload } as const;
  const job = { ...work, quota: toQueueQuota(tenant.plan), idempotency };
  const answer = await acceptJob(door, { tenant, requestsPerMinute: null, job, exchange });
  // The change stays in the pass; repeating the request, or the next update, delivers it to the holders.
  if (answer.kind === "queue_full") throw door.queueFull(exchange, tenant, answer.what);
  // Two concurrent requests have one key.
  if (answer.kind === "conflict") throw keyConflict();
  const isRepeat = answer.kind === "replayed";
  return { pass_id: passId, job_id: isRepeat ? answer.jobId : jobId, isRepeat, isUnchanged: unchanged !== undefined };
}

async function buildStatus({ clock, wallet }: PassEndpointPorts, tenant: Tenant, pass: Pass): Promise<PassStatus> {
  const { passId: pass_id, version, content } = pass;
  if (content.type === "apple") {
    const installed_devices = await wallet.devices.count(pass_id);
    const status = appleStatus(content, clock.nowMs());
    return { pass_id, pass_type: "apple", version, status, installed_devices, is_installed: installed_devices > 0 };
  }
  const held = await wallet.google.status(tenant, pass);
  if ("why" in held) throw unusable(held);
  const { googleStatus: google_status, hasUsers, isCalledBack } = held;
  const holders = isCalledBack === true ? await wallet.saves.holders(pass_id) : null;
  const isInstalled = holders === null ? held.isInstalled : holders > 0;
  const seen = { status: GOOGLE_STATUS[google_status], google_status, has_users: hasUsers, is_installed: isInstalled };
  return { pass_id, pass_type: "google", version, ...seen };
}

const GOOGLE_STATUS = {
  ACTIVE: "active",
  COMPLETED: "completed",
  EXPIRED: "expired",
  INACTIVE: "inactive",
  not_found: "not_found",
} as const satisfies Record<GooglePassStatus["googleStatus"], string>;

function appleStatus({ pass }: AppleContent, nowMs: number): "active" | "expired" | "voided" {
  const { voided, expirationDate } = pass;
  if (voided === true) return "voided";
  return typeof expirationDate === "string" && Date.parse(expirationDate) <= nowMs ? "expired" : "active";
}

/** Throws 404 if this tenant has no such pass, whether or not another tenant does. */
async function findPass({ passes }: PassEndpointPorts["wallet"], tenant: Tenant, id: string): Promise<Pass> {
  const pass = await knownPass(passes, tenant, id);
  if (pass === null) throw noSuchPass();
  return pass;
}

/** Finds a pass; null if this tenant has no such pass. */
export async function knownPass(
  passes: Pick<PassStore, "find">,
  { tenantId }: Tenant,
  id: string,
): Promise<Pass | null> {
  const passId = id.toLowerCase();
  const pass = isJobId(passId) ? await passes.find(tenantId, passId) : null;
  return pass?.state === "failed" ? null : pass;
}

const FOR_GOOGLE = fault("notify_message", "is for passes of type google: give the changed field a changeMessage");

function hasSameNfc(one: PassContent, other: PassContent): boolean {
  return one.type === "apple" && other.type === "apple" && Bun.deepEquals(one.pass["nfc"], other.pass["nfc"]);
}
