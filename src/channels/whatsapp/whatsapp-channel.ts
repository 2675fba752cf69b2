import type { Channel, Relay } from "../../domain/channels/channel.ts";
import type { WhatsappSender } from "../../domain/channels/whatsapp.ts";
import type { QueuedJob } from "../../domain/jobs/job.ts";
import type { Outcome } from "../../domain/jobs/outcome.ts";
import { limits } from "../../domain/limits.ts";
import type { RuntimePorts } from "../../domain/runtime-ports.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import { maskedText } from "../../domain/texts/masked.ts";
import type { CallbackSigner } from "./callbacks/callback-keys.ts";
import { formatGraphError } from "./chat-error-text.ts";
import { GraphClient, type GraphReply } from "./graph-client.ts";
import { type Consequence, type ErrorRule, type GraphError, isKnownCode, ruleFor } from "./graph-errors.ts";
import { graphMessage } from "./graph-message.ts";
import { chatLimits } from "./limits.ts";
import { NumberPace } from "./number-pace.ts";
import { parsePayload } from "./payload.ts";
import { resolveWhatsappSender, type WhatsappPlatform } from "./platform.ts";
import { RecipientSpacing } from "./recipient-spacing.ts";

export interface WhatsappChannelOptions extends RuntimePorts {
  /** Address of the Graph API, without a trailing slash. */
  readonly apiUrl: string;
  /** The API version, such as `v25.0`. */
  readonly apiVersion: string;
  readonly platform: WhatsappPlatform;
  /** Signs the callback data that names a status's job. */
  readonly callbacks: CallbackSigner;
  /** Time-out for one call; default `limits.chatTimeoutMs`. */
  readonly timeoutMs?: number;
}

/**
 * Three quarters of the 256 requests that the runtime allows in flight for the whole process. Any more would wait
 * inside the runtime, which does not share fairly, and delay the wallet calls behind them. At 300 ms per reply, this
 * allows 640 messages a second.
 */
const SLOTS = 192;

/** The parts of a delivery that handling its reply needs. */
interface SentMessage {
  readonly job: QueuedJob;
  readonly sender: WhatsappSender;
  /** Whether the sender belongs to the tenant, who can then fix it. */
  readonly own: boolean;
  readonly to: string;
  /** Monotonic. */
  readonly sentAtMs: number;
}

/**
 * Sends messages through WhatsApp's Cloud API, from templates and in free text: one job, one request. The API has no
 * idempotency key, so a request without a reply is not repeated until `chatLimits.ambiguousWaitMs` have passed: a
 * callback that names the job settles it before then.
 */
export class WhatsappChannel implements Channel {
  readonly name = "whatsapp";
  readonly slots = SLOTS;
  readonly reportsNameReference = true;
  private readonly client: GraphClient;
  private readonly pace: NumberPace;
  private readonly spacing: RecipientSpacing;
  private readonly relay: Relay;

  /** Opens no connection yet. */
  constructor(private readonly options: WhatsappChannelOptions) {
    const { apiUrl, apiVersion, clock, random } = options;
    const timeoutMs = options.timeoutMs ?? limits.chatTimeoutMs;
    this.client = new GraphClient({ baseUrl: apiUrl, version: apiVersion, clock, timeoutMs });
    this.pace = new NumberPace(clock, random);
    this.spacing = new RecipientSpacing(clock);
    this.relay = { key: apiUrl, name: URL.parse(apiUrl)?.host ?? apiUrl, isOwn: false };
  }

  /** The API itself: one service for all numbers. */
  findRelay(): Relay {
    return this.relay;
  }

  paceMs(tenant: Tenant): number {
    const sender = resolveWhatsappSender(tenant, this.options.platform);
    return sender === null ? 0 : this.pace.waitMs(sender, tenant.tenantId);
  }

  async deliver(job: QueuedJob, tenant: Tenant, signal: AbortSignal): Promise<Outcome> {
    const payload = parsePayload(job.payload);
    if (payload === null) return { kind: "failed", error: "the message cannot be read" };
    const sender = resolveWhatsappSender(tenant, this.options.platform);
    if (sender === null)
      return { kind: "failed", error: "no WhatsApp credentials are set, neither yours nor the platform's" };
    const spacedMs = this.spacing.enter(sender.phoneNumberId, payload.to);
    if (spacedMs > 0) return spacedOut(spacedMs);
    const sentAtMs = this.pace.take(sender, tenant.tenantId);
    const [{ phoneNumberId }, { tenantId, jobId }] = [sender, job];
    const callbackData = this.options.callbacks.sign({ tenantId, jobId, phoneNumberId });
    const reply = await this.client.send(sender, graphMessage(payload, callbackData), signal);
    const sent = { job, sender, own: tenant.whatsapp.sender !== null, to: payload.to, sentAtMs };
    const asked = reply.kind === "called_off" ? {} : { relay: this.relay.name, ...saidBy(reply, sender) };
    return { ...this.toOutcome(reply, sent), ...asked };
  }

  private toOutcome(reply: GraphReply, delivery: SentMessage): Outcome {
    const { sender, to } = delivery;
    switch (reply.kind) {
      case "accepted":
        this.judged(delivery);
        this.pace.succeeded(sender);
        this.spacing.succeeded(sender.phoneNumberId, to);
        if (reply.waitMs > 0) this.pace.pause(sender, reply.waitMs);
        return { kind: "delivered", result: {}, providerRef: reply.messageId };
      case "refused":
        return this.followError(reply.error, reply.waitMs, delivery);
      case "unanswered":
        return this.unknownOutcome(delivery);
      case "unreachable":
        return { kind: "away", why: "WhatsApp could not be reached" };
      case "called_off":
        return { kind: "retry", why: "its turn did not come", isUncounted: true, isUnsent: true };
    }
  }

  private followError(error: GraphError, askedMs: number, delivery: SentMessage): Outcome {
    const { job, sender, sentAtMs, to } = delivery;
    const rule = ruleFor(error);
    if (!SAYS_NOTHING.includes(rule.follows)) this.judged(delivery);
    const code = error.code !== null && isKnownCode(error.code) ? String(error.code) : "other";
    this.options.telemetry.count("chat_provider_errors", { code, follows: rule.follows });
    const said = formatGraphError(error, sender);
    const pauseMs = Math.min(Math.max(rule.pauseMs ?? 0, askedMs), chatLimits.chatPauseMsMax);
    const later = pauseMs === 0 ? {} : { afterMs: pauseMs };
    switch (rule.follows) {
      case "retry":
        if (pauseMs > 0) this.pace.pause(sender, pauseMs);
        if (job.attempts + 1 >= (rule.attemptsMax ?? limits.attemptsMax)) return refusal(said);
        return { kind: "retry", why: `WhatsApp did not take the message yet: ${said}`, ...later };
      case "slow_number":
        this.pace.slow(sender, sentAtMs);
        if (pauseMs > 0) this.pace.pause(sender, pauseMs);
        return { ...THROTTLED, why: `the phone number sends too fast: ${said}`, ...later };
      case "space_recipient":
        return spacedOut(Math.max(askedMs, this.spacing.refused(sender.phoneNumberId, to, sentAtMs)));
      case "pause_number":
        this.pause(rule, pauseMs, delivery);
        return { ...THROTTLED, why: `the phone number has to pause: ${said}`, ...later };
      case "lock_account":
        this.pause(rule, pauseMs, delivery);
        return refusal(said);
      case "refuse_sender":
        return this.refuseSender(said, pauseMs, delivery);
      case "unknown_outcome":
        return this.unknownOutcome(delivery);
      case "away":
        if (pauseMs > 0) this.pace.pause(sender, pauseMs);
        return this.numberFailed(said, pauseMs, delivery);
      case "fail":
        return refusal(said);
    }
  }

  private pause({ follows }: ErrorRule, pauseMs: number, { sender, job }: SentMessage): void {
    const { telemetry } = this.options;
    this.pace.pause(sender, pauseMs);
    telemetry.count("chat_numbers_paused", { why: follows });
    const fields = { phone_number_id: sender.phoneNumberId, tenant: job.tenantId, why: follows, pause_ms: pauseMs };
    telemetry.log("warn", "the chat provider stopped a phone number", fields);
  }

  /** Logs once: other jobs in flight at the time, and the probes after a pause, add no lines. */
  private refuseSender(said: string, pauseMs: number, { sender, own, job }: SentMessage): Outcome {
    const { telemetry } = this.options;
    if (this.pace.refuse(sender, pauseMs)) {
      telemetry.count("chat_numbers_paused", { why: "refuse_sender" });
      const fields = { phone_number_id: sender.phoneNumberId, tenant: job.tenantId, own, said: maskedText(said) };
      telemetry.log("error", "the chat provider refused a sender's credentials or account", fields);
    }
    const whose = own ? "your WhatsApp credentials or account" : "the platform's WhatsApp credentials or account";
    return { kind: "failed", error: `WhatsApp refused ${whose}: ${said}` };
  }

  /** Blames the number until several fail: one account's problems must not stop the others. */
  private numberFailed(said: string, pauseMs: number, delivery: SentMessage): Outcome {
    if (this.failed(delivery)) return { kind: "away", why: `WhatsApp is out of order: ${said}` };
    const why = `WhatsApp is out of order for this phone number: ${said}`;
    const afterMs = Math.max(pauseMs, this.pace.failingMs(delivery.sender));
    return { ...THROTTLED, why, isUnsent: true, ...(afterMs > 0 && { afterMs }) };
  }

  /** Records a failure and returns whether the whole API fails. Logs when the number stops. */
  private failed({ sender, job, sentAtMs }: SentMessage): boolean {
    const { telemetry } = this.options;
    const { isStopped, isApi } = this.pace.failed(sender, sentAtMs);
    if (isStopped) {
      telemetry.count("chat_numbers_paused", { why: "failing" });
      const fields = { phone_number_id: sender.phoneNumberId, tenant: job.tenantId };
      telemetry.log("warn", "the chat provider fails for a phone number, which pauses", fields);
    }
    return isApi;
  }

  /** Records that the provider works for the number, whatever its verdict was. */
  private judged({ sender, job }: SentMessage): void {
    if (!this.pace.judged(sender)) return;
    const fields = { phone_number_id: sender.phoneNumberId, tenant: job.tenantId };
    this.options.telemetry.log("info", "the chat provider works for a phone number again", fields);
  }

  private unknownOutcome(delivery: SentMessage): Outcome {
    this.options.telemetry.count("chat_unanswered");
    const why = "WhatsApp did not answer in time, and whether it has the message is unknown";
    const { ambiguousWaitMs: afterMs, ambiguousAttemptsMax: attemptsMax } = chatLimits;
    const isApi = this.failed(delivery);
    return { kind: "retry", why, afterMs, attemptsMax, isUncertain: true, ...(isApi && { isSilence: true }) };
  }
}

/** Consequences of errors that judge neither the message nor its sender. */
const SAYS_NOTHING: readonly Consequence[] = ["away", "unknown_outcome"];

const THROTTLED = { kind: "retry", isUncounted: true, waitsFor: "throttled" } as const;

function refusal(said: string): Outcome {
  return { kind: "failed", error: `WhatsApp refused the message: ${said}` };
}

function spacedOut(afterMs: number): Outcome {
  return { ...THROTTLED, why: "this recipient was written to too often", afterMs };
}

/** Returns the part of the reply that operators see. */
function saidBy(reply: GraphReply, sender: WhatsappSender): { readonly reply?: string } {
  if (reply.kind === "accepted") return { reply: `accepted as ${reply.messageId}` };
  return reply.kind === "refused" ? { reply: formatGraphError(reply.error, sender) } : {};
}
