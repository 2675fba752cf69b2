import { backOffMs } from "../../domain/back-off.ts";
import type { PassContent, PassType } from "../../domain/channels/wallet.ts";
import { type Clock, sleep } from "../../domain/clock.ts";
import type { FrontQueue, Idempotency, IdempotencyKeys } from "../../domain/jobs/queue.ts";
import type { Random } from "../../domain/random.ts";
import type { Done, Missing } from "../../domain/store-result.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import { ApiError } from "../../http/api-error.ts";
import { keyConflict } from "../../http/sending/accepted-answer.ts";
import { requireResult } from "../../http/store-results.ts";
import type { GoogleClasses } from "./google-classes.ts";
import { walletLimits } from "./limits.ts";
import type { GooglePasses, NewPass, Pass, PassStore } from "./passes.ts";
import { resolveAppleSigner, resolveGoogleIssuer, type WalletPlatform } from "./platform.ts";
import { missingCredentials, requireOwnLinks, requireSignable } from "./refusals.ts";
import type { AcceptedPass } from "./request/accept-pass.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

/** Dependencies of accepting a pass for a job. */
export interface PassTakingPorts {
  readonly wallet: {
    readonly passes: Pick<PassStore, "create" | "discard" | "holder">;
    readonly google: Pick<GooglePasses, "linkProblem">;
    readonly classes: Pick<GoogleClasses, "isUsable">;
  };
  readonly registry: { tenant(tenantId: string): Promise<Done<{ readonly tokens: number }> | Missing<"tenant">> };
  /** Provider credentials for tenants without their own. */
  readonly platform: WalletPlatform;
  readonly queue: IdempotencyKeys & Pick<FrontQueue, "job">;
  readonly clock: Clock;
  readonly random: Random;
  readonly telemetry: Pick<Telemetry, "log">;
}

/**
 * Throws an `ApiError` 400 if the pass has a class, or links to objects, that only another tenant may use, or has
 * content that the certificate may not sign.
 *
 * @param at The prefix of the request's member names in errors.
 */
export async function requireOwn(
  { platform, wallet }: PassTakingPorts,
  tenant: Tenant,
  { content }: AcceptedPass,
  at = "",
): Promise<void> {
  if (content.type !== "google") return requireSignable(content, resolveAppleSigner(tenant, platform), at);
  const { classes, google } = wallet;
  const { classId } = content;
  if (!(await classes.isUsable(tenant, classId))) {
    const field = `${at}pass_data.class_id`;
    throw new ApiError(400, `${field}: the class ${classId} is another tenant's, choose an id of your own`);
  }
  await requireOwnLinks(google, tenant, content, at);
}

/** Throws an `ApiError` 500 if the provider cannot be used, or first a 402 if the tenant could not pay anyway. */
export async function requireCredentials(
  { platform, registry }: PassTakingPorts,
  tenant: Tenant,
  type: PassType,
): Promise<void> {
  if ((type === "apple" ? resolveAppleSigner(tenant, platform) : resolveGoogleIssuer(tenant, platform)) !== null)
    return;
  const { tokens } = requireResult(await registry.tenant(tenant.tenantId));
  if (tokens < 1) throw noTokens();
  throw missingCredentials(type);
}

const TOKEN_BYTES = 24;

export function newPass(
  { random, platform }: PassTakingPorts,
  tenant: Tenant,
  { serial, content, images }: AcceptedPass,
  ids: Pick<NewPass, "passId" | "jobId">,
): NewPass {
  const isApple = content.type === "apple";
  return {
    ...ids,
    tenantId: tenant.tenantId,
    serial,
    content,
    images,
    passTypeId: isApple ? (resolveAppleSigner(tenant, platform)?.passTypeId ?? null) : null,
    authenticationToken: isApple ? Buffer.from(random.fill(new Uint8Array(TOKEN_BYTES))).toString("base64url") : null,
  };
}

export interface Storing {
  readonly pass: NewPass;
  readonly idempotency: Idempotency | null;
  /** The prefix of the request's member names in errors; default "". */
  readonly at?: string;
}

/**
 * Stores and charges the pass and returns null; or returns the job of an identical concurrent request that took the
 * serial first. That request has no job yet between its two steps, so this one waits for it.
 */
export async function storeOnce(
  ports: PassTakingPorts,
  tenant: Tenant,
  { pass, idempotency, at = "" }: Storing,
): Promise<string | null> {
  const { clock, random, queue, wallet } = ports;
  const giveUpAtMs = clock.monotonicMs() + walletLimits.passTwinMs;
  for (let tries = 0; ; tries += 1) {
    const stored = await wallet.passes.create(pass);
    if (stored === "created") return null;
    if (stored === "no_tokens") throw noTokens();
    if (stored === "failed_often") throw failedOften(clock.nowMs());
    if (idempotency === null) throw serialUsed(pass, at);
    // In this order, because a job and its key are written together: if the job is found, so is its key.
    const holder = await wallet.passes.holder(pass);
    const isQueued = holder?.state === "creating" && (await queue.job(tenant, holder.jobId)) !== null;
    const queued = await queue.queuedUnder(tenant, idempotency);
    if (queued?.isSame === true) return queued.jobId;
    if (queued !== null) throw keyConflict();
    if (holder !== null && (isQueued || !isAlike(holder, pass))) throw serialUsed(pass, at);
    if (clock.monotonicMs() > giveUpAtMs) {
      throw new ApiError(
        "outcome_unknown",
        "an earlier try of this request has not ended yet: try again in some minutes",
      );
    }
    await sleep(clock, backOffMs(walletLimits.passTwinLooks, tries, random));
  }
}

/** Whether the pass with the serial may come from an equal request whose job is not queued yet. */
function isAlike({ state, content }: Pass, pass: NewPass): boolean {
  // The registry expands exponents, which changes a number's digits.
  const asDoubles = (content: PassContent): unknown => JSON.parse(JSON.stringify(content));
  return state === "creating" && Bun.deepEquals(asDoubles(content), asDoubles(pass.content));
}

function noTokens(): ApiError {
  return new ApiError("insufficient_tokens", "no token is left: a wallet pass costs 1, ask for more");
}

function failedOften(nowMs: number): ApiError {
  const failed = `${walletLimits.refundsADayMax} of your passes failed today, or were taken back, which is as many as may`;
  return new ApiError(
    "daily_limit_reached",
    `${failed}: try again tomorrow (UTC)`,
    {},
    Math.ceil((DAY_MS - (nowMs % DAY_MS)) / 1000),
  );
}

function serialUsed({ content }: NewPass, at: string): ApiError {
  const field = content.type === "apple" ? "serial_number" : "object_id";
  return new ApiError(400, `${at}pass_data.${field} was used before: every pass needs one of its own`);
}

/** Refunds a pass whose job was not queued. If that is impossible now, the sweep does it. */
export async function discard(
  { telemetry, wallet }: PassTakingPorts,
  { tenantId, jobId }: Pick<NewPass, "tenantId" | "jobId">,
): Promise<void> {
  await wallet.passes.discard(tenantId, jobId).catch((error: unknown) => {
    telemetry.log("warn", "a pass without a job is left to the sweep", { job_id: jobId, error: String(error) });
  });
}
