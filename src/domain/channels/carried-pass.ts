import type { QueuedJob } from "../jobs/job.ts";
import type { Outcome } from "../jobs/outcome.ts";
import type { Tenant } from "../tenants/tenant.ts";
import { isJsonObject, type JsonObject, parseJsonObject, parseWritten } from "../texts/json.ts";
import { PASS_TYPES, type PassType } from "./wallet.ts";

/*
 * A message that carries a wallet pass: its job first makes the pass, then sends the message with the pass's links or file. The
 * pass belongs to the job as a wallet job's pass does: it is stored and paid for before the job is queued.
 */

/** The pass that a message's job makes. */
export interface CarriedPass {
  readonly passId: string;
  readonly type: PassType;
}

/**
 * What a message can say of its pass: Google's has a save link, Apple's an address of its file. A token is the last part of such
 * an address, for buttons whose template has the rest.
 */
export interface PassValues {
  readonly pass_id: string;
  readonly save_link?: string;
  readonly save_token?: string;
  readonly download_url?: string;
  readonly download_token?: string;
}

/** The names of what a pass of the type has. */
export function listValueNames(type: PassType): readonly (keyof PassValues)[] {
  return type === "google" ? ["pass_id", "save_link", "save_token"] : ["pass_id", "download_url", "download_token"];
}

/** The values by which a message is checked before its pass exists. */
export function valuesBefore({ passId, type }: CarriedPass): PassValues {
  const token = "pass";
  return type === "google"
    ? { pass_id: passId, save_link: `https://pay.google.com/gp/v/save/${token}`, save_token: token }
    : { pass_id: passId, download_url: `https://example.com/p/${token}`, download_token: token };
}

/** A signed pass, as a message has it attached. */
export interface PassFile {
  readonly filename: string;
  readonly sha256: string;
  readonly body: Uint8Array;
}

export interface MadePass {
  readonly values: PassValues;
  /** Null: the pass has no file. */
  readonly file: PassFile | null;
}

/** How a channel's payload, parsed, takes the values and the file of its pass. */
export type PassFiller = (message: JsonObject, made: MadePass) => JsonObject;

/** What the wallet does for messages that carry passes. Calls reject with `UnavailableError` while the registry is away. */
export interface CarriedPasses {
  /**
   * Makes the pass, or finds it made by an earlier try of the job. Otherwise the job's outcome; it never says that the provider
   * is away, which concerns no message's relay.
   */
  make(job: QueuedJob, passId: string, tenant: Tenant, signal: AbortSignal): Promise<MadePass | Outcome>;
  /** Notes that the message was sent. Safe to repeat. */
  finish(passId: string): Promise<void>;
  /** Gives back token and serial of a job that certainly sent nothing. Safe to repeat; nothing happens if it has no pass. */
  giveBack(tenantId: string, jobId: string): Promise<void>;
  /** Does the same for a job that nobody can try again: nothing of its pass is kept. */
  discard(tenantId: string, jobId: string): Promise<void>;
}

const MEMBER = "$pass";
const BEGINNING = `{"${MEMBER}":`;

/**
 * The payload of a message that carries a pass. A release that knows no such messages finds no recipient in it, and fails the
 * job: it must not send the message without its pass.
 *
 * @param message The channel's own payload.
 */
export function carrierPayload({ passId, type }: CarriedPass, message: string): string {
  return `${BEGINNING}${JSON.stringify({ passId, type })},"message":${message}}`;
}

export interface Carrier {
  readonly pass: CarriedPass;
  /** The channel's own payload, parsed. */
  readonly message: JsonObject;
}

/** Parses what `carrierPayload` wrote; null: the payload carries no pass. Most do not, which costs next to nothing. */
export function parseCarrier(payload: string): Carrier | null {
  if (!carriesPass(payload)) return null;
  const { [MEMBER]: pass, message } = parseJsonObject(payload, parseWritten) ?? {};
  if (!isJsonObject(pass) || !isJsonObject(message)) return null;
  const { passId } = pass;
  const type = PASS_TYPES.find((known) => known === pass["type"]);
  return typeof passId === "string" && type !== undefined ? { pass: { passId, type }, message } : null;
}

/** Whether the payload begins as one that carries a pass. */
export function carriesPass(payload: string): boolean {
  return payload.startsWith(BEGINNING);
}
