import {
  BATCH_MESSAGES_MAX,
  BATCH_PIECE_MESSAGES_MAX,
  type BatchIds,
  type MadeMessage,
  type MadePart,
} from "../../domain/jobs/batch.ts";
import type { NewJob } from "../../domain/jobs/queue.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import { isJsonObject, type Json, type JsonObject } from "../../domain/texts/json.ts";
import { ApiError } from "../api-error.ts";
import { type Refused, toTold } from "../error-codes.ts";
import type { FrontDoor } from "../front-door.ts";
import { isStoredElsewhere, storeLarge } from "./accept-job.ts";
import { type Acceptance, presentMembers, type Refusal, unknownMember } from "./acceptance.ts";

/** The body of a batch. */
export interface BatchBody {
  /** Members of every message that does not have them itself. */
  readonly defaults: JsonObject;
  /** Of these, some may be no objects. */
  readonly messages: readonly Json[];
}

const MIB = 1024 * 1024;
/** Payloads of one batch, in UTF-16 code units: shared members count once per message. */
const PAYLOADS_MAX = 64 * MIB;
/** A piece ends with the message that exceeds this, which keeps both the piece and the call to the queue small. */
const PIECE_PAYLOADS_MAX = 512 * 1024;
/**
 * A piece also ends when checking takes this long, refused messages included: each may share half a megabyte of HTML with a
 * thousand others.
 */
const PIECE_MS_MAX = 50;
/** More than any message has: they are copied for each message. */
const DEFAULTS_MAX = 100;

/** Throws an `ApiError` 400. */
export function readBatchBody(body: unknown): BatchBody {
  if (!isJsonObject(body)) throw new ApiError(400, "the body must be a JSON object");
  const refusal = unknownMember(body, ["defaults", "messages"]);
  if (refusal !== null) throw new ApiError(refusal, refusal.message);
  const { defaults = {}, messages } = presentMembers(body);
  if (!isJsonObject(defaults)) throw new ApiError(400, "defaults must be an object with members of a message");
  if (Object.keys(defaults).length > DEFAULTS_MAX) {
    throw new ApiError(400, `defaults must not hold more than ${DEFAULTS_MAX} members`);
  }
  if (!Array.isArray(messages)) throw new ApiError(400, "messages must be an array of 1 to 1000 messages");
  if (messages.length === 0) throw new ApiError(400, "messages must hold at least one message");
  if (messages.length > BATCH_MESSAGES_MAX) {
    throw new ApiError(
      400,
      `messages must not hold more than ${BATCH_MESSAGES_MAX} messages: this has ${messages.length}`,
    );
  }
  return { defaults, messages };
}

export interface MessageMaker {
  readonly body: BatchBody;
  /** The names of a message's members. */
  readonly members: ReadonlySet<string>;
  /** Checks a message as a request of its own is checked. */
  accept(message: unknown): Acceptance;
  /** The message's job. */
  toJob(jobId: string, accepted: (Acceptance & { readonly ok: true })["job"]): NewJob;
}

/** Builds the jobs of a batch piece by piece, so that it never takes the time or memory of all of them at once. */
export class BatchMessages {
  private payloads = 0;
  /** The last piece was full of bytes, or took too long, before it was full of messages. */
  private isHeavy = false;

  constructor(
    private readonly door: FrontDoor,
    private readonly tenant: Tenant,
    private readonly maker: MessageMaker,
  ) {}

  /** As `Batch.make`. After a heavy piece, the next one waits for its turn among all large requests. */
  async make(from: number, ids: BatchIds): Promise<MadePart> {
    const bytes = this.isHeavy ? Number.POSITIVE_INFINITY : 0;
    const part = await this.door.inTurn(this.tenant, bytes, () => this.piece(from, ids));
    const messages: MadeMessage[] = [];
    const confirmed = await Promise.all(part.messages.map((each) => this.confirmed(each)));
    for (const [at, message] of confirmed.entries()) {
      const contents = part.messages[at]?.contents;
      const isStored = "job" in message && (contents !== undefined || isStoredElsewhere(this.door, message.job));
      // A payload whose job is not queued in the end is left to the sweep: another run of the batch may be about to queue it.
      messages.push(
        isStored
          ? { index: message.index, job: await storeLarge(this.door, this.tenant, message.job, contents) }
          : message,
      );
    }
    return { messages, next: part.next };
  }

  private piece(from: number, ids: BatchIds): { readonly messages: readonly Unconfirmed[]; readonly next: number } {
    const { messages: given } = this.maker.body;
    const messages: Unconfirmed[] = [];
    const { clock } = this.door.ports;
    const before = { payloads: this.payloads, ms: clock.monotonicMs() };
    let index = from;
    const hasRoom = () =>
      this.payloads - before.payloads < PIECE_PAYLOADS_MAX && clock.monotonicMs() - before.ms < PIECE_MS_MAX;
    // At least one, however late it is.
    const goesOn = () => index === from || (messages.length < BATCH_PIECE_MESSAGES_MAX && hasRoom());
    for (; index < given.length && goesOn(); index += 1) {
      if (!ids.isQueued(index)) messages.push(this.message(index, ids));
    }
    this.isHeavy = !hasRoom();
    return { messages, next: index };
  }

  private async confirmed({ made, confirm }: Unconfirmed): Promise<MadeMessage> {
    const refusal = await confirm?.();
    return refusal ? { index: made.index, refusal: refusalText(refusal, this.maker.members) } : made;
  }

  private message(index: number, ids: BatchIds): Unconfirmed {
    if (this.payloads > PAYLOADS_MAX) return { made: { index, refusal: TOO_MUCH } };
    const { body, accept, toJob } = this.maker;
    const message = body.messages[index];
    const acceptance = accept(isJsonObject(message) ? { ...body.defaults, ...message } : message);
    if (!acceptance.ok) return { made: { index, refusal: refusalText(acceptance.refusal, this.maker.members) } };
    this.payloads += acceptance.job.payload.length;
    const { confirm, contents } = acceptance;
    for (const { body: file } of contents ?? []) this.payloads += file.length;
    const made = { index, job: toJob(ids.jobId(index), acceptance.job) };
    return { made, ...(confirm && { confirm }), ...(contents && { contents }) };
  }
}

interface Unconfirmed extends Pick<Acceptance & { readonly ok: true }, "confirm" | "contents"> {
  readonly made: MadeMessage;
}

/** The members of an error beside its index, as JSON text without braces. `members`: as for `toTold`. */
export function refusalText(refusal: Refused & Pick<Refusal, "violations">, members = NO_MEMBERS): string {
  const { message: error, violations } = refusal;
  const { code, param } = toTold(refusal, members);
  const shown = { error, code, ...(param !== null && { param }), ...(violations !== undefined && { violations }) };
  return JSON.stringify(shown).slice(1, -1);
}

const NO_MEMBERS: ReadonlySet<string> = new Set();

const TOO_MUCH = refusalText({
  status: 413,
  message: `the messages of a batch, each with what it shares with others, hold at most ${PAYLOADS_MAX / MIB} MiB: send this one in another batch`,
});
