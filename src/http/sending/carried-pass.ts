import type { TObject, TSchema } from "@sinclair/typebox";
import { type CarriedPass, carrierPayload } from "../../domain/channels/carried-pass.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import { isJsonObject, type JsonObject } from "../../domain/texts/json.ts";
import type { tenantFailure } from "../failures.ts";
import { optional } from "../schemas.ts";
import { type Acceptance, alsoKnown, type Charge, type Refusal } from "./acceptance.ts";

/** Reads the passes that messages carry; the wallet's side of `pass`. */
export interface PassDesk {
  /** The member `pass`: as in a request for the pass alone. */
  readonly schema: TSchema;
  /** The 402 of a tenant without tokens. */
  readonly noTokens: ReturnType<typeof tenantFailure>;
  /** Checks the member. Does no I/O. */
  read(tenant: Tenant, given: unknown): { readonly pass: CarriedPass; readonly charge: Charge } | Refusal;
}

/** How a channel's messages carry passes. */
export interface CarryingForm {
  /** Turns the body of a send into a job; it does not accept `pass`. */
  accept(tenant: Tenant, body: unknown): Acceptance;
  /**
   * Returns the body with the pass data that its checks need, or a text that explains why the message cannot carry the pass.
   */
  bodyWith(body: JsonObject, pass: CarriedPass): JsonObject | string;
}

/** A send's body with the member `pass`. */
export function carrying(message: TObject, { schema }: PassDesk): TSchema {
  return { ...message, properties: { ...message.properties, pass: optional(schema) } };
}

/**
 * Accepts a message that may carry a pass. The checks run in this order: malformed members of the message or the pass (400),
 * other faults of the message (403, 422), then the tenant's right to send passes (403).
 */
export function acceptCarrying(desk: PassDesk, { accept, bodyWith }: CarryingForm): CarryingForm["accept"] {
  return (tenant, body) => {
    if (!isJsonObject(body) || !("pass" in body)) return alsoKnown(accept(tenant, body), "pass");
    const { pass: given, ...message } = body;
    if (given === null) return accept(tenant, message);
    const read = desk.read(tenant, given);
    // The message's own faults are reported first, as if it came without a pass.
    const whole = "status" in read ? message : bodyWith(message, read.pass);
    const acceptance = accept(tenant, typeof whole === "string" ? message : whole);
    if (!acceptance.ok && acceptance.refusal.status === 400) return acceptance;
    if ("status" in read) return { ok: false, refusal: read };
    if (typeof whole === "string") return { ok: false, refusal: { status: 400, message: whole } };
    if (!acceptance.ok) return acceptance;
    const refusal = mayNotSendPasses(tenant);
    if (refusal !== null) return { ok: false, refusal };
    const { job } = acceptance;
    return { ...acceptance, job: { ...job, payload: carrierPayload(read.pass, job.payload) }, charge: read.charge };
  };
}

function mayNotSendPasses({ channels, steering }: Tenant): Refusal | null {
  if (!channels.has("wallet"))
    return { status: 403, code: "channel_not_enabled", message: "pass needs the channel wallet, which is not enabled" };
  if (steering?.held.has("wallet") !== true) return null;
  return {
    status: 403,
    code: "sends_on_hold",
    message: "sends of this tenant on wallet are on hold, and so are messages with a pass",
  };
}

/** Accepts messages of a batch, in which none carries a pass. */
export function acceptWithoutPass(accept: CarryingForm["accept"], single: string): CarryingForm["accept"] {
  return (tenant, body) => {
    if (!isJsonObject(body) || !("pass" in body)) return accept(tenant, body);
    const { pass, ...message } = body;
    if (pass === null) return accept(tenant, message);
    return {
      ok: false,
      refusal: {
        status: 400,
        param: "pass",
        message: `pass is not taken in a batch: send this message with ${single}`,
      },
    };
  };
}
