import type { GoogleContent } from "../../../domain/channels/wallet.ts";
import type { Outcome } from "../../../domain/jobs/outcome.ts";
import { remember } from "../../../domain/remember.ts";
import type { Telemetry } from "../../../domain/telemetry.ts";
import type { Tenant } from "../../../domain/tenants/tenant.ts";
import { isJsonArray, isJsonObject, type JsonObject, parseJsonObject } from "../../../domain/texts/json.ts";
import { maskedText } from "../../../domain/texts/masked.ts";
import { walletLimits } from "../limits.ts";
import type { Pass } from "../passes.ts";
import type { GoogleTask } from "../payload.ts";
import type { ClassOwnership } from "./class-ownership.ts";
import type { Caller, GoogleAnswer, GoogleApi, Refused } from "./google-api.ts";
import { callbackOptions } from "./google-class-service.ts";
import { isSameObject, leftovers } from "./same-object.ts";

/** Whether a message alerted a pass's holders, was displayed silently, or was not delivered. */
type Notified = "alerted" | "silent" | "no";

/** One delivery of a pass, with its tenant. */
export interface GoogleDelivery {
  readonly pass: Pass;
  readonly content: GoogleContent;
  readonly payload: GoogleTask;
  readonly tenant: Tenant;
  readonly caller: Caller;
}

export interface GoogleObjectsOptions {
  readonly api: GoogleApi;
  readonly ownership: ClassOwnership;
  readonly telemetry: Telemetry;
  callbackUrl(): string | null;
}

/**
 * Brings passes into Google's wallet as objects of its REST API. Deliveries of one pass must not overlap.
 *
 * Invariants:
 * O1. Only our own objects are changed: those whose insertion succeeded, or unsaved ones with exactly the content that
 *     we sent. Tenants can share an issuer, and every holder of a pass can read its ids.
 * O2. A repeated delivery, whether or not earlier calls took effect, leaves the object at the newest version and
 *     displays its message once.
 * O3. The state kept here only saves calls or recognises more objects; losing it in a crash violates neither O1 nor O2.
 */
export class GoogleObjects {
  /**
   * By pass: objects sent in insertions that may have taken effect, as JSON; the pass may change between insertions.
   */
  private readonly inserts = new Map<string, readonly string[]>();
  /** By pass: a version that Google is known to have. */
  private readonly brought = new Map<string, number>();

  private readonly api: GoogleApi;
  private readonly ownership: ClassOwnership;
  private readonly telemetry: Telemetry;

  constructor(private readonly options: GoogleObjectsOptions) {
    ({ api: this.api, ownership: this.ownership, telemetry: this.telemetry } = options);
  }

  async create(delivery: GoogleDelivery): Promise<Outcome> {
    const { pass, content } = delivery;
    const barred = await this.claimClass(delivery);
    if (barred !== null) return barred;
    let answer = await this.insert(delivery);
    if (answer.kind === "refused" && answer.cause === "missing") {
      if (content.kind !== "generic") return noClass(delivery);
      const created = await this.insertClass(delivery);
      if (!isThere(created)) return toOutcome(created);
      answer = await this.insert(delivery);
    }
    if (answer.kind === "refused" && answer.cause === "exists") return this.recognise(delivery);
    if (answer.kind !== "done") return toOutcome(answer);
    this.inserts.delete(pass.passId);
    return this.bringDone(delivery);
  }

  async update(delivery: GoogleDelivery): Promise<Outcome> {
    const { pass, payload } = delivery;
    // Until its creation ends, the object may not be ours.
    if (pass.state === "failed") return failed("the pass was not created");
    if (pass.state === "creating") return { kind: "retry", why: CREATION_UNDER_WAY, afterMs: 1_000, isUncounted: true };
    if (payload.notifyMessage === undefined) {
      return this.hasVersion(pass) ? this.bringDone(delivery) : this.bring(delivery);
    }
    if (Object.hasOwn(delivery.content.object, "messages")) {
      // The pass's own messages replace all others, including the one that marks this message as added.
      const held = await this.read(delivery);
      const known = held.kind === "done" ? messageIn(held.body, delivery) : null;
      if (known !== null) return this.bringDone(delivery, known);
    }
    return this.bring(delivery);
  }

  /**
   * Returns null if the pass may use its class. A generic class is claimed unseen, because we create it if it does not
   * exist.
   */
  private async claimClass(delivery: GoogleDelivery): Promise<Outcome | null> {
    const { tenant, caller, content } = delivery;
    const { kind, classId } = content;
    const whose =
      kind === "generic"
        ? await this.ownership.claim(tenant, classId)
        : await this.ownership.claimExisting({ tenant, kind, classId, caller });
    if (whose === "ours") return null;
    if (whose === "full") return failed(`the tenant has ${walletLimits.googleClassesMax} classes, as many as it may`);
    if (whose === "theirs") return failed(`the class ${classId} is another tenant's`);
    return whose.kind === "refused" && whose.cause === "missing" ? noClass(delivery) : toOutcome(whose);
  }

  /** Handles a used id, which belongs to an earlier attempt of this job or to another object. */
  private async recognise(delivery: GoogleDelivery): Promise<Outcome> {
    const { pass, content } = delivery;
    const held = await this.read(delivery);
    if (held.kind !== "done") {
      // The object can be neither inserted nor read, which is temporary.
      if (held.kind === "refused" && held.cause === "missing") return retry("the object is not readable yet");
      return toOutcome(held);
    }
    const sent = (this.inserts.get(pass.passId) ?? []).map((text) => parseJsonObject(text));
    const isAsWanted = isSameObject(content.object, held.body);
    const isOurs = isAsWanted || sent.some((each) => each !== null && isSameObject(each, held.body));
    // A pass cannot be saved before its job has returned the link.
    const isOtherPass = held.body["hasUsers"] === true || !isOurs;
    if (pass.state !== "ready" && isOtherPass) return failed(`the object_id ${pass.serial} is already used`);
    const outcome = isAsWanted ? this.bringDone(delivery) : await this.bring(delivery);
    if (outcome.kind === "delivered") this.inserts.delete(pass.passId);
    return outcome;
  }

  /** Updates the object to the pass's content, and displays the message. */
  private async bring(delivery: GoogleDelivery): Promise<Outcome> {
    const patched = await this.patch(delivery, delivery.content.object);
    if (patched.kind !== "done") {
      const isGone = patched.kind === "refused" && patched.cause === "missing";
      return isGone ? failed("the pass is not in Google's wallet any more") : toOutcome(patched);
    }
    const cleared = await this.clear(delivery, patched.body);
    if (cleared !== null) return cleared;
    const { notifyMessage } = delivery.payload;
    if (notifyMessage === undefined) return this.bringDone(delivery);
    const known = messageIn(patched.body, delivery);
    return known === null ? this.show(delivery, notifyMessage) : this.bringDone(delivery, known);
  }

  /** Clears members that the pass no longer has, because a patch keeps omitted members. Null on success. */
  private async clear(delivery: GoogleDelivery, held: JsonObject): Promise<Outcome | null> {
    const names = leftovers(delivery.content.object, held);
    if (names.length === 0) return null;
    const answer = await this.patch(delivery, Object.fromEntries(names.map((name) => [name, null])));
    if (answer.kind === "done") return null;
    const outcome = toOutcome(answer);
    // Google added the members that it refuses to clear.
    if (outcome.kind === "failed") this.note("members of a Google object cannot be cleared", delivery, outcome.error);
    return outcome.kind === "failed" ? null : outcome;
  }

  /**
   * Adds the message. Google lets a few messages a day alert the holder; further messages are displayed silently. A
   * message never fails the update.
   */
  private async show(delivery: GoogleDelivery, body: string): Promise<Outcome> {
    const loud = await this.addMessage(delivery, body, "TEXT_AND_NOTIFY");
    if (loud.kind === "done") return this.shown(delivery, "alerted");
    if (loud.kind === "unasked" || !isDecided(loud)) return toOutcome(loud);
    const silent = await this.addMessage(delivery, body, "TEXT");
    if (silent.kind === "done") return this.shown(delivery, "silent");
    if (silent.kind === "unasked" || !isDecided(silent)) return toOutcome(silent);
    this.note("a message could not be added to a Google pass", delivery, silent.said);
    return this.shown(delivery, "no");
  }

  private shown(delivery: GoogleDelivery, how: Notified): Outcome {
    this.telemetry.count("google_messages", { how: how === "no" ? "refused" : how });
    return this.bringDone(delivery, how);
  }

  private addMessage(
    delivery: GoogleDelivery,
    body: string,
    messageType: "TEXT" | "TEXT_AND_NOTIFY",
  ): Promise<GoogleAnswer> {
    const message = { id: formatMessageId(delivery), header: delivery.tenant.name, body, messageType };
    const path = [...buildPath(delivery), "addMessage"];
    return this.api.call(delivery.caller, { method: "POST", path, body: { message } });
  }

  private async insert(delivery: GoogleDelivery): Promise<GoogleAnswer> {
    const { pass, content, caller } = delivery;
    const answer = await this.api.call(caller, {
      method: "POST",
      path: [`${content.kind}Object`],
      body: content.object,
    });
    // Other refusals, such as throttling, have no effect on the object.
    if (answer.kind === "refused" && (answer.cause === "unanswered" || answer.cause === "away")) {
      this.rememberInsert(pass.passId, JSON.stringify(content.object));
    }
    return answer;
  }

  private rememberInsert(passId: string, text: string): void {
    if (text.length > walletLimits.googleInsertCharsMax) return;
    const others = (this.inserts.get(passId) ?? []).filter((each) => each !== text);
    const value = [...others.slice(1 - INSERTS_A_PASS_MAX), text];
    remember(this.inserts, { key: passId, value, max: walletLimits.googleInsertsRememberedMax });
  }

  private insertClass({ content, caller }: GoogleDelivery): Promise<GoogleAnswer> {
    const body = { id: content.classId, ...callbackOptions(this.options.callbackUrl()) };
    return this.api.call(caller, { method: "POST", path: ["genericClass"], body });
  }

  private read(delivery: GoogleDelivery): Promise<GoogleAnswer> {
    return this.api.call(delivery.caller, { method: "GET", path: buildPath(delivery) });
  }

  private patch(delivery: GoogleDelivery, body: JsonObject): Promise<GoogleAnswer> {
    return this.api.call(delivery.caller, { method: "PATCH", path: buildPath(delivery), body });
  }

  private hasVersion({ passId, version }: Pass): boolean {
    return (this.brought.get(passId) ?? 0) >= version;
  }

  /** Records the delivered version. `notified`: the result of the update's message, if it has one. */
  private bringDone({ pass }: GoogleDelivery, notified?: Notified): Outcome {
    remember(this.brought, { key: pass.passId, value: pass.version, max: walletLimits.googleVersionsRememberedMax });
    return { kind: "delivered", result: { pass_id: pass.passId, ...(notified && { notified }) } };
  }

  private note(message: string, { pass }: GoogleDelivery, said: string): void {
    this.telemetry.log("warn", message, { tenant_id: pass.tenantId, pass_id: pass.passId, said: maskedText(said) });
  }
}

const INSERTS_A_PASS_MAX = 3;
const CREATION_UNDER_WAY = "the pass is not created yet";

function noClass({ content }: GoogleDelivery): Outcome {
  const of = content.kind.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return failed(`there is no ${of} class ${content.classId}: create it with POST /v1/google/classes`);
}

function buildPath({ content, pass }: GoogleDelivery): readonly string[] {
  return [`${content.kind}Object`, pass.serial];
}

/**
 * Returns the same id for every delivery of this update, so an existing message is not added again, and a different one
 * for any other update. The version would not do: versions repeat after a restore, and Google ignores a message with a
 * known id.
 */
function formatMessageId({ payload }: GoogleDelivery): string {
  return `waybill-${payload.jobId}`;
}

/** Returns how an earlier attempt at this update displayed its message; null if the object does not have it. */
function messageIn(held: JsonObject, delivery: GoogleDelivery): Notified | null {
  const messages = isJsonArray(held["messages"]) ? held["messages"].filter(isJsonObject) : [];
  const known = messages.find(({ id }) => id === formatMessageId(delivery));
  if (known === undefined) return null;
  return /^text_?and_?notify$/i.test(String(known["messageType"])) ? "alerted" : "silent";
}

/** Whether the resource exists, created by this call or before. */
function isThere(answer: GoogleAnswer): boolean {
  return answer.kind === "done" || (answer.kind === "refused" && answer.cause === "exists");
}

/** Whether Google would refuse the same call again. */
function isDecided(answer: Extract<Refused, { kind: "refused" }>): boolean {
  return answer.cause !== "busy" && answer.cause !== "unanswered" && answer.cause !== "away";
}

/** Converts a failed call that needs no special treatment to an outcome. */
function toOutcome(answer: GoogleAnswer): Outcome {
  if (answer.kind === "done") return { kind: "retry", why: "Google's wallet gave an unexpected answer" };
  if (answer.kind === "unasked") {
    return {
      kind: "retry",
      why: "Google's wallet takes no more calls at the moment",
      ...after(answer),
      isUncounted: true,
    };
  }
  const said = answer.said === "" ? "" : `: ${answer.said}`;
  switch (answer.cause) {
    case "invalid":
      return failed(`Google's wallet refused the pass${said}`);
    case "credentials":
      return failed(`Google did not accept the service account${said}`);
    case "forbidden":
      return failed(`the service account may not act for the issuer${said}`);
    case "missing":
    case "exists":
      return failed(`Google's wallet refused the call${said}`);
    case "quota":
    case "busy":
      return { kind: "retry", why: `Google's wallet did not take the pass yet${said}`, ...after(answer) };
    case "unanswered":
      return { kind: "retry", why: `Google's wallet did not answer${said}`, ...after(answer), isSilence: true };
    case "away":
      return { kind: "away", why: `Google's wallet is out of order or could not be reached${said}` };
  }
}

function after({ afterMs }: { readonly afterMs: number | null }): { afterMs?: number } {
  return afterMs === null ? {} : { afterMs };
}

function failed(error: string): Outcome {
  return { kind: "failed", error };
}

function retry(why: string): Outcome {
  return { kind: "retry", why };
}
