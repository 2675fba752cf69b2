import { TEMPLATE_SLUG } from "../../../domain/channels/email.ts";
import {
  type GoogleKind,
  PASS_STYLES,
  PASS_TYPES,
  type PassContent,
  type PassType,
  type WalletTemplate,
} from "../../../domain/channels/wallet.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../domain/texts/json.ts";
import { IMAGE_FILES } from "./apple-images.ts";
import {
  type AppleMembers,
  appleMembers,
  type ReadApplePass,
  readApplePass,
  withoutFormerFaults,
} from "./apple-pass.ts";
import { type GoogleMembers, googleMembers, readGooglePass } from "./google-pass.ts";
import { mergedApple, mergedGoogle } from "./merged.ts";
import { type Checked, Fault, fault, readBody } from "./readers.ts";
import { asSent } from "./sent-names.ts";

/** A parsed request for a pass. */
export interface AcceptedPass {
  readonly serial: string;
  readonly content: PassContent;
  /** Image bytes by SHA-256 in hex. */
  readonly images: ReadonlyMap<string, Uint8Array>;
  /** The slug of the template that the pass uses, or null. */
  readonly template: string | null;
}

export interface PassContext {
  readonly templates: ReadonlyMap<string, WalletTemplate>;
  /** The tenant's name. */
  readonly title: string;
  /** The Google issuer of the tenant's objects; null: there are no credentials. */
  readonly issuerId: string | null;
  /** The default for a Google pass without a class type. */
  readonly kind: GoogleKind;
}

const QUOTED_CHARS_MAX = 100;

/**
 * Parses the body of `POST /v1/send/wallet` or `/v1/passes/create` into a pass. A template supplies type, style and
 * everything that the request omits or gives as null: fields are merged by key, text modules by id, and every other
 * member of the request replaces the template's.
 */
export function acceptPass(given: unknown, context: PassContext): Checked<AcceptedPass> {
  return asSent(readPass(given, context), given);
}

function readPass(given: unknown, context: PassContext): Checked<AcceptedPass> {
  const body = readBody(given, ["pass_type", "pass_data", "template_id"]);
  if (body instanceof Fault) return body;
  const template = readTemplate(body["template_id"], context.templates);
  if (template instanceof Fault) return template;
  const type = readType(body["pass_type"], template);
  if (type instanceof Fault) return type;
  const passData = body["pass_data"] ?? (template === null ? null : {});
  if (passData === null) return fault("pass_data", "is required");
  if (!isJsonObject(passData)) return fault("pass_data", "must be an object");
  const pass = type === "apple" ? acceptApple(template, passData) : acceptGoogle(template, passData, context);
  if (pass instanceof Fault) return pass;
  return { ...pass, template: template === null ? null : String(body["template_id"]) };
}

/**
 * Checks a template from an operator as far as possible, with made-up values for the parts that a request must add.
 * Null if it is valid.
 */
export function checkTemplate({ passType, style, passData }: WalletTemplate): Fault | null {
  const pass = passType === "apple" ? trialApplePass(style, passData) : trialGooglePass(style, passData);
  return pass instanceof Fault ? pass : null;
}

/**
 * Applies a request's `pass_data` to a template: merges the members of both as in a send, with made-up values for
 * missing members only during the check.
 */
export function passOver(template: WalletTemplate, passData: JsonObject): Checked<JsonObject> {
  const members = template.passType === "apple" ? appleOver(template, passData) : googleOver(template, passData);
  if (members instanceof Fault) return members;
  const merged = Object.fromEntries(members);
  // Apple's style is a member of the pass; `checkTemplate` takes it apart from the others.
  const { style: _, ...rest } = merged;
  const style = template.passType === "apple" ? (PASS_STYLES.find((one) => one === merged["style"]) ?? null) : null;
  return checkTemplate({ ...template, style, passData: rest }) ?? merged;
}

function trialApplePass(style: WalletTemplate["style"], passData: JsonObject): Checked<unknown> {
  const given = appleMembers(passData, "absent");
  if (given instanceof Fault) return given;
  const madeUp = { serialNumber: "1", organizationName: "-", description: "-", style };
  return readApplePass(new Map<string, Json>([...Object.entries(madeUp), ...given]));
}

function trialGooglePass(style: WalletTemplate["style"], passData: JsonObject): Checked<unknown> {
  if (style !== null) return fault("style", "is for passes of type apple only");
  const given = googleMembers(passData);
  if (given instanceof Fault) return given;
  const madeUp = { classId: "1.class", objectId: "1.object", objectData: {} };
  const members = new Map<string, Json>([...Object.entries(madeUp), ...given]);
  return readGooglePass(members, { issuerId: null, kind: "generic", title: "-", isPart: true });
}

function readTemplate(
  slug: Json | undefined,
  templates: ReadonlyMap<string, WalletTemplate>,
): Checked<WalletTemplate | null> {
  if (slug === undefined || slug === null || slug === "") return null;
  if (typeof slug !== "string") return fault("template_id", "must be a string");
  const template = TEMPLATE_SLUG.test(slug) ? templates.get(slug) : undefined;
  if (template !== undefined) return template;
  return new Fault(`there is no wallet template with the template_id "${slug.slice(0, QUOTED_CHARS_MAX)}"`);
}

function readType(given: Json | undefined, template: WalletTemplate | null): Checked<PassType> {
  if ((given ?? "") === "" && template !== null) return template.passType;
  const type = PASS_TYPES.find((one) => one === given);
  if (type === undefined) return fault("pass_type", `must be ${PASS_TYPES.join(" or ")}`);
  if (template !== null && template.passType !== type) {
    return fault("pass_type", `must be ${template.passType}, as in the template, or be left out`);
  }
  return type;
}

function acceptApple(template: WalletTemplate | null, passData: JsonObject): Checked<ReadApplePass> {
  const members = appleOver(template, passData);
  return members instanceof Fault ? members : readApplePass(members);
}

/** Members whose empty string is ignored; that of a text removes the template's text. */
const NEVER_EMPTY: ReadonlySet<string> = new Set(["style", "transitType", ...IMAGE_FILES.keys()]);

/** Templates from before both members were compared may have two that differ; the list was what counted. */
function withoutOlderBarcode(passData: JsonObject): JsonObject {
  if (passData["barcode"] === undefined || (passData["barcodes"] ?? null) === null) return passData;
  const { barcode: _, ...others } = passData;
  return others;
}

function appleOver(template: WalletTemplate | null, passData: JsonObject): Checked<AppleMembers> {
  const given = appleMembers(passData, "absent");
  if (given instanceof Fault || template === null) return given;
  const under = appleMembers(withoutOlderBarcode(template.passData), "absent");
  if (under instanceof Fault) return under;
  if (template.style !== null) under.set("style", template.style);
  return mergedApple(
    withoutFormerFaults(under),
    new Map([...given].filter(([name, value]) => value !== "" || !NEVER_EMPTY.has(name))),
  );
}

function acceptGoogle(
  template: WalletTemplate | null,
  passData: JsonObject,
  context: PassContext,
): Checked<Omit<AcceptedPass, "template">> {
  const members = googleOver(template, passData);
  const pass = members instanceof Fault ? members : readGooglePass(members, context);
  return pass instanceof Fault ? pass : { ...pass, images: new Map() };
}

function googleOver(template: WalletTemplate | null, passData: JsonObject): Checked<GoogleMembers> {
  const given = googleMembers(passData);
  if (given instanceof Fault || template === null) return given;
  const under = googleMembers(template.passData);
  if (under instanceof Fault) return under;
  // None of them can be empty: an empty string counts as absent, too.
  const result = new Map([...under, ...[...given].filter(([, value]) => value !== "")]);
  const [underObject, overObject] = [under.get("objectData"), given.get("objectData")];
  if (isJsonObject(underObject) && isJsonObject(overObject)) {
    result.set("objectData", mergedGoogle(underObject, overObject));
  }
  return result;
}
