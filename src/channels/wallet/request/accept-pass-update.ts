import { ApiError } from "../../../domain/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../domain/json.ts";
import {
  type GoogleKind,
  NOTIFICATION_KINDS,
  type NotificationKind,
  type PassContent,
} from "../../../domain/wallet.ts";
import type { Pass } from "../passes.ts";
import { readImages } from "./apple-images.ts";
import { appleMembers, appleMembersOf, readApplePass } from "./apple-pass.ts";
import { fault, requireKnownMembers } from "./fault.ts";
import { readGooglePass } from "./google-pass.ts";
import { mergedApple, mergedGoogle } from "./merged.ts";
import { oneOf, readText } from "./readers.ts";

/** A parsed request to change a pass, independent of the pass's content at that time. */
export interface AcceptedUpdate {
  readonly passData: JsonObject;
  /** Google: shown to the pass's holders. */
  readonly notifyMessage: string | null;
  readonly notificationKind: NotificationKind | null;
}

const NOTES = ["notify_message", "notifyMessage", "notification_kind", "notificationKind"];
const IDS = new Map([
  ["class_id", "classId"],
  ["classId", "classId"],
  ["object_id", "id"],
  ["objectId", "id"],
]);
export const NOTE_CHARS_MAX = 1_000;

/** Parses the body of `PUT /v1/passes/{pass_id}`. Throws an `ApiError` 400 that names the field. */
export function acceptPassUpdate(body: unknown): AcceptedUpdate {
  if (!isJsonObject(body)) throw new ApiError(400, "the body must be a JSON object");
  requireKnownMembers(body, ["pass_data", ...NOTES]);
  const given = body["pass_data"] ?? null;
  if (given === null) throw fault("pass_data", "is required");
  if (!isJsonObject(given)) throw fault("pass_data", "must be an object");
  // The notification members stand beside pass_data, or inside it: the specification shows the latter for Google.
  const note = (snake: string, camel: string) => body[snake] ?? body[camel] ?? given[snake] ?? given[camel] ?? null;
  const message = note("notify_message", "notifyMessage");
  const kind = note("notification_kind", "notificationKind");
  const others = Object.entries(given).filter(([name]) => !NOTES.includes(name));
  return {
    passData: Object.fromEntries(others),
    notifyMessage: message === null || message === "" ? null : readMessage(message),
    notificationKind: kind === null ? null : oneOf(NOTIFICATION_KINDS)(kind, "notification_kind"),
  };
}

function readMessage(value: Json): string {
  const message = readText(value, "notify_message");
  if (message.length <= NOTE_CHARS_MAX) return message;
  throw fault("notify_message", `must not be longer than ${NOTE_CHARS_MAX} characters`);
}

/** Bytes of the images that the update may need, by SHA-256. Throws an `ApiError` 400 that names the field. */
export function imagesOfUpdate({ passData }: AcceptedUpdate, { content }: Pass): ReadonlyMap<string, Uint8Array> {
  return content.type === "apple" ? readImages(appleMembers(passData), {}).bytes : new Map();
}

/**
 * The pass's content after the update: fields are merged by key (text modules by id), every other member is replaced,
 * null removes. Serials and ids stay. `title`: the tenant's name. Throws an `ApiError` 400 that names the field.
 */
export function updatedContent({ passData }: AcceptedUpdate, pass: Pass, title: string): PassContent {
  const { content, serial } = pass;
  if (content.type === "apple") {
    const over = appleMembers(passData);
    if ((over.get("serialNumber") ?? serial) !== serial) throw fault("pass_data.serial_number", "cannot be changed");
    over.delete("serialNumber");
    return readApplePass(mergedApple(appleMembersOf(content, serial), over), content.images).content;
  }
  const { kind, classId } = content;
  const object = mergedGoogle(content.object, objectChanges(passData, kind));
  for (const name of ["id", "classId"]) {
    if (object[name] !== content.object[name]) throw fault(`pass_data.${name}`, "cannot be changed");
  }
  const members = new Map<string, Json>(Object.entries({ classId, objectId: serial, objectData: object }));
  return readGooglePass(members, { issuerId: null, kind, title }).content;
}

/** The changed members, which may be inside `object_data`, as on creation. */
function objectChanges(passData: JsonObject, kind: GoogleKind): JsonObject {
  const { object_data, objectData, class_type, classType = class_type ?? kind, ...direct } = passData;
  if (classType !== kind) throw fault("pass_data.class_type", "cannot be changed");
  const nested = objectData ?? object_data ?? {};
  if (!isJsonObject(nested)) throw fault("pass_data.object_data", "must be an object");
  const members = Object.entries(direct).map(([name, value]) => [IDS.get(name) ?? name, value] as const);
  return { ...nested, ...Object.fromEntries(members) };
}
