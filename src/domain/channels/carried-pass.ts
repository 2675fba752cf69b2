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
 * The parts of its pass that a message can refer to: a save link for Google, the URL of the pass file for Apple. A
 * token is the last part of that URL, for buttons whose template has the rest.
 */
export interface PassValues {
  readonly pass_id: string;
  readonly save_link?: string;
  readonly save_token?: string;
  readonly download_url?: string;
  readonly download_token?: string;
}

/** Returns the names of the values that a pass of this type has. */
export function listValueNames(type: PassType): readonly (keyof PassValues)[] {
  return type === "google" ? ["pass_id", "save_link", "save_token"] : ["pass_id", "download_url", "download_token"];
}

/** Returns the values against which a message is checked before its pass exists. */
export function valuesBefore({ passId, type }: CarriedPass): PassValues {
  const token = "pass";
  return type === "google"
    ? { pass_id: passId, save_link: `https://pay.google.com/gp/v/save/${token}`, save_token: token }
    : { pass_id: passId, download_url: `https://example.com/p/${token}`, download_token: token };
}

/** A signed pass, as it is attached to a message. */
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

/** Fills a channel's parsed payload with the values and the file of its pass. */
export type PassFiller = (message: JsonObject, made: MadePass) => JsonObject;

/**
 * The wallet's part in messages that carry passes. Calls reject with `UnavailableError` while the registry is away.
 */
export interface CarriedPasses {
  /**
   * Makes the pass, or returns the one made by an earlier try of the job. Otherwise returns the job's outcome, which is
   * never `away`: an outage of the pass's provider does not concern the message's relay.
   */
  make(job: QueuedJob, passId: string, tenant: Tenant, signal: AbortSignal): Promise<MadePass | Outcome>;
  /** Records that the message was sent. Safe to repeat. */
  finish(passId: string): Promise<void>;
  /**
   * Gives back the token and the serial number of a job that certainly sent no message. Safe to repeat; has no effect
   * if the job has no pass.
   */
  giveBack(tenantId: string, jobId: string): Promise<void>;
  /** Does the same for a job that can no longer be retried, and deletes its pass. */
  discard(tenantId: string, jobId: string): Promise<void>;
}

const MEMBER = "$pass";
const BEGINNING = `{"${MEMBER}":`;

/**
 * Builds the payload of a message that carries a pass. A release that does not support such messages finds no recipient
 * in it and fails the job, because it must not send the message without its pass.
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

/**
 * Parses the output of `carrierPayload`; null: the payload carries no pass. For most payloads, which carry none, it
 * costs almost no time.
 */
export function parseCarrier(payload: string): Carrier | null {
  if (!carriesPass(payload)) return null;
  const { [MEMBER]: pass, message } = parseJsonObject(payload, parseWritten) ?? {};
  if (!isJsonObject(pass) || !isJsonObject(message)) return null;
  const { passId } = pass;
  const type = PASS_TYPES.find((known) => known === pass["type"]);
  return typeof passId === "string" && type !== undefined ? { pass: { passId, type }, message } : null;
}

/** Whether the payload begins like one that carries a pass. */
export function carriesPass(payload: string): boolean {
  return payload.startsWith(BEGINNING);
}
