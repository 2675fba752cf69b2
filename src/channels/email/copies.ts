import { recipientKey } from "../../domain/channels/email.ts";
import { jobTimeMs } from "../../domain/ids.ts";
import type { QueuedJob } from "../../domain/jobs/job.ts";
import type { FurtherEvent, Outcome } from "../../domain/jobs/outcome.ts";
import { limits } from "../../domain/limits.ts";
import type { SuppressionLookup } from "../../domain/tenants/suppressions.ts";
import type { TenantRef } from "../../domain/tenants/tenant.ts";
import { headerText } from "./content/header-text.ts";
import { bounceBy } from "./failure-report.ts";
import { emailLimits } from "./limits.ts";
import { recipientMark } from "./message-id.ts";
import { type Mailbox, type NamedAddress, toMailbox } from "./mime/header-values.ts";
import type { MailParts } from "./mime/mail-message.ts";
import type { Addressee } from "./payload.ts";
import type { SmtpFailure } from "./smtp/smtp-replies.ts";

interface Recipients {
  readonly tenant: TenantRef;
  readonly to: string;
  readonly cc: readonly Addressee[];
  readonly bcc: readonly Addressee[];
}

/** A copy's recipient: its envelope address, and its name in events. */
interface Copy {
  readonly key: string;
  readonly mailbox: Mailbox;
}

interface Parties {
  readonly main: Mailbox | null;
  /** The main recipient's name in events. */
  readonly to: string;
  readonly cc: readonly Copy[];
  readonly bcc: readonly Copy[];
}

/** Attempts at a message that wait for a copy deferred by the relay; later ones leave it out. */
const TRIES_FOR_COPIES = 3;

/**
 * The recipients of a message beside its main one, in one delivery.
 *
 * C1. A recipient who is suppressed or undeliverable is in neither the envelope nor a header, and an event gives the
 *     reason.
 * C2. No recipient gets the message twice: duplicates are in the envelope once.
 * C3. A recipient whom the relay refuses does not keep the message from the others. A deferred recipient delays the
 *     message for the first attempts (a copy), or until the last one (the main recipient), because a message that was
 *     sent cannot be sent again to one recipient alone.
 * C4. Recipients beyond the relay's limit per transaction get the message in further transactions of the same delivery,
 *     because it cannot be sent to them alone later.
 * C5. Events of copies begin with the member `recipient`; those of the main recipient lack it.
 */
export class Copies {
  private readonly refused = new Map<string, SmtpFailure>();

  private constructor(
    private readonly job: QueuedJob,
    private readonly parties: Parties,
    private readonly leftOut: readonly FurtherEvent[],
    /** The mark in the Message-ID, the same at every attempt; "" if the main recipient is the only one. */
    readonly mark: string,
  ) {}

  /** Rejects with `UnavailableError` or `TransportError` while suppressions cannot be looked up. */
  static async of(job: QueuedJob, { tenant, to, cc, bcc }: Recipients, lookup?: SuppressionLookup): Promise<Copies> {
    const keys = new Set([...cc, ...bcc].map(({ address }) => recipientKey(address)));
    const suppressed =
      keys.size === 0
        ? undefined
        : await lookup?.suppressedAmong(tenant, [...keys], { acceptedMs: jobTimeMs(job.jobId), topic: job.topic });
    const leftOut = new Map<string, FurtherEvent>();
    const sendable = (addressees: readonly Addressee[]) =>
      addressees.flatMap(({ address, name }): Copy[] => {
        const key = recipientKey(address);
        const stop = suppressed?.get(key);
        const mailbox = toMailbox(named({ address, name: name ?? null }));
        if (stop === undefined && mailbox !== null) return [{ key, mailbox }];
        const result = stop === undefined ? { error: "the address cannot be sent to" } : { ...stop };
        const type = stop === undefined ? "failed" : "suppressed";
        leftOut.set(key, { type, result: { recipient: key, ...result } });
        return [];
      });
    const main = toMailbox({ address: to, name: null });
    const own = recipientKey(to);
    const mark = [...keys].every((key) => key === own) ? "" : recipientMark(to);
    const [inCc, inBcc] = [sendable(cc), sendable(bcc)];
    leftOut.delete(own);
    return new Copies(job, { main, to: own, cc: inCc, bcc: inBcc }, [...leftOut.values()], mark);
  }

  parts(): Pick<MailParts, "cc" | "further"> {
    const addresses = this.envelope().map(({ mailbox }) => mailbox.address);
    const further = {
      addresses,
      judge: (refused: ReadonlyMap<string, SmtpFailure>) => this.judge(refused, addresses.length + 1),
      missed: (missed: readonly string[], failure: SmtpFailure) => {
        for (const address of missed) if (!this.refused.has(address)) this.refused.set(address, failure);
      },
    };
    return {
      cc: this.parties.cc.map(({ mailbox }) => mailbox),
      ...(addresses.length > 0 && { further }),
    };
  }

  /** Adds an event for each recipient to the outcome. `shown` makes a relay's reply fit for the tenant. */
  told(outcome: Outcome, shown: (reply: string) => string): Outcome {
    if (outcome.kind !== "delivered" && outcome.kind !== "failed") return outcome;
    const keyByAddress = new Map(this.envelope().map(({ key, mailbox }) => [mailbox.address, key]));
    const refused = [...this.refused].flatMap(([address, failure]): FurtherEvent[] => {
      const recipient = keyByAddress.get(address);
      // The failure of the whole job is the main recipient's.
      if (recipient === undefined && outcome.kind === "failed") return [];
      const said = shown(failure.reply ?? "");
      const bounce = bounceBy(failure, said);
      const why = said === "" ? "took the message for others, and then no more" : `refused the recipient: ${said}`;
      const what = bounce ?? { error: `the mail server ${why}` };
      const type = bounce === null ? "failed" : "bounced";
      return [{ type, result: recipient === undefined ? what : { recipient, ...what } }];
    });
    const further = [...this.leftOut, ...refused];
    return further.length === 0 ? outcome : { ...outcome, further };
  }

  /** Returns the copies, each once, without the main recipient. */
  private envelope(): readonly Copy[] {
    const copies = new Map([...this.parties.cc, ...this.parties.bcc].map((copy) => [copy.key, copy]));
    copies.delete(this.parties.to);
    return [...copies.values()];
  }

  private judge(refused: ReadonlyMap<string, SmtpFailure>, recipients: number): SmtpFailure | null {
    const { attempts } = this.job;
    const isPutOff = ({ replyCode }: SmtpFailure) => replyCode !== null && replyCode < 500;
    const main = refused.get(this.parties.main?.address ?? "");
    const isLast = attempts + 1 >= limits.attemptsMax;
    if (main !== undefined && isPutOff(main) && !isLast) return main;
    const putOff = [...refused.values()].find(isPutOff);
    if (putOff !== undefined && attempts < TRIES_FOR_COPIES) return putOff;
    this.refused.clear();
    for (const [address, failure] of refused) this.refused.set(address, failure);
    return refused.size === recipients ? (putOff ?? main ?? null) : null;
  }
}

/** Converts addressees to header values, without those that have no valid form. */
export function toMailboxes(addressees: readonly Addressee[]): readonly Mailbox[] {
  return addressees.flatMap(({ address, name }) => toMailbox(named({ address, name: name ?? null })) ?? []);
}

/** Makes a name fit for a header. */
export function named({ address, name }: NamedAddress): NamedAddress {
  return { address, name: headerText(name ?? "", emailLimits.displayNameCharsMax) };
}
