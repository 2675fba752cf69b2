import type { Content } from "../../domain/content-store.ts";
import type { Awaited } from "../../domain/jobs/fallback.ts";
import type { ChannelName } from "../../domain/jobs/job.ts";
import type { Idempotency, NewJob } from "../../domain/jobs/queue.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import type { JsonObject } from "../../domain/texts/json.ts";
import type { Refused } from "../error-codes.ts";

/** Why a send is refused, in words for the caller. */
export interface Refusal extends Refused {
  /** 500: the service is not configured for it. */
  readonly status: 400 | 403 | 422 | 500;
  /** Every violation in the inline HTML. */
  readonly violations?: readonly { readonly rule: string; readonly message: string }[];
  /** The message ends with the members that are known. */
  readonly listsMembers?: true;
}

/** The outcome of validating a send's body: the parts of its job, or the first reason to refuse it. */
export type Acceptance =
  | {
      readonly ok: true;
      readonly job: Pick<NewJob, "recipient" | "payload" | "needsScreening" | "template" | "tags" | "topic" | "dueMs">;
      /** Files that the payload names by their digests, stored before the job is queued; absent: none. */
      readonly contents?: readonly Content[];
      /**
       * Checks a store for further reasons to refuse, before the job is queued; absent: no such check. Rejects if the store
       * cannot be reached.
       */
      confirm?(): Promise<Refusal | null>;
      /** The messages to send if this one is not received; absent: none. */
      readonly fallbacks?: readonly PlannedFallback[];
      /** A charge for accepting the job; absent: none. */
      readonly charge?: Charge;
    }
  | { readonly ok: false; readonly refusal: Refusal };

/** A charge made for a job before it is queued, such as a token for its pass. */
export interface Charge {
  /**
   * Takes it for the job. Returns null, or the job of an equal request that was quicker. Throws an `ApiError` if it cannot be
   * had; rejects if the store cannot be reached.
   */
  take(jobId: string, idempotency: Idempotency | null): Promise<string | null>;
  /** Gives it back because the job was not queued. Never rejects: a sweep gives back the rest. */
  undo(jobId: string): Promise<void>;
}

/** How messages on a channel are checked. */
export interface MessageKind {
  /** The channel that the tenant must have enabled. */
  readonly channel: ChannelName;
  /** Turns the parsed body into a job, or into the first reason to refuse it. */
  accept(tenant: Tenant, body: unknown): Acceptance;
}

/** A message that is sent only if the one before it is not received, checked like any other. */
export interface PlannedFallback {
  /** How long after that message. */
  readonly afterMs: number;
  readonly unless: readonly Awaited[];
  readonly channel: ChannelName;
  readonly accepted: Acceptance & { readonly ok: true };
}

/** Returns the outcome after the checks against stores. */
export async function confirmed(acceptance: Acceptance): Promise<Acceptance> {
  const refusal = acceptance.ok ? await acceptance.confirm?.() : null;
  return refusal ? { ok: false, refusal } : acceptance;
}

const QUOTED_CHARS_MAX = 100;

/** Drops the members of a body that are null: an optional member that is null counts as absent. */
export function presentMembers(body: JsonObject): JsonObject {
  if (!Object.values(body).includes(null)) return body;
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
}

/** Refuses a body with a member that the endpoint does not know; null if there is none. Members are never silently ignored. */
export function unknownMember(body: JsonObject, known: readonly string[]): Refusal | null {
  const param = firstUnknown(body, known);
  if (param === undefined) return null;
  const message = `${param} is not a member of this request: known are ${known.join(", ")}`;
  return { status: 400, code: "unknown_member", param, message, listsMembers: true };
}

/** Adds a member that was removed before the rest of the body was checked: the sender may have meant it. */
export function alsoKnown(acceptance: Acceptance, member: string): Acceptance {
  if (acceptance.ok || acceptance.refusal.listsMembers !== true) return acceptance;
  const { refusal } = acceptance;
  return { ok: false, refusal: { ...refusal, message: `${refusal.message}, ${member}` } };
}

/** Names the first member that `of` does not have, in a sentence; null: there is none. `before`: the path to the member. */
export function complaintAboutMembers(
  object: JsonObject,
  known: readonly string[],
  of: string,
  before = "",
): string | null {
  const unknown = firstUnknown(object, known);
  return unknown === undefined ? null : `${before}${unknown} is not a member of ${of}: known are ${known.join(", ")}`;
}

function firstUnknown(object: JsonObject, known: readonly string[]): string | undefined {
  return Object.keys(object)
    .find((name) => !known.includes(name))
    ?.slice(0, QUOTED_CHARS_MAX);
}
