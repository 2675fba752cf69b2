import { GOOGLE_KINDS, type GoogleKind } from "../../../domain/channels/wallet.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../domain/texts/json.ts";
import { presentMembers } from "../../../http/sending/acceptance.ts";
import type { GoogleClass } from "../google-classes.ts";
import { walletLimits } from "../limits.ts";
import { CHANGED_MEMBERS, CLASS_MEMBERS, REQUIRED_OF_CLASS } from "./google-class-members.ts";
import type { Kinds } from "./kinds.ts";
import {
  type Checked,
  checkJson,
  checkMembers,
  choiceReader,
  Fault,
  fault,
  GOOGLE_ACCENT,
  readBody,
  readFilledText,
} from "./readers.ts";

export const CLASS_ID = /^\d{1,20}\.[A-Za-z0-9._-]{1,200}$/;
/** Parses the body of `POST /v1/google/classes` into a class. */
export function acceptGoogleClass(whole: unknown): Checked<GoogleClass> {
  const body = readClass(whole);
  if (body instanceof Fault) return body;
  const { kind } = body;
  // Drops null members, because a new class has no members to remove.
  const { reviewStatus, ...given } = presentMembers(body.given);
  const classId = readFilledText(given["id"] ?? "", "class_data.id");
  if (classId instanceof Fault) return classId;
  if (!isGoogleClassId(classId)) {
    return fault("class_data.id", "must be <issuer_id>. and letters, digits, dots, hyphens and underscores");
  }
  const data = readMembers(given, CLASS_MEMBERS);
  if (data instanceof Fault) return data;
  const missing = REQUIRED_OF_CLASS[kind].find((name) => data[name] === undefined);
  if (missing !== undefined) return fault(`class_data.${missing}`, "is required");
  const review = checkReview(kind, reviewStatus, "new");
  if (review instanceof Fault) return review;
  const design = kind === "eventTicket" ? { hexBackgroundColor: data["hexBackgroundColor"] ?? GOOGLE_ACCENT } : {};
  return { kind, classId, data: { ...data, ...design, id: classId, ...review } };
}

/** Parses the body of `PUT /v1/google/classes/{class_id}` into a change. */
export function acceptGoogleClassChange(whole: unknown, classId: string): Checked<GoogleClass> {
  const body = readClass(whole);
  if (body instanceof Fault) return body;
  const { kind, given } = body;
  const { id, reviewStatus, ...members } = given;
  if (id !== undefined && id !== null && id !== classId)
    return fault("class_data.id", "must be the class_id, or be left out");
  const data = readMembers(members, CHANGED_MEMBERS);
  if (data instanceof Fault) return data;
  const review = checkReview(kind, reviewStatus, "changed");
  return review instanceof Fault ? review : { kind, classId, data: { ...data, ...review } };
}

/** `class_type` from a query. */
export function readClassType(text: string | undefined): Checked<GoogleKind> {
  if (text === undefined || text === "") return fault("class_type", "is required");
  return choiceReader(GOOGLE_KINDS)(text, "class_type");
}

/** Whether Google accepts the id for a class. */
export function isGoogleClassId(text: string): boolean {
  return CLASS_ID.test(text);
}

function readClass(whole: unknown): Checked<{ readonly kind: GoogleKind; readonly given: JsonObject }> {
  const body = readBody(whole, ["class_type", "class_data"]);
  if (body instanceof Fault) return body;
  const { class_type, class_data } = body;
  if (class_type === undefined || class_type === null) return fault("class_type", "is required");
  const kind = choiceReader(GOOGLE_KINDS)(class_type, "class_type");
  if (kind instanceof Fault) return kind;
  if (class_data === undefined || class_data === null) return fault("class_data", "is required");
  if (!isJsonObject(class_data)) return fault("class_data", "must be an object");
  const unstorable = checkJson(class_data, "class_data");
  if (unstorable !== null) return unstorable;
  if (JSON.stringify(class_data).length > walletLimits.passContentCharsMax) {
    return fault("class_data", `must not be larger than ${walletLimits.passContentCharsMax} characters`);
  }
  return { kind, given: class_data };
}

/** Reads the members; in a change, null removes a member. */
function readMembers(given: JsonObject, kinds: Kinds): Checked<JsonObject> {
  return checkMembers(Object.entries(given), (value, name) => {
    const read = Object.hasOwn(kinds, name) ? kinds[name]?.read : undefined;
    return read === undefined || value === null ? value : read(value, `class_data.${name}`);
  });
}

/**
 * Returns the review status to write with a class. Clients may write only DRAFT and UNDER_REVIEW, and every change to
 * an approved class submits it again; so a client can send back the unchanged status that it read from Google.
 */
function checkReview(kind: GoogleKind, given: Json | undefined, age: "new" | "changed"): Checked<JsonObject> {
  if (kind === "generic") {
    if (given === undefined || given === null) return {};
    return fault("class_data.reviewStatus", "must be left out: generic classes are not reviewed");
  }
  if (given === undefined || given === null) return { reviewStatus: "UNDER_REVIEW" };
  const status = typeof given === "string" ? REVIEW_STATUSES.get(given.replaceAll("_", "").toLowerCase()) : undefined;
  if (status === "DRAFT" || status === "UNDER_REVIEW") return { reviewStatus: status };
  if (status !== undefined && age === "changed") return { reviewStatus: "UNDER_REVIEW" };
  return fault("class_data.reviewStatus", "must be DRAFT or UNDER_REVIEW");
}

/** Names without case and underscores: Google also returns former names such as `underReview`. */
const REVIEW_STATUSES = new Map([
  ["draft", "DRAFT"],
  ["underreview", "UNDER_REVIEW"],
  ["approved", "APPROVED"],
  ["rejected", "REJECTED"],
]);
