import type { Channel, Relay } from "../../domain/channels/channel.ts";
import type { DomainSigning } from "../../domain/channels/domain.ts";
import { DEFAULT_TRACKING, namesMachine, type TrackingChoice } from "../../domain/channels/email.ts";
import { parseSmtpUrl, type SmtpServer } from "../../domain/channels/smtp-url.ts";
import type { Clock } from "../../domain/clock.ts";
import type { ContentStore } from "../../domain/content-store.ts";
import { isOutage } from "../../domain/errors.ts";
import type { QueuedJob } from "../../domain/jobs/job.ts";
import type { Outcome } from "../../domain/jobs/outcome.ts";
import { limits } from "../../domain/limits.ts";
import { remember } from "../../domain/remember.ts";
import type { SuppressionLookup } from "../../domain/tenants/suppressions.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import type { OutboundGuard } from "../../domain/texts/outbound.ts";
import { extractDomain } from "../../domain/texts/split-address.ts";
import { attachedFiles, keptBytes, LostContentError } from "./attached-files.ts";
import { type BouncedAddresses, suppressBounced } from "./bounced-addresses.ts";
import { Copies, named, toMailboxes } from "./copies.ts";
import { EmailComposer, type EmailContent, writtenHtml } from "./email-composer.ts";
import { EmailLinks } from "./email-links.ts";
import { bounceBy } from "./failure-report.ts";
import type { LinkSigner } from "./links/link-tokens.ts";
import { formatReturnPath, isMailAddress } from "./mail-address.ts";
import { formatMessageId } from "./message-id.ts";
import { encodedText } from "./mime/body-encoding.ts";
import { type Mailbox, type NamedAddress, toMailbox } from "./mime/header-values.ts";
import { keptMail } from "./mime/kept-mail.ts";
import { type MailMessage, type MailParts, mailMessage } from "./mime/mail-message.ts";
import type { Attachment } from "./mime/multipart.ts";
import { findOwnSender, type OwnSender } from "./own-sender.ts";
import { type EmailPayload, parsePayload } from "./payload.ts";
import { type DestinationAnswer, DestinationPace } from "./smtp/destination-pace.ts";
import { SmtpPools } from "./smtp/smtp-pools.ts";
import {
  asksForSlowness,
  hasAskedServer,
  parseQueueId,
  quotable,
  type SmtpFailure,
  type SmtpRelay,
  smtpOutcome,
  toSmtpFailure,
} from "./smtp/smtp-replies.ts";
import { SmtpError, type SmtpTimeouts } from "./smtp/smtp-session.ts";
import type { SpamScreen } from "./spam/spam-screen.ts";

export interface EmailChannelOptions {
  /** The platform's relay: `smtp://` or `smtps://`, with user and password if it needs them. */
  readonly smtpUrl: string;
  /** Sender for tenants without their own. */
  readonly defaultFrom: NamedAddress;
  /** Returns the signature of that sender's mail; null if its domain is not verified. */
  readonly defaultSigning?: () => DomainSigning | null;
  /** Public address of the links in messages: pixel, clicks, unsubscribe. */
  readonly publicUrl: string;
  readonly links: LinkSigner;
  readonly clock: Clock;
  /**
   * Decides which addresses of tenants' own relays may be connected to. Null if no connection may leave the machine;
   * those relays are then not used.
   */
  readonly ownRelays: OutboundGuard | null;
  /** Connections per relay, default 48: Postfix accepts 50 per client. */
  readonly connectionsMax?: number;
  /** Relays in use at the same time, default 2,048. */
  readonly relaysMax?: number;
  readonly timeouts?: SmtpTimeouts;
  /** The name with which mail servers are greeted. */
  readonly ehloName: string;
  /**
   * Called when a relay's encryption changes: to plain text after a failed handshake, or to TLS on this machine at the
   * relay's demand.
   */
  readonly onSwap?: (relay: string, failure: SmtpFailure) => void;
  /** Scores inline HTML before it is sent; null or absent: no scoring. */
  readonly spam?: SpamScreen | null;
  /** Looks up copies' recipients; without it, none is suppressed. */
  readonly suppressions?: SuppressionLookup;
  /** Stores addresses that a relay refused permanently; without it, none is suppressed. */
  readonly bounces?: BouncedAddresses;
  /** The store of attachments; without it, messages have none. */
  readonly contents?: Pick<ContentStore, "get">;
}

const DEFAULT_TIMEOUTS: SmtpTimeouts = {
  turnMs: 5_000,
  connectMs: 10_000,
  // RFC 5321, 4.5.3.2.1 has five minutes for the greeting. No message can be lost or duplicated before MAIL, and with
  // an attempt every thirty seconds, a relay that hung must get its mail within a minute of its recovery.
  readyMs: 30_000,
  socketMs: 30_000,
  // RFC 5321, 4.5.3.2.2 to 6.
  envelopeMs: 5 * 60_000,
  dataMs: 2 * 60_000,
  blockMs: 3 * 60_000,
  endMs: 10 * 60_000,
  idleMs: 30_000,
};
/** Limits all of them together: a slow envelope and a slow end. */
const DELIVERY_MS_MAX = 20 * 60_000;
/** Attempts that may end without proof of whether the relay has the message. */
const UNCERTAIN_TRIES_MAX = 3;
/** Jobs whose uncertain attempts a process counts. */
const UNCERTAIN_JOBS_MAX = 10_000;
/** Per relay: Postfix accepts 50 connections per client. */
export const RELAY_CONNECTIONS_MAX = 48;
/** More than there are concurrent deliveries; otherwise tenants whose servers hang would block the others. */
const RELAYS_MAX_DEFAULT = 2_048;
/** How long a message waits if there are more servers than that. */
const POOL_WAIT_MS = 1_000;

/**
 * Sends e-mails through a mail server: the platform's relay or the tenant's own. One message, one submission. A repeated delivery carries the same Message-ID, which lets a receiver recognize it.
 */
export class EmailChannel implements Channel {
  readonly name = "email";
  /** As many as there are connections: beyond that, messages would wait in order of arrival, which is not fair. */
  readonly slots: number;
  readonly relayConnections: number;
  readonly deliveryMsMax = DELIVERY_MS_MAX;
  private readonly platform: SmtpServer;
  private readonly composer = new EmailComposer();
  private readonly pools: SmtpPools;
  private readonly links: EmailLinks;
  private readonly pace: DestinationPace;
  /** Uncertain attempts by job. A restart resets them, which allows a job some more. */
  private readonly uncertainTries = new Map<string, number>();

  /** Throws `TypeError` if `smtpUrl` is not an SMTP URL. Does not connect yet. */
  constructor(private readonly options: EmailChannelOptions) {
    const platform = parseSmtpUrl(options.smtpUrl);
    if (platform === null) throw new TypeError("the platform's relay is not an SMTP URL");
    this.platform = platform;
    this.slots = options.connectionsMax ?? RELAY_CONNECTIONS_MAX;
    this.relayConnections = this.slots;
    this.links = new EmailLinks(options.publicUrl, options.links);
    this.pace = new DestinationPace(options.clock);
    this.pools = new SmtpPools({
      connectionsMax: this.slots,
      poolsMax: options.relaysMax ?? RELAYS_MAX_DEFAULT,
      timeouts: options.timeouts ?? DEFAULT_TIMEOUTS,
      ehloName: options.ehloName,
      ...(options.onSwap && { onSwap: options.onSwap }),
    });
  }

  /** Scores inline HTML and text only, because the tenant's own staff wrote the templates. */
  async screen(job: QueuedJob, tenant: Tenant, signal: AbortSignal): Promise<Outcome | null> {
    const { spam } = this.options;
    if (spam === undefined || spam === null) return null;
    const letter = this.compose(job, tenant);
    // The delivery will report the problem.
    if ("kind" in letter || (letter.payload.html === undefined && letter.payload.text === undefined)) return null;
    const { sender, payload, content } = letter;
    const html = writtenHtml(content);
    const text = content.text === null ? null : content.text.template.text(content.text.values);
    const raw = async () => {
      if (payload.kept !== undefined) return keptBytes(job, payload.kept, this.options.contents);
      const bodies = {
        html: content.html === null ? null : encodedText(html),
        text: text === null ? null : encodedText(text),
      };
      const plain = { ...bodies, envelopeFrom: sender.address, headers: [], signer: null };
      return Buffer.from((await mailMessage({ ...this.buildParts(letter, job), ...plain })).text);
    };
    const from = sender.name === null ? sender.address : `${sender.name} <${sender.address}>`;
    return spam.check({ subject: content.subject, html, text, from, to: payload.to, raw }, signal);
  }

  async deliver(job: QueuedJob, tenant: Tenant, signal: AbortSignal): Promise<Outcome> {
    // A reputation, and therefore the permitted pace, belongs to a sender on a relay.
    const domain = extractDomain(job.recipient);
    const entry = this.pace.enter(`${tenant.tenantId} ${this.relayUrl(tenant)} ${domain}`);
    if (entry.kind === "wait") {
      const why = `${domain} takes mail more slowly than it comes`;
      return { kind: "retry", why, afterMs: entry.afterMs, isUncounted: true, waitsFor: "destination_pace" };
    }
    let answer: DestinationAnswer = "other";
    try {
      const letter = this.compose(job, tenant);
      if ("kind" in letter) return letter;
      const { cc, bcc, attachments, kept } = letter.payload;
      if (cc !== undefined || bcc !== undefined || attachments !== undefined || kept !== undefined) {
        const { outcome, answer: said } = await this.deliverMore(letter, job, tenant, signal);
        answer = said;
        return await this.suppressed(this.counted(job, outcome), job, tenant);
      }
      const submission = await this.submit(() => this.buildMessage(letter, job, tenant), tenant, signal);
      answer = submission.answer;
      return await this.suppressed(this.counted(job, submission.outcome), job, tenant);
    } finally {
      entry.passage.ended(answer);
    }
  }

  /** Limits the retries of a message that its relay may already have, regardless of retries for other reasons. */
  private counted({ jobId, attempts }: QueuedJob, outcome: Outcome): Outcome {
    // An outcome without a wait comes from a shutdown.
    if (outcome.kind !== "retry" || outcome.isUncertain !== true || outcome.afterMs === undefined) return outcome;
    const earlier = this.uncertainTries.get(jobId) ?? 0;
    if (earlier + 1 < UNCERTAIN_TRIES_MAX) {
      remember(this.uncertainTries, { key: jobId, value: earlier + 1, max: UNCERTAIN_JOBS_MAX });
    } else this.uncertainTries.delete(jobId);
    return { ...outcome, attemptsMax: Math.min(attempts + UNCERTAIN_TRIES_MAX - earlier, limits.attemptsMax) };
  }

  /** Delivers a message with further recipients or attachments, or one that is sent unchanged. */
  private async deliverMore(letter: Letter, job: QueuedJob, tenant: Tenant, signal: AbortSignal): Promise<Submission> {
    const { suppressions, contents } = this.options;
    const { cc = [], bcc = [], attachments = [], kept } = letter.payload;
    let more: More;
    try {
      const copies = await Copies.of(job, { tenant, cc, bcc, to: letter.payload.to }, suppressions);
      const bytes = kept === undefined ? null : await keptBytes(job, kept, contents);
      more = { copies, attachments: await attachedFiles(job, attachments, contents), bytes };
    } catch (error) {
      if (error instanceof LostContentError) return unanswered({ kind: "failed", error: error.message });
      if (isOutage(error)) return unanswered(NOT_NOW);
      throw error;
    }
    const { copies } = more;
    const submission = await this.submit(() => this.buildMessage(letter, job, tenant, more), tenant, signal);
    return { ...submission, outcome: copies.told(submission.outcome, (reply) => this.saidBy(reply, tenant)) };
  }

  private async suppressed(outcome: Outcome, job: QueuedJob, tenant: Tenant): Promise<Outcome> {
    const { bounces } = this.options;
    if (bounces === undefined) return outcome;
    return suppressBounced(outcome, job, (address) => bounces.put(tenant, address, "bounced"));
  }

  /** Makes a relay's reply fit for the tenant. */
  private saidBy(reply: string, tenant: Tenant): string {
    const own = this.ownRelayUrl(tenant) !== null;
    const server = this.serverAt(this.relayUrl(tenant));
    return quotable(reply, { own, confidential: server === null ? [] : listConfidentialWords(server, own) });
  }

  findRelay(tenant: Tenant): Relay | null {
    const key = this.relayUrl(tenant);
    const server = this.serverAt(key);
    if (server === null) return null;
    const name = `${server.host}:${server.port}`;
    const isOwn = this.ownRelayUrl(tenant) !== null;
    // A tenant's server is judged apart from the platform's, even if a tenant names the same one.
    return { key: isOwn ? `own ${key}` : key, name, isOwn };
  }

  private buildMessage(letter: Letter, job: QueuedJob, tenant: Tenant, more?: More): Promise<MailMessage> {
    const { own, content } = letter;
    const { html, text } = content;
    const signing = this.findSigning(own);
    const envelope = {
      envelopeFrom: this.buildReturnPath(signing, job, tenant)?.address ?? letter.from.address,
      headers: this.links.headers(job),
      signer: signing === null ? null : { domain: asciiDomain(extractDomain(letter.sender.address)), key: signing },
    };
    const parts = this.buildParts(letter, job, more?.copies.mark);
    if (more !== undefined && more.bytes !== null) {
      return keptMail({
        ...parts,
        ...envelope,
        bytes: more.bytes,
        isEightBit: letter.payload.kept?.isEightBit === true,
      });
    }
    return mailMessage({
      ...parts,
      ...envelope,
      ...more?.copies.parts(),
      ...(more !== undefined && { attachments: more.attachments }),
      html:
        html === null
          ? null
          : html.template.encodeTracked(html.values, this.links.tracking(job, resolveTracking(letter.payload, tenant))),
      // Keeps the message's own links.
      text: text === null ? null : text.template.encode(text.values),
    });
  }

  /** Composes the message without the parts that delivery adds, or returns why it cannot be composed. */
  private compose(job: QueuedJob, tenant: Tenant): Letter | Extract<Outcome, { kind: "failed" }> {
    const payload = parsePayload(job.payload);
    if (payload === null) return { kind: "failed", error: "the message cannot be read" };
    const own = findOwnSender(tenant);
    // The domain was verified when the message was accepted. Once it is verified again, the operator can retry the job.
    if (own.kind === "unverified")
      return { kind: "failed", error: `the domain ${own.domain} is not verified any more` };
    const sender = resolveSender(own, this.options.defaultFrom);
    if (!isMailAddress(sender.address)) return { kind: "failed", error: "the sender's address is not valid" };
    if (!isMailAddress(payload.to) || namesMachine(extractDomain(payload.to)))
      return { kind: "failed", error: "the recipient's address is not valid" };
    const composed = this.composer.compose(payload, tenant, () => this.links.unsubscribeUrl(job));
    if (composed.kind === "impossible") return { kind: "failed", error: composed.error };
    const [from, to] = [
      toMailbox(named(sender)),
      toMailbox(named({ address: payload.to, name: payload.toName ?? null })),
    ];
    if (from === null || to === null)
      return { kind: "failed", error: "the sender's or the recipient's address cannot be sent to" };
    return { payload, own, sender, from, to, content: composed.content };
  }

  private buildParts(
    { sender, from, to, content, payload }: Letter,
    { jobId, tenantId }: QueuedJob,
    mark = "",
  ): LetterParts {
    const messageId = formatMessageId(jobId, tenantId, asciiDomain(extractDomain(sender.address)), mark);
    const parts = { from, to, subject: content.subject, messageId, dateMs: this.options.clock.nowMs() };
    const { replyTo, headers } = payload;
    if (replyTo === undefined && headers === undefined) return parts;
    return {
      ...parts,
      ...(replyTo !== undefined && { replyTo: toMailboxes(replyTo) }),
      ...(headers !== undefined && { ownHeaders: Object.entries(headers) }),
    };
  }

  /** Connections open or being opened. */
  get connections(): number {
    return this.pools.size;
  }

  /** Ends all connections. Messages in flight end as `retry`, so wait for them first. Safe to call twice. */
  close(): void {
    this.pools.close();
  }

  /**
   * Returns the envelope sender: through the platform's relay, the return path of the verified domain. A tenant's own
   * relay may not know such a sender, and handles its bounces itself.
   */
  private buildReturnPath(signing: DomainSigning | null, { jobId }: QueuedJob, tenant: Tenant): Mailbox | null {
    if (signing === null || this.ownRelayUrl(tenant) !== null) return null;
    return toMailbox({ address: formatReturnPath(jobId, signing.returnPathHost), name: null });
  }

  /**
   * Returns the signing key; null if the sender's domain has no published key, because a signature would then only
   * fail.
   */
  private findSigning(own: OwnSender): DomainSigning | null {
    if (own.kind === "platform") return this.options.defaultSigning?.() ?? null;
    return own.kind === "verified" ? own.domain.relay : null;
  }

  private async submit(message: () => Promise<MailMessage>, tenant: Tenant, signal: AbortSignal): Promise<Submission> {
    const smtpUrl = this.relayUrl(tenant);
    const own = this.ownRelayUrl(tenant) !== null;
    const server = this.serverAt(smtpUrl);
    if (server === null) return unanswered({ kind: "failed", error: "the address of your mail server is not valid" });
    const pool = this.pools.at({ smtpUrl, guard: own ? this.options.ownRelays : null });
    if (pool === null) return unanswered(NO_POOL);
    const relay: SmtpRelay = { own, confidential: listConfidentialWords(server, own) };
    const name = `${server.host}:${server.port}`;
    let isToOne = true;
    try {
      const mail = await message();
      isToOne = mail.further === undefined;
      const reply = await pool.send(mail, signal);
      const queueId = parseQueueId(reply);
      const traced = { relay: name, reply: quotable(reply, relay), ...(queueId !== null && { providerRef: queueId }) };
      return { answer: "accepted", outcome: { kind: "delivered", result: {}, ...traced } };
    } catch (error) {
      // A message that cannot be composed was never offered to the relay.
      const failure = error instanceof SmtpError ? error.failure : toSmtpFailure(error, "waiting");
      const said = failure.reply === null ? {} : { reply: quotable(failure.reply, relay) };
      const asked = hasAskedServer(failure) ? { relay: name, ...said } : {};
      const ended = smtpOutcome(failure, relay);
      // With several recipients, only a refusal at RCPT identifies the refused one.
      const isNamed = failure.stage === "message" && (isToOne || failure.command === "RCPT TO");
      const bounce =
        isNamed && ended.kind === "failed" ? bounceBy(failure, quotable(failure.reply ?? "", relay)) : null;
      const outcome = { ...ended, ...asked, ...(bounce !== null && { bounce }) };
      return { answer: asksForSlowness(failure) ? "refused" : "other", outcome };
    }
  }

  private serverAt(smtpUrl: string): SmtpServer | null {
    return smtpUrl === this.options.smtpUrl ? this.platform : parseSmtpUrl(smtpUrl);
  }

  private relayUrl(tenant: Tenant): string {
    return this.ownRelayUrl(tenant) ?? this.options.smtpUrl;
  }

  private ownRelayUrl(tenant: Tenant): string | null {
    if (this.options.ownRelays === null || !tenant.allowCustom.has("email")) return null;
    return tenant.emailSender?.smtpUrl ?? null;
  }
}

/**
 * Lists the words to hide from tenants. A host name without a dot is not confidential, and may be an ordinary word
 * (`mail`).
 */
function listConfidentialWords({ user, password, host }: SmtpServer, own: boolean): readonly string[] {
  return own || !/[.:]/.test(host) ? [user, password] : [user, password, host];
}

/** Merges the choices: the message's own overrides its template's, which overrides the tenant's. */
function resolveTracking({ tracking, template }: EmailPayload, tenant: Tenant): Required<TrackingChoice> {
  const { tracking: usual } = template === undefined ? {} : (tenant.emailTemplates.get(template) ?? {});
  return { ...DEFAULT_TRACKING, ...tenant.tracking, ...usual, ...tracking };
}

function resolveSender(own: OwnSender, defaultFrom: NamedAddress): NamedAddress {
  return own.kind === "verified" ? { address: own.sender.fromAddress, name: own.sender.fromName } : defaultFrom;
}

/** Parts that few messages have. */
interface More {
  readonly copies: Copies;
  readonly attachments: readonly Attachment[];
  /** The message to send unchanged; null if it is composed. */
  readonly bytes: Buffer | null;
}

/** The outcome while a store is unavailable. */
const NOT_NOW: Outcome = {
  kind: "retry",
  why: "the recipients of copies or the attachments could not be looked up",
  afterMs: POOL_WAIT_MS,
  isUncounted: true,
  isUnsent: true,
};

/** A composed message with its sender and recipient. */
interface Letter {
  readonly payload: EmailPayload;
  readonly own: OwnSender;
  readonly sender: NamedAddress;
  readonly from: Mailbox;
  readonly to: Mailbox;
  readonly content: EmailContent;
}

/** The outcome of a message, and what it says about the destination's pace. */
interface Submission {
  readonly outcome: Outcome;
  readonly answer: DestinationAnswer;
}

const NO_POOL: Outcome = {
  kind: "retry",
  why: "too many mail servers are being talked to",
  afterMs: POOL_WAIT_MS,
  isUncounted: true,
  isUnsent: true,
};

function unanswered(outcome: Outcome): Submission {
  return { outcome, answer: "other" };
}

type LetterParts = Pick<MailParts, "from" | "to" | "subject" | "messageId" | "dateMs" | "replyTo" | "ownHeaders">;

/** Converts a domain for a Message-ID or signature: to its A-label form (RFC 5890) if it has one. */
function asciiDomain(domain: string): string {
  if (PLAIN_DOMAIN.test(domain) && !domain.includes("xn--")) return domain;
  return URL.parse(`http://${domain}`)?.hostname || "invalid";
}

/** In lower case. Its last label must not be a number, which would make it an IP address. */
const PLAIN_DOMAIN = /^[a-z0-9][a-z0-9.-]*\.[a-z]{2,}$/;
