import {
  type GoogleKind,
  NOTIFICATION_KINDS,
  type NotificationKind,
  type PassContent,
} from "../../../domain/channels/wallet.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../domain/texts/json.ts";
import type { Pass } from "../passes.ts";
import { readImages } from "./apple-images.ts";
import { appleMembers, readApplePass, toAppleMembers } from "./apple-pass.ts";
import { readGooglePass } from "./google-pass.ts";
import { mergedApple, mergedGoogle } from "./merged.ts";
import { type Checked, choiceReader, Fault, fault, readBody, readText } from "./readers.ts";
import { asSent } from "./sent-names.ts";

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

/** Parses the body of `PUT /v1/passes/{pass_id}`. */
export function acceptPassUpdate(whole: unknown): Checked<AcceptedUpdate> {
  return asSent(readUpdate(whole), whole);
}

function readUpdate(whole: unknown): Checked<AcceptedUpdate> {
  const body = readBody(whole, ["pass_data", ...NOTES]);
  if (body instanceof Fault) return body;
  const given = body["pass_data"] ?? null;
  if (given === null) return fault("pass_data", "is required");
  if (!isJsonObject(given)) return fault("pass_data", "must be an object");
  const message = readNote(body, given, ["notify_message", "notifyMessage"]);
  if (message instanceof Fault) return message;
  const kind = readNote(body, given, ["notification_kind", "notificationKind"]);
  if (kind instanceof Fault) return kind;
  const others = Object.entries(given).filter(([name]) => !NOTES.includes(name));
  const notifyMessage = message === null || message === "" ? null : readMessage(message);
  if (notifyMessage instanceof Fault) return notifyMessage;
  const notificationKind = kind === null ? null : choiceReader(NOTIFICATION_KINDS)(kind, "notification_kind");
  if (notificationKind instanceof Fault) return notificationKind;
  return { passData: Object.fromEntries(others), notifyMessage, notificationKind };
}

/**
 * A member that stands beside `pass_data` or inside it: the specification shows the latter for Google. Null: it is nowhere. In two
 * places it is a fault, because one of them would be lost silently.
 */
function readNote(body: JsonObject, passData: JsonObject, spellings: readonly [string, string]): Checked<Json> {
  const said = [body, passData].flatMap((members) => spellings.map((name) => members[name] ?? null));
  const [note = null, other] = said.filter((value) => value !== null);
  return other === undefined ? note : fault(spellings[0], "is there twice");
}

function readMessage(value: Json): Checked<string> {
  const message = readText(value, "notify_message");
  if (message instanceof Fault || message.length <= NOTE_CHARS_MAX) return message;
  return fault("notify_message", `must not be longer than ${NOTE_CHARS_MAX} characters`);
}

/** Bytes of the images that the update may need, by SHA-256. */
export function imagesOfUpdate(
  { passData }: AcceptedUpdate,
  { content }: Pass,
): Checked<ReadonlyMap<string, Uint8Array>> {
  if (content.type !== "apple") return new Map();
  const members = appleMembers(passData, "removed");
  const images = members instanceof Fault ? members : readImages(members, {});
  return images instanceof Fault ? images : images.bytes;
}

/**
 * The pass's content after the update: fields are merged by key (text modules by id), every other member is replaced,
 * null removes. Serials and ids stay. `title`: the tenant's name.
 */
export function updatedContent({ passData }: AcceptedUpdate, pass: Pass, title: string): Checked<PassContent> {
  const { content, serial } = pass;
  if (content.type === "apple") {
    const over = appleMembers(passData, "removed");
    if (over instanceof Fault) return over;
    if ((over.get("serialNumber") ?? serial) !== serial) return fault("pass_data.serial_number", "cannot be changed");
    over.delete("serialNumber");
    const read = readApplePass(mergedApple(toAppleMembers(content, serial), over), content.images);
    if (read instanceof Fault) return read;
    // A new form replaces one that was filled in.
    const { personalized } = content;
    const isDone = personalized !== undefined && read.content.personalization === undefined;
    return isDone ? { ...read.content, personalized } : read.content;
  }
  const { kind, classId } = content;
  const changes = objectChanges(passData, kind);
  if (changes instanceof Fault) return changes;
  const object = mergedGoogle(content.object, changes);
  for (const name of ["id", "classId"]) {
    if (object[name] !== content.object[name]) return fault(`pass_data.${name}`, "cannot be changed");
  }
  const members = new Map<string, Json>(Object.entries({ classId, objectId: serial, objectData: object }));
  const read = readGooglePass(members, { issuerId: null, kind, title });
  return read instanceof Fault ? read : read.content;
}

/** The changed members, which may be inside `object_data`, as on creation. */
function objectChanges(passData: JsonObject, kind: GoogleKind): Checked<JsonObject> {
  const { object_data, objectData, class_type, classType, ...direct } = passData;
  for (const type of [class_type, classType]) {
    if ((type ?? "") !== "" && type !== kind) return fault("pass_data.class_type", "cannot be changed");
  }
  if ((object_data ?? null) !== null && (objectData ?? null) !== null) {
    return fault("pass_data.objectData", "is there twice, in both spellings");
  }
  const nested = objectData ?? object_data ?? {};
  if (!isJsonObject(nested)) return fault("pass_data.object_data", "must be an object");
  const changes = new Map(Object.entries(nested));
  for (const [given, value] of Object.entries(direct)) {
    const name = IDS.get(given) ?? given;
    if (changes.has(name) && !Bun.deepEquals(changes.get(name), value)) {
      return fault(`pass_data.${given}`, "contradicts the object_data beside it");
    }
    changes.set(name, value);
  }
  return Object.fromEntries(changes);
}
