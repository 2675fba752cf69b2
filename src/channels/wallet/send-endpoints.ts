import type { GoogleKind } from "../../domain/channels/wallet.ts";
import type { JobIds } from "../../domain/ids.ts";
import { toQueueQuota } from "../../domain/jobs/queue.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import { ApiError } from "../../http/api-error.ts";
import { type Endpoint, endpoint } from "../../http/endpoint.ts";
import type { Exchange } from "../../http/exchange.ts";
import type { FrontDoor } from "../../http/front-door.ts";
import { acceptJob } from "../../http/sending/accept-job.ts";
import { answerAccepted, keyConflict, replay } from "../../http/sending/accepted-answer.ts";
import { schedulable, takeSchedule } from "../../http/sending/schedule.ts";
import { SEND_FAILS, sends } from "../../http/sending/send-endpoint.ts";
import { readSend } from "../../http/sending/serve-send.ts";
import {
  discard,
  newPass,
  type PassTakingPorts,
  requireCredentials,
  requireOwn,
  type Storing,
  storeOnce,
} from "./pass-taking.ts";
import { encodePayload } from "./payload.ts";
import { resolveGoogleIssuer } from "./platform.ts";
import { NO_TOKENS, orRefuse } from "./refusals.ts";
import { acceptPass } from "./request/accept-pass.ts";
import { PassRequest } from "./request/pass-schema.ts";

export interface SendWalletPorts extends PassTakingPorts {
  readonly jobIds: JobIds;
}

const DESCRIPTION =
  "A pass costs 1 token, which is given back should the job fail. Keys of an Apple pass may be written as " +
  "`auxiliary_fields` or as Apple does (`auxiliaryFields`), but not as both; further keys of Apple's pass.json are " +
  "taken in the same two spellings, unknown ones are refused. Images are PNGs in base64 or a data URL of at most 2 MiB " +
  "each, and 4 MiB in one pass. With `template_id`, type, style and whatever the request leaves out or gives as null come " +
  "from the template; fields are merged by their key, text modules by their id, and where both say something the request wins.";

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

/** Members shared by the two endpoints. */
const PASS_SEND = {
  ...sends("Send"),
  caller: "tenant",
  scope: "send",
  channel: "wallet",
  fails: { ...SEND_FAILS, 402: NO_TOKENS },
} as const;

const SchedulablePass = schedulable(PassRequest);

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
        schema: SchedulablePass,
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
        schema: SchedulablePass,
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
  // A request that was already accepted gets the same reply, even if it would be refused now.
  if (first?.isSame === true) return replay(exchange, first.jobId);
  const timed = takeSchedule(body, door.ports.clock.nowMs());
  if (!timed.ok) throw new ApiError(timed.refusal, timed.refusal.message);
  const issuerId = resolveGoogleIssuer(tenant, platform)?.issuerId ?? null;
  const context = { templates: tenant.wallet.templates, title: tenant.name, issuerId, kind };
  const accepted = orRefuse(acceptPass(timed.body, context));
  await requireOwn(ports, tenant, accepted);
  // Before any check that concerns tokens or the serial.
  if (first !== null) throw keyConflict();
  await requireCredentials(ports, tenant, accepted.content.type);
  const { jobIds } = ports;
  const pass = newPass(ports, tenant, accepted, { passId: jobIds.next(), jobId: jobIds.next() });
  const twin = await storeOnce(ports, tenant, { pass, idempotency });
  if (twin !== null) return replay(exchange, twin);
  return queueJob(ports, door, exchange, {
    tenant,
    pass,
    idempotency,
    template: accepted.template,
    dueMs: timed.dueMs,
  });
}

interface Queueing extends Storing {
  readonly tenant: Tenant;
  /** The pass's template, or null. */
  readonly template: string | null;
  /** The scheduled time (unix ms); null for at once. */
  readonly dueMs: number | null;
}

async function queueJob(
  ports: SendWalletPorts,
  door: FrontDoor,
  exchange: Exchange,
  { tenant, pass, idempotency, template, dueMs }: Queueing,
): Promise<Response> {
  const undo = () => discard(ports, pass);
  const { passId, jobId } = pass;
  const payload = encodePayload({ action: "create", passId, version: 1 });
  // Passes have no unsubscribes: the recipient is the pass itself.
  const named = template === null ? null : { template };
  const work = { channel: "wallet", recipient: passId, payload } as const;
  const timed = dueMs === null ? null : { dueMs };
  const job = { jobId, ...work, quota: toQueueQuota(tenant.plan), idempotency, ...named, ...timed };
  const answer = await acceptJob(door, { tenant, requestsPerMinute: null, job, exchange, onNotQueued: undo });
  if (answer.kind !== "accepted") await undo();
  return answerAccepted(door, exchange, tenant, answer);
}
