import type { Elysia } from "elysia";
import { sleep } from "../../domain/clock.ts";
import { ApiError } from "../../domain/errors.ts";
import { limits } from "../../domain/limits.ts";
import type { NewPass } from "../../domain/passes.ts";
import { appleSignerOf, googleIssuerOf } from "../../domain/platform.ts";
import type { Idempotency } from "../../domain/queue.ts";
import type { Tenant } from "../../domain/tenant.ts";
import type { GoogleKind, PassType, WalletPayload } from "../../domain/wallet.ts";
import type { Exchange } from "../../http/exchange.ts";
import type { FrontDoor } from "../../http/front-door.ts";
import { acceptJob } from "../../http/sending/accept-job.ts";
import { keyConflict, pendingJob, quotaOf, readSend, replay } from "../../http/sending/serve-send.ts";
import { type AcceptedPass, acceptPass } from "./request/accept-pass.ts";

interface PassRoute {
  /** Part of what an Idempotency-Key stands for. */
  readonly scope: string;
  /** Of a Google pass that does not say. */
  readonly kind: GoogleKind;
}

const SEND: PassRoute = { scope: "wallet", kind: "generic" };
const CREATE: PassRoute = { scope: "passes", kind: "eventTicket" };

/**
 * `POST /v1/send/wallet` and `POST /v1/passes/create`.
 *
 * The request is counted, then its pass is stored and paid in one transaction, then its job is queued: a job never finds
 * its pass missing. What dies in between leaves a pass without a job, which `PassSweep` undoes.
 */
export function sendWalletRoutes(app: Elysia, door: FrontDoor): void {
  app.post("/v1/send/wallet", ({ request }) =>
    door.serve("send_wallet", request, (exchange) => servePass(door, exchange, SEND)),
  );
  app.post("/v1/passes/create", ({ request }) =>
    door.serve("create_pass", request, (exchange) => servePass(door, exchange, CREATE)),
  );
}

async function servePass(door: FrontDoor, exchange: Exchange, { scope, kind }: PassRoute): Promise<Response> {
  const tenant = await door.authenticate(exchange);
  door.refuseOverLimit(exchange, tenant);
  door.refuseFullQueue(exchange, tenant);
  await door.admit(exchange, tenant);
  const { body, idempotency } = await readSend(door, exchange, tenant, { channel: "wallet", scope });
  const { journal, platform } = door.ports;
  const first = idempotency === null ? null : await journal.queuedUnder(tenant, idempotency);
  // What was taken before is answered as before, also when it would not be taken any more.
  if (first?.isSame === true) return replay(exchange, first.jobId);
  const issuerId = googleIssuerOf(tenant, platform)?.issuerId ?? null;
  const accepted = acceptPass(body, { templates: tenant.wallet.templates, title: tenant.name, issuerId, kind });
  await requireOwn(door, tenant, accepted);
  // Before anything is looked at that costs tokens or a serial.
  if (first !== null) throw keyConflict();
  await requireCredentials(door, tenant, accepted.content.type);
  const pass = newPass(door, tenant, accepted);
  const twin = await storeOnce(door, tenant, { pass, idempotency });
  if (twin !== null) return replay(exchange, twin);
  return queue(door, exchange, { tenant, pass, idempotency, template: accepted.template });
}

/** Throws an `ApiError` 400 where the pass is of a class, or linked to objects, that only another tenant may use. */
async function requireOwn(door: FrontDoor, tenant: Tenant, { content }: AcceptedPass): Promise<void> {
  if (content.type !== "google") return;
  const { classes, google } = door.ports.wallet;
  await classes.requireUsable(tenant, content.classId);
  await google.requireOwnLinks(tenant, content);
}

/** Throws an `ApiError` 500 where the provider cannot be used, after the 402 of a tenant who could not pay anyway. */
export async function requireCredentials(door: FrontDoor, tenant: Tenant, type: PassType): Promise<void> {
  const { platform, registry } = door.ports;
  if ((type === "apple" ? appleSignerOf(tenant, platform) : googleIssuerOf(tenant, platform)) !== null) return;
  const { tokens } = await registry.tenant(tenant.tenantId);
  if (tokens < 1) throw new ApiError(402, "no token is left: a wallet pass costs 1, ask for more");
  throw missingCredentials(type);
}

export function missingCredentials(type: PassType): ApiError {
  return new ApiError(
    500,
    `the channel wallet has no credentials for passes of type ${type}: the operator sets a tenant's own with PUT ` +
      `/dash/api/tenants/{id}/credentials/${type} (allow_custom must name wallet), or everybody's with the settings ` +
      `${type.toUpperCase()}_…`,
  );
}

const TOKEN_BYTES = 24;

function newPass(door: FrontDoor, tenant: Tenant, { serial, content, images }: AcceptedPass): NewPass {
  const { jobIds, random, platform } = door.ports;
  const isApple = content.type === "apple";
  return {
    passId: jobIds.next(),
    tenantId: tenant.tenantId,
    serial,
    content,
    images,
    passTypeId: isApple ? (appleSignerOf(tenant, platform)?.passTypeId ?? null) : null,
    authenticationToken: isApple ? Buffer.from(random.fill(new Uint8Array(TOKEN_BYTES))).toString("base64url") : null,
    jobId: jobIds.next(),
  };
}

interface Storing {
  readonly pass: NewPass;
  readonly idempotency: Idempotency | null;
}

/**
 * Stores and pays the pass, and answers null; or the job of the very same request, which came at the same time and got
 * the serial first. Between its two steps that one has no job yet, so it is waited for.
 */
async function storeOnce(door: FrontDoor, tenant: Tenant, { pass, idempotency }: Storing): Promise<string | null> {
  const { clock, journal, wallet } = door.ports;
  const giveUpAtMs = clock.monotonicMs() + limits.passTwinMs;
  for (let waitMs = 5; ; waitMs = Math.min(2 * waitMs, 200)) {
    try {
      await wallet.passes.create(pass);
      return null;
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 400 || idempotency === null) throw error;
      // The holder first: a job that it had by then is found in what follows.
      const holder = await wallet.passes.holder(pass);
      const queued = await journal.queuedUnder(tenant, idempotency);
      if (queued?.isSame === true) return queued.jobId;
      if (holder !== null && !(holder.state === "creating" && Bun.deepEquals(holder.content, pass.content)))
        throw error;
    }
    if (clock.monotonicMs() > giveUpAtMs) {
      throw new ApiError(500, "an earlier try of this request has not ended yet: try again in some minutes");
    }
    await sleep(clock, waitMs);
  }
}

interface Queueing extends Storing {
  readonly tenant: Tenant;
  /** That the pass was made from, or null. */
  readonly template: string | null;
}

async function queue(
  door: FrontDoor,
  exchange: Exchange,
  { tenant, pass, idempotency, template }: Queueing,
): Promise<Response> {
  const undo = () => undoCreate(door, pass);
  const { passId, jobId } = pass;
  const payload: WalletPayload = { action: "create", passId, version: 1 };
  // Nobody unsubscribes from passes: the recipient stands for the pass alone.
  const named = template === null ? null : { template };
  const work = { channel: "wallet", recipient: passId, payload: JSON.stringify(payload) } as const;
  const job = { jobId, ...work, quota: quotaOf(tenant.plan), idempotency, ...named };
  const answer = await acceptJob(door, { tenant, requestsPerMinute: null, job, onNotQueued: undo });
  if (answer.kind !== "accepted") await undo();
  switch (answer.kind) {
    case "accepted":
      return exchange.jsonText(202, pendingJob(answer.jobId));
    case "replayed":
      return replay(exchange, answer.jobId);
    case "conflict":
      throw keyConflict();
    case "limited":
      throw door.overLimit(exchange, tenant);
    case "queue_full":
      throw door.queueFull(exchange, tenant, answer.what);
  }
}

/** What cannot be undone now is undone by the sweep. */
async function undoCreate(door: FrontDoor, { tenantId, jobId }: NewPass): Promise<void> {
  const { telemetry, wallet } = door.ports;
  await wallet.passes.undoCreate(tenantId, jobId).catch((error: unknown) => {
    telemetry.log("warn", "a pass without a job is left to the sweep", { job_id: jobId, error: String(error) });
  });
}
