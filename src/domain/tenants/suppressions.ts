import type { EndReason, SuppressionReason } from "../jobs/job.ts";
import type { Fenced, Lease } from "../jobs/queue.ts";
import type { TenantRef } from "./tenant.ts";

/** A recipient to whom a tenant's messages are no longer sent, as the operator sees it. */
export interface SuppressionRecord {
  /**
   * Normalised (`normaliseAddress`): addresses are compared case-insensitively. For an erased recipient, its erased
   * name.
   */
  readonly address: string;
  /** Only messages on this topic are stopped; absent: all messages. */
  readonly topic?: string;
  readonly reason: SuppressionReason;
  /** ISO 8601 UTC: when the suppression began. */
  readonly created_at: string;
}

/** An erased recipient is on the list under its keyed hash, behind this prefix, which no recipient begins with. */
export const ERASED_NAME = "sha:";

export function isErasedName(address: string): boolean {
  return address.startsWith(ERASED_NAME);
}

/*
 * The registry and the index store a suppression under a name: the address (for an erased recipient its erased name)
 * and, behind a tab, the topic if it is for one alone. Both use the same name, in one column: a former release, which
 * does not support topics, keeps and loads these suppressions with the others.
 */

const TOPIC_BEFORE = "\t";

/** Returns the name on the list. Normalised, as the address is. */
export function suppressionName(address: string, topic: string | undefined): string {
  return topic === undefined ? address : address + TOPIC_BEFORE + topic;
}

export function readSuppressionName(name: string): { readonly address: string; readonly topic?: string } {
  const at = name.indexOf(TOPIC_BEFORE);
  return at === -1 ? { address: name } : { address: name.slice(0, at), topic: name.slice(at + 1) };
}

const TOPIC_CHARS_MAX = 64;
/** A link to unsubscribe has to fit into one header line (RFC 5322, 2.1.1). */
const TOPIC_BYTES_MAX = 128;
const TOPIC = /^[\p{L}\p{N}][\p{L}\p{M}\p{N} _.,&+'-]*$/u;
const INVISIBLE = /\p{Default_Ignorable_Code_Point}/u;

export const TOPIC_RULE = `1 to ${TOPIC_CHARS_MAX} letters, digits, blanks and _ - . , & + ' (at most ${TOPIC_BYTES_MAX} bytes), and begins with a letter or digit`;

/**
 * Returns a topic in the spelling in which it is stored and compared: in lower case, with single blanks. Null if the
 * text is not a topic. It never contains the separators of names, payloads and Redis' replies: controls, quotes, `@`,
 * `|`.
 */
export function readTopic(text: string): string | null {
  // A capital letter can become several characters.
  if (text.length > 4 * TOPIC_CHARS_MAX) return null;
  const topic = text.normalize("NFC").toLowerCase().normalize("NFC").replace(/ {2,}/g, " ").trim();
  const fits = topic.length <= TOPIC_CHARS_MAX && Buffer.byteLength(topic) <= TOPIC_BYTES_MAX;
  return fits && TOPIC.test(topic) && !INVISIBLE.test(topic) ? topic : null;
}

/** An entry of a shard's index. For the address `ERASED_NAME`, the reason is the key of the tenant's erased names. */
export interface IndexedSuppression {
  readonly tenantId: string;
  /** The name on the list. */
  readonly address: string;
  readonly reason: string;
}

/** A suppression of a shard's tenant. */
export interface Suppression extends IndexedSuppression {
  readonly tenantId: string;
  readonly address: string;
  readonly reason: SuppressionReason;
}

/** The suppression that stops a message. */
export interface Stop {
  readonly reason: EndReason;
  /** The suppression is for this topic alone; absent: for all messages. */
  readonly topic?: string;
}

/** The queue's index of the list, which `pull` consults, by the names on the list. Safe to repeat. */
export interface SuppressionIndex {
  putSuppression(tenant: TenantRef, name: string, reason: string): Promise<void>;
  removeSuppression(tenant: TenantRef, name: string): Promise<void>;
  /** Whether the recipient was erased since then (unix ms), for as long as an earlier message may wait. */
  wasErasedSince(tenant: TenantRef, address: string, sinceMs: number): Promise<boolean>;
  /**
   * Fills the index of a shard whose queue never had it. Suppressions that are added or removed in the meantime take
   * precedence. `isLast` marks the index as complete; a complete index ignores the call.
   */
  loadSuppressions(
    lease: Lease,
    entries: readonly IndexedSuppression[],
    isLast: boolean,
  ): Promise<"loading" | "loaded" | Fenced>;
}

export interface SuppressibleMessage {
  /** Unix ms. */
  readonly acceptedMs: number;
  readonly topic: string | undefined;
}

/** Looks up recipients beside a job's own, whom `pull` looks up. Rejects with `UnavailableError` or `TransportError`. */
export interface SuppressionLookup {
  /**
   * Returns those of the normalised addresses to which a message must not be sent, and why. Addresses that were erased
   * since the acceptance are included, suppressed or not.
   */
  suppressedAmong(
    tenant: TenantRef,
    addresses: readonly string[],
    message: SuppressibleMessage,
  ): Promise<ReadonlyMap<string, Stop>>;
}
