import type { Clock } from "../../../domain/clock.ts";
import { isJsonArray, isJsonObject, type Json, type JsonObject } from "../../../domain/texts/json.ts";

/** A response of the wallet's REST API. */
export interface Reply {
  readonly status: number;
  readonly body: JsonObject;
  readonly headers?: Readonly<Record<string, string>>;
}

interface Resource {
  data: JsonObject;
  chars: number;
  /** Times at which its messages alerted the holder (Unix ms). */
  alertsMs: readonly number[];
}

/** Members required to insert each kind, beside its id. */
const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  genericClass: [],
  eventTicketClass: ["issuerName", "eventName", "reviewStatus"],
  loyaltyClass: ["issuerName", "programName", "programLogo", "reviewStatus"],
  offerClass: ["issuerName", "title", "provider", "redemptionChannel", "reviewStatus"],
  giftCardClass: ["issuerName", "reviewStatus"],
  transitClass: ["issuerName", "transitType", "logo", "reviewStatus"],
  flightClass: [
    "issuerName",
    "origin",
    "destination",
    "flightHeader",
    "localScheduledDepartureDateTime",
    "reviewStatus",
  ],
  genericObject: ["classId", "cardTitle", "header"],
  eventTicketObject: ["classId", "state"],
  loyaltyObject: ["classId", "state"],
  offerObject: ["classId", "state"],
  giftCardObject: ["classId", "state", "cardNumber"],
  transitObject: ["classId", "state", "tripType"],
  flightObject: ["classId", "state", "passengerName", "reservationInfo"],
};
const ID = /^\d{1,20}\.[A-Za-z0-9._-]{1,200}$/;
const STATES = ["active", "completed", "expired", "inactive"];
const MESSAGE_TYPES = ["TEXT", "TEXT_AND_NOTIFY", "EXPIRATION_NOTIFICATION"];
const ALERTS_A_DAY = 3;
const DAY_MS = 24 * 60 * 60 * 1000;
/** Characters of all resources as JSON; the oldest is dropped first. */
const CHARS_MAX = 64 * 1024 * 1024;
const RESOURCES_MAX = 100_000;

/**
 * Classes and objects under the rules of Google's wallet: ids are taken once, objects need their class, a patch
 * replaces members (`null` removes one, a list is replaced whole), every change to a submitted class submits it again,
 * three messages a day alert.
 *
 * Invariant:
 * R1. The resources are bounded in number and size.
 */
export class GoogleResources {
  private readonly held = new Map<string, Resource>();
  private chars = 0;

  constructor(private readonly clock: Clock) {}

  isKind(kind: string): boolean {
    return Object.hasOwn(REQUIRED, kind);
  }

  insert(kind: string, data: JsonObject): Reply {
    const id = data["id"];
    if (typeof id !== "string" || !ID.test(id)) return invalid("Invalid resource ID");
    const missing = REQUIRED[kind]?.find((name) => data[name] === undefined);
    if (missing !== undefined) return invalid(`${missing} is required`);
    const unsound = unsoundMember(kind, data);
    if (unsound !== null) return invalid(`Invalid value at ${unsound}`);
    if (kind.endsWith("Object")) {
      const refusal = this.classRefusal(kind, data);
      if (refusal !== null) return refusal;
    }
    if (this.held.has(`${kind}/${id}`)) return failure(409, "existingResource", `${id} already exists`);
    return this.keep(kind, id, { ...data, ...(kind.endsWith("Object") ? { hasUsers: false } : {}) });
  }

  get(kind: string, id: string): Reply {
    const resource = this.held.get(`${kind}/${id}`);
    if (resource === undefined) return notFound(id);
    const { status, body } = shown(kind, resource.data);
    const classReference = kind.endsWith("Object") ? this.data(toClassKind(kind), String(body["classId"])) : null;
    return { status, body: classReference === null ? body : { ...body, classReference } };
  }

  patch(kind: string, id: string, change: JsonObject): Reply {
    const resource = this.held.get(`${kind}/${id}`);
    if (resource === undefined) return notFound(id);
    const { data } = resource;
    for (const fixed of ["id", "classId"]) {
      if (change[fixed] !== undefined && change[fixed] !== data[fixed]) return invalid(`${fixed} cannot be changed`);
    }
    if (isReviewed(kind) && data["reviewStatus"] !== "DRAFT" && change["reviewStatus"] !== "UNDER_REVIEW") {
      return invalid("Review status must be set to UNDER_REVIEW");
    }
    const { hasUsers } = data;
    const merged = { ...data, ...change, ...(hasUsers === undefined ? {} : { hasUsers }) };
    const next = Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== null));
    const missing = REQUIRED[kind]?.find((name) => next[name] === undefined);
    if (missing !== undefined) return invalid(`${missing} is required`);
    const unsound = unsoundMember(kind, next);
    return unsound === null ? this.keep(kind, id, next) : invalid(`Invalid value at ${unsound}`);
  }

  addMessage(kind: string, id: string, message: Json | undefined): Reply {
    const resource = this.held.get(`${kind}/${id}`);
    if (resource === undefined) return notFound(id);
    if (!isJsonObject(message)) return invalid("message is required");
    const { messageType, header, body } = message;
    if (typeof messageType !== "string" || !MESSAGE_TYPES.includes(messageType) || !header || !body) {
      return invalid("Invalid message");
    }
    const nowMs = this.clock.nowMs();
    const alertsMs = resource.alertsMs.filter((atMs) => atMs > nowMs - DAY_MS);
    const alerts = messageType === "TEXT_AND_NOTIFY";
    if (alerts && alertsMs.length >= ALERTS_A_DAY) {
      return failure(429, "quotaExceeded", "Quota of notifications exceeded");
    }
    const messages = isJsonArray(resource.data["messages"]) ? resource.data["messages"] : [];
    const reply = this.keep(kind, id, { ...resource.data, messages: [...messages, message] });
    const kept = this.held.get(`${kind}/${id}`);
    if (kept !== undefined) kept.alertsMs = alerts ? [...alertsMs, nowMs] : alertsMs;
    return { status: 200, body: { resource: reply.body } };
  }

  /** Returns the stored resource, for tests. */
  data(kind: string, id: string): JsonObject | null {
    return this.held.get(`${kind}/${id}`)?.data ?? null;
  }

  /** Sets members that only the platform can set. */
  set(kind: string, id: string, members: JsonObject): void {
    const data = this.data(kind, id);
    if (data !== null) this.keep(kind, id, { ...data, ...members });
  }

  /** Removes a resource. Google offers no such call, but objects have been seen to disappear. */
  remove(kind: string, id: string): void {
    this.drop(`${kind}/${id}`);
  }

  private classRefusal(kind: string, data: JsonObject): Reply | null {
    const classId = String(data["classId"]);
    const found = this.held.get(`${toClassKind(kind)}/${classId}`);
    if (found === undefined) return failure(404, "classNotFound", `Class ${classId} not found`);
    return found.data["reviewStatus"] === "DRAFT" ? invalid("The class is a draft") : null;
  }

  private keep(kind: string, id: string, data: JsonObject): Reply {
    const key = `${kind}/${id}`;
    const alertsMs = this.held.get(key)?.alertsMs ?? [];
    this.drop(key);
    const { length } = JSON.stringify(data);
    this.held.set(key, { data, chars: length, alertsMs });
    this.chars += length;
    for (const oldest of this.held.keys()) {
      if (this.chars <= CHARS_MAX && this.held.size <= RESOURCES_MAX) break;
      if (oldest !== key) this.drop(oldest);
    }
    return shown(kind, data);
  }

  private drop(key: string): void {
    this.chars -= this.held.get(key)?.chars ?? 0;
    this.held.delete(key);
  }
}

function toClassKind(objectKind: string): string {
  return `${objectKind.slice(0, -"Object".length)}Class`;
}

/** Whether Google reviews classes of this kind, as of all kinds but one. */
function isReviewed(kind: string): boolean {
  return kind.endsWith("Class") && kind !== "genericClass";
}

/** Finds the first member with a value that the kind does not accept, or null. */
function unsoundMember(kind: string, data: JsonObject): string | null {
  const { state, reviewStatus, venue } = data;
  if (state !== undefined && (typeof state !== "string" || !STATES.includes(state.toLowerCase()))) return "state";
  if (kind === "genericClass" && reviewStatus !== undefined) return "reviewStatus";
  if (isReviewed(kind) && reviewStatus !== "DRAFT" && reviewStatus !== "UNDER_REVIEW") return "reviewStatus";
  if (isJsonObject(venue) && !(isJsonObject(venue["name"]) && isJsonObject(venue["address"]))) return "venue";
  return null;
}

/** Converts a resource to the form that Google returns: an object's state has its former name. */
function shown(kind: string, data: JsonObject): Reply {
  const { state } = data;
  const former = kind.endsWith("Object") && typeof state === "string" ? { state: state.toLowerCase() } : {};
  return { status: 200, body: { kind: `walletobjects#${kind}`, ...data, ...former } };
}

function notFound(id: string): Reply {
  return failure(404, "resourceNotFound", `${id} not found`);
}

function invalid(message: string): Reply {
  return failure(400, "invalidResource", message);
}

/** Builds an error response in the wallet's format. */
export function failure(code: number, reason: string, message: string): Reply {
  const status = STATUS_NAMES[code] ?? "UNKNOWN";
  return {
    status: code,
    body: { error: { code, message, status, errors: [{ domain: "walletobjects", reason, message }] } },
  };
}

/** Builds the response to one of two concurrent calls on one object. */
export function aborted(): Reply {
  const message = "The operation was aborted, typically due to a concurrency issue";
  const errors = [{ domain: "global", reason: "aborted", message }];
  return { status: 409, body: { error: { code: 409, message, status: "ABORTED", errors } } };
}

const STATUS_NAMES: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  409: "ALREADY_EXISTS",
  413: "INVALID_ARGUMENT",
  429: "RESOURCE_EXHAUSTED",
  500: "INTERNAL",
};
