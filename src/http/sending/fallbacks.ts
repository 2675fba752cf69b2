import { Type } from "@sinclair/typebox";
import { jobTimeMs } from "../../domain/ids.ts";
import { AWAITED, type Awaited, FALLBACKS_MAX, type Fallback, fallbackId } from "../../domain/jobs/fallback.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import { isJsonObject, type Json, type JsonObject } from "../../domain/texts/json.ts";
import { requireSending } from "../endpoint.ts";
import type { FrontDoor } from "../front-door.ts";
import { enumSchema } from "../schemas.ts";
import { type Acceptance, confirmed, type PlannedFallback, type Refusal, unknownMember } from "./acceptance.ts";
import { readSchedule } from "./schedule.ts";

const SECOND_MS = 1_000;
const UNIT_MS = { s: SECOND_MS, m: 60 * SECOND_MS, h: 3_600 * SECOND_MS, d: 86_400 * SECOND_MS } as const;
const AFTER_MS_MIN = 30 * SECOND_MS;
const AFTER_MS_MAX = 72 * UNIT_MS.h;
const AFTER = /^(?<count>[1-9]\d{0,5})(?<unit>[smhd])$/;

const Event = enumSchema(AWAITED);

/** The member of a send with the messages that follow if it is not received. */
export const Fallbacks = Type.Array(
  Type.Object(
    {
      after: Type.String({
        pattern: "^[1-9][0-9]{0,5}[smhd]$",
        description:
          "How long after the message it is due, from 30 seconds to 72 hours: a whole number of seconds, minutes, hours or days, " +
          "such as 10m. Longer than that of the fallback before.",
      }),
      unless: Type.Union([Event, Type.Array(Event, { minItems: 1, maxItems: AWAITED.length })], {
        description:
          "It is not sent if the message, or a fallback before it, has had one of these events by then, or a stronger one: sent, " +
          "delivered, read or opened, clicked.",
      }),
      send: Type.Object(
        { channel: Type.String({ description: "email or whatsapp." }) },
        {
          additionalProperties: true,
          description: "The members of a send on that channel, except for `scheduled_at`.",
        },
      ),
    },
    { additionalProperties: false },
  ),
  {
    $id: "Fallbacks",
    minItems: 1,
    maxItems: FALLBACKS_MAX,
    description: "Messages that are sent only if this one is not received in time.",
  },
);

/** A send's fallbacks before their own messages are checked. */
interface Read {
  readonly afterMs: number;
  readonly unless: readonly Awaited[];
  readonly send: JsonObject;
}

type ReadResult =
  | { readonly ok: true; readonly read: readonly Read[] }
  | { readonly ok: false; readonly refusal: Refusal };

/** Splits off `fallback`, which no channel accepts; null: the body has none. */
export function takeFallbacks(body: unknown): { readonly body: JsonObject; readonly fallback: Json } | null {
  if (!isJsonObject(body) || !("fallback" in body)) return null;
  const { fallback = null, ...others } = body;
  return { body: others, fallback };
}

/**
 * Adds a message's fallbacks to it, each checked as a send of its own. Throws an `ApiError` 403 if the tenant may not send on
 * its channel.
 */
export function acceptFallbacks(door: FrontDoor, tenant: Tenant, fallback: Json, main: Acceptance): Acceptance {
  if (!main.ok || fallback === null) return main;
  const given = readFallbacks(fallback);
  if (!given.ok) return given;
  if (main.charge !== undefined)
    return malformed("fallback is not taken beside pass: send the pass in a message without one");
  const planned: PlannedFallback[] = [];
  for (const [at, { afterMs, unless, send }] of given.read.entries()) {
    const { channel = null, ...message } = send;
    const kind = typeof channel === "string" ? door.messageKinds.get(channel) : undefined;
    if (kind === undefined) {
      return refused(at, `send.channel must be one of ${[...door.messageKinds.keys()].join(", ")}`);
    }
    requireSending(tenant, kind.channel);
    if ((message["pass"] ?? null) !== null) return refused(at, "send.pass is not taken: a fallback carries no pass");
    const accepted = kind.accept(tenant, message);
    if (!accepted.ok) return { ok: false, refusal: within(at, message, accepted.refusal) };
    planned.push({ afterMs, unless, channel: kind.channel, accepted });
  }
  return { ...main, fallbacks: planned, confirm: () => confirmAll(main, planned) };
}

async function confirmAll(main: Acceptance & { readonly ok: true }, planned: readonly PlannedFallback[]) {
  const refusal = (await main.confirm?.()) ?? null;
  if (refusal !== null) return refusal;
  for (const [at, { accepted }] of planned.entries()) {
    const checked = await confirmed(accepted);
    if (!checked.ok) return within(at, {}, checked.refusal);
  }
  return null;
}

function readFallbacks(value: Json): ReadResult {
  if (!Array.isArray(value) || value.length === 0 || value.length > FALLBACKS_MAX) {
    return malformed(`fallback must be an array of 1 to ${FALLBACKS_MAX} objects`);
  }
  const read: Read[] = [];
  for (const [at, each] of value.entries()) {
    if (!isJsonObject(each)) return malformed(`fallback[${at}] must be an object with after, unless and send`);
    const unknown = unknownMember(each, ["after", "unless", "send"]);
    if (unknown !== null) return { ok: false, refusal: under(`fallback[${at}].`, unknown) };
    const { after = null, unless = null, send = null } = each;
    const afterMs = readAfter(after);
    if (afterMs === null) {
      return refused(at, "after must be a whole number of s, m, h or d, from 30s to 72h, such as 10m");
    }
    if (afterMs <= (read.at(-1)?.afterMs ?? 0))
      return refused(at, `after must be longer than fallback[${at - 1}].after`);
    const words = readUnless(unless);
    if (words === null) return refused(at, `unless must be one or more of ${AWAITED.join(", ")}`);
    if (!isJsonObject(send)) return refused(at, "send must be an object with channel and the members of its send");
    read.push({ afterMs, unless: words, send });
  }
  return { ok: true, read };
}

function readAfter(value: Json): number | null {
  const { count, unit } = (typeof value === "string" ? AFTER.exec(value)?.groups : null) ?? {};
  // The pattern allows these units only.
  const ms = count === undefined ? 0 : Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS];
  return ms >= AFTER_MS_MIN && ms <= AFTER_MS_MAX ? ms : null;
}

function readUnless(value: Json): readonly Awaited[] | null {
  const words = Array.isArray(value) ? value : [value];
  const known = AWAITED.filter((word) => words.includes(word));
  const areKnown = words.every((word) => AWAITED.some((each) => each === word));
  return known.length > 0 && known.length === words.length && areKnown ? known : null;
}

/** A fallback in the answer to its send. */
export interface ShownFallback {
  readonly jobId: string;
  readonly dueMs: number;
}

/**
 * Derives the fallbacks that the first request queued from the message's job and the body alone, so every repeat shows the same
 * ones.
 */
export function shownFallbacks(mainJobId: string, body: unknown): readonly ShownFallback[] {
  const taken = takeFallbacks(body);
  const given = taken === null || taken.fallback === null ? null : readFallbacks(taken.fallback);
  if (taken === null || given === null || !given.ok) return [];
  const fromMs = fallbacksFromMs(mainJobId, taken.body);
  return given.read.map(({ afterMs }, at) => ({ jobId: fallbackId(mainJobId, at + 1), dueMs: fromMs + afterMs }));
}

/** Returns the base of a message's fallback times (unix ms): its scheduled time, or its acceptance. */
function fallbacksFromMs(mainJobId: string, { scheduled_at = null }: JsonObject): number {
  const acceptedMs = jobTimeMs(mainJobId);
  const time = scheduled_at === null ? null : readSchedule(scheduled_at, Number.POSITIVE_INFINITY);
  return time !== null && "dueMs" in time ? Math.max(acceptedMs, time.dueMs) : acceptedMs;
}

/** Builds the part of a job that makes it a fallback. */
export function toFallback(mainJobId: string, { afterMs, unless }: PlannedFallback, number: number): Fallback {
  return { mainJobId, number, afterMs, unless };
}

/** A refusal of the fallback's own message, which mostly begins with the member that it is about. */
function within(at: number, message: JsonObject, refusal: Refusal): Refusal {
  const [member = ""] = /^\w+/.exec(refusal.message) ?? [];
  const isAbsent = / (?:is|are) required/.test(refusal.message);
  const between = member in message || isAbsent ? "." : ": ";
  const { param } = refusal;
  const path = `fallback[${at}].send`;
  return {
    ...refusal,
    message: `${path}${between}${refusal.message}`,
    ...(param !== undefined && { param: `${path}.${param}` }),
  };
}

function under(path: string, refusal: Refusal): Refusal {
  return { ...refusal, message: `${path}${refusal.message}`, param: `${path}${refusal.param ?? ""}` };
}

function refused(at: number, message: string): { readonly ok: false; readonly refusal: Refusal } {
  return malformed(`fallback[${at}].${message}`);
}

function malformed(message: string): { readonly ok: false; readonly refusal: Refusal } {
  return { ok: false, refusal: { status: 400, message } };
}
