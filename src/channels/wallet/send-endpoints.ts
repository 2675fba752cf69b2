import { type Clock, sleep } from "../../domain/clock.ts";
import type { JobIds } from "../../domain/ids.ts";
import { appleSignerOf, googleIssuerOf, type PlatformCredentials } from "../../domain/platform.ts";
import type { Idempotency, IdempotencyKeys } from "../../domain/queue.ts";
import type { Random } from "../../domain/random.ts";
import type { Done, Missing } from "../../domain/store-result.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import type { Tenant } from "../../domain/tenant.ts";
import type { GoogleKind, PassType } from "../../domain/wallet.ts";
import { ApiError } from "../../http/api-error.ts";
import { type Endpoint, endpoint } from "../../http/endpoint.ts";
import type { Exchange } from "../../http/exchange.ts";
import { tenantFailure } from "../../http/failures.ts";
import type { FrontDoor } from "../../http/front-door.ts";
import { acceptJob } from "../../http/sending/accept-job.ts";
import { SEND_FAILS, sends } from "../../http/sending/send-endpoint.ts";
import { answerAccepted, keyConflict, quotaOf, readSend, replay } from "../../http/sending/serve-send.ts";
import { resultOf } from "../../http/store-results.ts";
import type { GoogleClasses } from "./google-classes.ts";
import { walletLimits } from "./limits.ts";
import type { GooglePasses, NewPass, PassStore } from "./passes.ts";
import { encodePayload } from "./payload.ts";
import { missingCredentials, orRefuse, requireOwnLinks } from "./refusals.ts";
import { type AcceptedPass, acceptPass } from "./request/accept-pass.ts";
import { PassRequest } from "./request/pass-schema.ts";

export interface SendWalletPorts {
  readonly wallet: {
    readonly passes: Pick<PassStore, "create" | "undoCreate" | "holder">;
    readonly google: Pick<GooglePasses, "linkProblem">;
    readonly classes: Pick<GoogleClasses, "isUsable">;
  };
  readonly registry: { tenant(tenantId: string): Promise<Done<{ readonly tokens: number }> | Missing<"tenant">> };
  /** Provider credentials for tenants without their own. */
  readonly platform: PlatformCredentials;
  readonly queue: IdempotencyKeys;
  readonly clock: Clock;
  readonly random: Random;
  readonly jobIds: JobIds;
  readonly telemetry: Pick<Telemetry, "log">;
}

const NO_TOKENS = tenantFailure(
  "NoTokens",
  "No token is left.",
  "no token is left: a wallet pass costs 1, ask for more",
);

const DESCRIPTION =
  "A pass costs 1 token, which is given back should the job fail. Keys of an Apple pass may be written as " +
  "`auxiliary_fields` or as Apple does (`auxiliaryFields`, which wins where both are there); further keys of Apple's " +
  "pass.json are taken in the same two spellings, unknown ones are refused. Images are PNGs in base64 or a data URL of " +
  "at most 2 MiB each. With `template_id`, type, style and whatever the request leaves out come from the template; " +
  "fields are merged by their key, text modules by their id, and where both say something the request wins.";

const APPLE = {
  pass_type: "apple",
  pass_data: {
    serial_number: "member-1042",
    organization_name: "Acme",
    description: "Member card",
    style: "storeCard",
    barcodes: [{ message: "1042", format: "PKBarcodeFormatQR", messageEncoding: "iso-8859-1" }],
    primary_fields: [{ key: "points", label: "Points", value: "120", changeMessage: "You have %@ points now" }],
  },
} as const;
/** A second example: each pass needs its own serial. */
const APPLE_TICKET = {
  pass_type: "apple",
  pass_data: {
    serial_number: "ticket-7",
    organization_name: "Acme",
    description: "Ticket",
    style: "eventTicket",
    barcodes: [{ message: "7", format: "PKBarcodeFormatQR", messageEncoding: "iso-8859-1" }],
    primary_fields: [{ key: "event", label: "Event", value: "The final" }],
  },
} as const;
const GENERIC = {
  pass_type: "google",
  pass_data: {
    class_id: "3388000000012345678.member",
    object_id: "3388000000012345678.member-1042",
    object_data: { header: { defaultValue: { language: "en", value: "Ada" } } },
  },
} as const;
const TICKET = {
  pass_type: "google",
  pass_data: {
    class_id: "3388000000012345678.final",
    class_type: "eventTicket",
    object_id: "3388000000012345678.ticket-7",
    object_data: { state: "ACTIVE", ticketHolderName: "Ada", barcode: { type: "QR_CODE", value: "7" } },
  },
} as const;

/** What the two endpoints share. */
const PASS_SEND = {
  ...sends("Send"),
  caller: "tenant",
  scope: "send",
  channel: "wallet",
  fails: { ...SEND_FAILS, 402: NO_TOKENS },
} as const;

interface PassRoute {
  /** Part of the scope of an Idempotency-Key. */
  readonly scope: string;
  /** The default for a Google pass without a class type. */
  readonly kind: GoogleKind;
}

const SEND: PassRoute = { scope: "wallet", kind: "generic" };
const CREATE: PassRoute = { scope: "passes", kind: "eventTicket" };

/**
 * `POST /v1/send/wallet` and `POST /v1/passes/create`.
 *
 * The request is counted, then its pass is stored and charged in one transaction, then its job is queued: a job never
 * finds its pass missing. A process that dies in between leaves a pass without a job, which `PassSweep` undoes.
 */
export function sendWalletEndpoints(ports: SendWalletPorts): readonly Endpoint[] {
  return [
    endpoint({
      ...PASS_SEND,
      path: "/v1/send/wallet",
      name: "send_wallet",
      operation: "sendWallet",
      summary: "Queue a wallet pass",
      description: `${DESCRIPTION} A Google pass is a generic one unless \`class_type\` says otherwise.`,
      body: {
        schema: PassRequest,
        examples: { apple: { summary: "Apple", value: APPLE }, google: { summary: "Google", value: GENERIC } },
      },
      handle: (door, exchange) => servePass(ports, door, exchange, SEND),
    }),
    endpoint({
      ...PASS_SEND,
      path: "/v1/passes/create",
      name: "create_pass",
      operation: "createPass",
      summary: "Queue a wallet pass, a Google one as an event ticket",
      description: `${DESCRIPTION} A Google pass is an event ticket unless \`class_type\` says otherwise.`,
      body: {
        schema: PassRequest,
        examples: { apple: { summary: "Apple", value: APPLE_TICKET }, google: { summary: "Google", value: TICKET } },
      },
      handle: (door, exchange) => servePass(ports, door, exchange, CREATE),
    }),
  ];
}

async function servePass(
  ports: SendWalletPorts,
  door: FrontDoor,
  exchange: Exchange,
  { scope, kind }: PassRoute,
): Promise<Response> {
  const tenant = await door.authenticate(exchange, "send");
  door.refuseOverLimit(exchange, tenant);
  door.refuseFullQueue(exchange, tenant);
  await door.admit(exchange, tenant);
  const { body, idempotency } = await readSend(door, exchange, tenant, { channel: "wallet", scope });
  const { queue, platform } = ports;
  const first = idempotency === null ? null : await queue.queuedUnder(tenant, idempotency);
  // A request accepted before gets the same reply, even if it would be refused now.
  if (first?.isSame === true) return replay(exchange, first.jobId);
  const issuerId = googleIssuerOf(tenant, platform)?.issuerId ?? null;
  const context = { templates: tenant.wallet.templates, title: tenant.name, issuerId, kind };
  const accepted = orRefuse(acceptPass(body, context));
  await requireOwn(ports, tenant, accepted);
  // Before any check that concerns tokens or the serial.
  if (first !== null) throw keyConflict();
  await requireCredentials(ports, tenant, accepted.content.type);
  const pass = newPass(ports, tenant, accepted);
  const twin = await storeOnce(ports, tenant, { pass, idempotency });
  if (twin !== null) return replay(exchange, twin);
  return queueJob(ports, door, exchange, { tenant, pass, idempotency, template: accepted.template });
}

/** Throws an `ApiError` 400 if the pass has a class, or links to objects, that only another tenant may use. */
async function requireOwn({ wallet }: SendWalletPorts, tenant: Tenant, { content }: AcceptedPass): Promise<void> {
  if (content.type !== "google") return;
  const { classes, google } = wallet;
  const { classId } = content;
  if (!(await classes.isUsable(tenant, classId))) {
    throw new ApiError(400, `pass_data.class_id: the class ${classId} is another tenant's, choose an id of your own`);
  }
  await requireOwnLinks(google, tenant, content);
}

/** Throws an `ApiError` 500 if the provider cannot be used, or first a 402 if the tenant could not pay anyway. */
async function requireCredentials(
  { platform, registry }: SendWalletPorts,
  tenant: Tenant,
  type: PassType,
): Promise<void> {
  if ((type === "apple" ? appleSignerOf(tenant, platform) : googleIssuerOf(tenant, platform)) !== null) return;
  const { tokens } = resultOf(await registry.tenant(tenant.tenantId));
  if (tokens < 1) throw noTokens();
  throw missingCredentials(type);
}

const TOKEN_BYTES = 24;

function newPass(ports: SendWalletPorts, tenant: Tenant, { serial, content, images }: AcceptedPass): NewPass {
  const { jobIds, random, platform } = ports;
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
 * Stores and charges the pass and returns null; or returns the job of an identical concurrent request that took the
 * serial first. That request has no job yet between its two steps, so this one waits for it.
 */
async function storeOnce(
  ports: SendWalletPorts,
  tenant: Tenant,
  { pass, idempotency }: Storing,
): Promise<string | null> {
  const { clock, queue, wallet } = ports;
  const giveUpAtMs = clock.monotonicMs() + walletLimits.passTwinMs;
  for (let waitMs = 5; ; waitMs = Math.min(2 * waitMs, 200)) {
    const stored = await wallet.passes.create(pass);
    if (stored === "created") return null;
    if (stored === "no_tokens") throw noTokens();
    if (idempotency === null) throw serialUsed(pass);
    // Read the holder first: the next read then finds any job that the holder already had.
    const holder = await wallet.passes.holder(pass);
    const queued = await queue.queuedUnder(tenant, idempotency);
    if (queued?.isSame === true) return queued.jobId;
    const mayBeTwin = holder === null || (holder.state === "creating" && Bun.deepEquals(holder.content, pass.content));
    if (!mayBeTwin) throw serialUsed(pass);
    if (clock.monotonicMs() > giveUpAtMs) {
      throw new ApiError(500, "an earlier try of this request has not ended yet: try again in some minutes");
    }
    await sleep(clock, waitMs);
  }
}

function noTokens(): ApiError {
  return new ApiError(402, "no token is left: a wallet pass costs 1, ask for more");
}

function serialUsed({ content }: NewPass): ApiError {
  const field = content.type === "apple" ? "serial_number" : "object_id";
  return new ApiError(400, `pass_data.${field} was used before: every pass needs one of its own`);
}

interface Queueing extends Storing {
  readonly tenant: Tenant;
  /** The template that the pass uses, or null. */
  readonly template: string | null;
}

async function queueJob(
  ports: SendWalletPorts,
  door: FrontDoor,
  exchange: Exchange,
  { tenant, pass, idempotency, template }: Queueing,
): Promise<Response> {
  const undo = () => undoCreate(ports, pass);
  const { passId, jobId } = pass;
  const payload = encodePayload({ action: "create", passId, version: 1 });
  // Nobody unsubscribes from passes: the recipient is the pass itself.
  const named = template === null ? null : { template };
  const work = { channel: "wallet", recipient: passId, payload } as const;
  const job = { jobId, ...work, quota: quotaOf(tenant.plan), idempotency, ...named };
  const answer = await acceptJob(door, { tenant, requestsPerMinute: null, job, exchange, onNotQueued: undo });
  if (answer.kind !== "accepted") await undo();
  return answerAccepted(door, exchange, tenant, answer);
}

/** If it cannot be undone now, the sweep undoes it. */
async function undoCreate({ telemetry, wallet }: SendWalletPorts, { tenantId, jobId }: NewPass): Promise<void> {
  await wallet.passes.undoCreate(tenantId, jobId).catch((error: unknown) => {
    telemetry.log("warn", "a pass without a job is left to the sweep", { job_id: jobId, error: String(error) });
  });
}
