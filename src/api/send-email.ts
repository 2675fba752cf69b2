import type { Elysia } from "elysia";
import { ApiError, isOutage, TransportError } from "../core/errors.ts";
import type { AcceptResult, Idempotency, NewJob } from "../core/journal.ts";
import type { Json } from "../core/json.ts";
import { limits } from "../core/limits.ts";
import type { Tenant } from "../core/tenant.ts";
import { acceptEmail, type EmailAcceptance, type Refusal } from "../intake/accept-email.ts";
import type { Exchange } from "./exchange.ts";
import { type FrontDoor, overLimit } from "./front-door.ts";
import { readJson } from "./request-body.ts";

/** `POST /v1/send/email`: the hot path. One parse, one stringify, one call of the journal. */
export function sendEmailRoutes(app: Elysia, door: FrontDoor): void {
  const work = (exchange: Exchange) => sendEmail(door, exchange);
  app.post("/v1/send/email", ({ request }) => door.serve("send_email", request, work));
}

async function sendEmail(door: FrontDoor, exchange: Exchange): Promise<Response> {
  const tenant = await door.authenticate(exchange);
  let send: Send;
  try {
    send = await readSend(exchange, tenant);
  } catch (error) {
    // 429 comes before every other refusal, and a refused request counts as well.
    await door.admit(exchange, tenant);
    throw error;
  }
  const { acceptance, idempotency } = send;
  if (!acceptance.ok) return refuse(door, exchange, { tenant, refusal: acceptance.refusal, idempotency });
  const job = { jobId: door.ports.jobIds.next(), channel: "email", ...acceptance.job, idempotency } as const;
  const accepted = await accept(door, tenant, job);
  exchange.rate = accepted.rate;
  switch (accepted.kind) {
    case "accepted":
      return exchange.jsonText(202, pendingJob(accepted.jobId));
    case "replayed":
      return replay(exchange, accepted.jobId);
    case "conflict":
      throw new ApiError(422, "this Idempotency-Key was used before with another body");
    case "limited":
      throw overLimit();
  }
}

function replay(exchange: Exchange, jobId: string): Response {
  return exchange.jsonText(202, pendingJob(jobId), { "idempotency-replayed": "true" });
}

interface Send {
  readonly acceptance: EmailAcceptance;
  readonly idempotency: Idempotency | null;
}

/** Throws an `ApiError` 403, 400 or 413, in this order. */
async function readSend(exchange: Exchange, tenant: Tenant): Promise<Send> {
  if (!tenant.channels.has("email")) throw new ApiError(403, "the channel email is not enabled for this tenant");
  const key = readIdempotencyKey(exchange.request);
  const body = await readJson(exchange.request);
  const idempotency = key === null ? null : { key, fingerprint: fingerprintOf(body.bytes) };
  return { acceptance: acceptEmail(tenant, body.value), idempotency };
}

interface Refused {
  readonly tenant: Tenant;
  readonly refusal: Refusal;
  readonly idempotency: Idempotency | null;
}

/** What was taken before is answered as before, also when it would not be taken any more: a template may be gone. */
async function refuse(
  door: FrontDoor,
  exchange: Exchange,
  { tenant, refusal, idempotency }: Refused,
): Promise<Response> {
  await door.admit(exchange, tenant);
  const jobId = idempotency === null ? null : await door.ports.journal.queuedUnder(tenant, idempotency);
  if (jobId !== null) return replay(exchange, jobId);
  const { status, message, violations } = refusal;
  throw new ApiError(status, message, violations === undefined ? {} : { violations: violations.map(toJson) });
}

const IDEMPOTENCY_KEY = new RegExp(`^[\\x20-\\x7e]{1,${limits.idempotencyKeyCharsMax}}$`);

function readIdempotencyKey(request: Request): string | null {
  const key = request.headers.get("idempotency-key");
  if (key === null || IDEMPOTENCY_KEY.test(key)) return key;
  throw new ApiError(
    400,
    `the Idempotency-Key must be 1 to ${limits.idempotencyKeyCharsMax} printable ASCII characters`,
  );
}

/** Names the route too: a key that is used for another channel's send is another request. */
function fingerprintOf(body: Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update("email\n").update(body).digest("base64url");
}

async function accept(door: FrontDoor, tenant: Tenant, job: NewJob): Promise<AcceptResult> {
  try {
    return await door.ports.journal.accept(tenant, tenant.plan.requestsPerMinute, job);
  } catch (error) {
    if (!isOutage(error)) throw error;
    door.ports.telemetry.log("error", "a job could not be queued", { job_id: job.jobId, error: String(error) });
    const effect =
      error instanceof TransportError ? "it is not known whether the job was queued" : "the job was not queued";
    throw new ApiError(500, `${effect}: try again, with an Idempotency-Key if it must not be sent twice`);
  }
}

function pendingJob(jobId: string): string {
  return `{"job_id":"${jobId}","status":"pending"}`;
}

function toJson(violation: { readonly rule: string; readonly message: string }): Json {
  return { rule: violation.rule, message: violation.message };
}
