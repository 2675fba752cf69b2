import { GOOGLE_KINDS, type GoogleContent, type GoogleKind } from "../../../domain/channels/wallet.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../domain/texts/json.ts";
import { findLack, OBJECT_ID, OBJECT_MEMBERS } from "./google-object-members.ts";
import {
  type Checked,
  checkJson,
  checkMembers,
  checkSize,
  choiceReader,
  Fault,
  fault,
  GOOGLE_ACCENT,
  MemberNames,
  readFilledText,
} from "./readers.ts";

/** `pass_data` of a Google pass by canonical name. */
export type GoogleMembers = ReadonlyMap<string, Json>;

export interface ReadGooglePass {
  readonly serial: string;
  readonly content: GoogleContent;
}

export interface GoogleContext {
  /** The issuer prefix of ids; null: unknown, so ids are not checked against it. */
  readonly issuerId: string | null;
  /** The default if `class_type` is absent. */
  readonly kind: GoogleKind;
  /** The tenant's name: the default title of a generic object, which Google refuses without one. */
  readonly title: string;
  /** A template: what its kind requires, a request may bring. */
  readonly isPart?: true;
}

const NAMES = new MemberNames(["classId", "classType", "objectId", "objectData"]);

/** The members of `pass_data`, in either spelling, under their canonical names, without those of null. */
export function googleMembers(passData: JsonObject): Checked<GoogleMembers> {
  return NAMES.read(passData, "pass_data", "absent");
}

/** Builds a pass from its members. */
export function readGooglePass(members: GoogleMembers, context: GoogleContext): Checked<ReadGooglePass> {
  const { issuerId, title, isPart } = context;
  const classId = readId(members.get("classId"), "pass_data.class_id", issuerId);
  if (classId instanceof Fault) return classId;
  const serial = readId(members.get("objectId"), "pass_data.object_id", issuerId);
  if (serial instanceof Fault) return serial;
  const kind = choiceReader(GOOGLE_KINDS)(unsetAs(members.get("classType"), context.kind), "pass_data.class_type");
  if (kind instanceof Fault) return kind;
  const given = unsetAs(members.get("objectData"), null);
  if (given === null) return fault("pass_data.object_data", "is required");
  if (!isJsonObject(given)) return fault("pass_data.object_data", "must be an object");
  const ids = { id: serial, classId };
  const others = wrongId(given, ids) ?? readObject(given, { kind, title });
  if (others instanceof Fault) return others;
  const lack = isPart ? null : findLack(kind, others, "pass_data.object_data");
  if (lack !== null) return lack;
  const object = { ...others, ...ids };
  return checkSize(object) ?? { serial, content: { type: "google", kind, classId, object } };
}

/** The ids stand beside the object, which must not contradict them in any spelling, since Google reads several. */
function wrongId(object: JsonObject, { id, classId }: { readonly id: string; readonly classId: string }): Fault | null {
  for (const [name, value] of Object.entries(object)) {
    const plain = name.replaceAll("_", "").toLowerCase();
    if (value === null || (plain !== "id" && plain !== "classid")) continue;
    const expected = plain === "id" ? id : classId;
    const isKnown = name === "id" || name === "classId";
    if (isKnown && unsetAs(value, expected) === expected) continue;
    const which = plain === "id" ? "the object_id" : "the class_id";
    return fault(`pass_data.object_data.${name}`, isKnown ? `must be ${which}, or be left out` : "must be left out");
  }
  return null;
}

/** The stored members of an object, without null ones. */
function readObject(given: JsonObject, { kind, title }: Pick<GoogleContext, "kind" | "title">): Checked<JsonObject> {
  const members = checkMembers(Object.entries(given), (value, name) => {
    if (value === null) return undefined;
    const field = `pass_data.object_data.${name}`;
    const read = Object.hasOwn(OBJECT_MEMBERS, name) ? OBJECT_MEMBERS[name]?.read : undefined;
    return checkJson(value, field) ?? (read === undefined ? value : read(value, field));
  });
  if (members instanceof Fault) return members;
  const generic = { cardTitle: inEnglish(title), header: inEnglish(title), hexBackgroundColor: GOOGLE_ACCENT };
  return { state: "ACTIVE", ...(kind === "generic" ? generic : {}), ...members };
}

function readId(value: Json | undefined, field: string, issuerId: string | null): Checked<string> {
  if (value === undefined || value === null || value === "") return fault(field, "is required");
  const id = readFilledText(value, field);
  if (id instanceof Fault) return id;
  const issuer = issuerId ?? "<issuer_id>";
  if (!OBJECT_ID.test(id)) return fault(field, `must be ${issuer}. and letters, digits, dots, hyphens and underscores`);
  if (issuerId !== null && !id.startsWith(`${issuerId}.`)) return fault(field, `must begin with ${issuerId}.`);
  return id;
}

function unsetAs(value: Json | undefined, otherwise: Json): Json {
  return value === undefined || value === null || value === "" ? otherwise : value;
}

function inEnglish(value: string): JsonObject {
  return { defaultValue: { language: "en", value } };
}
