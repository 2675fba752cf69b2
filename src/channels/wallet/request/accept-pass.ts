import { TEMPLATE_SLUG } from "../../../domain/email.ts";
import { ApiError } from "../../../domain/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../domain/json.ts";
import {
  type GoogleKind,
  PASS_TYPES,
  type PassContent,
  type PassType,
  type WalletTemplate,
} from "../../../domain/wallet.ts";
import { type AppleMembers, appleMembers, readApplePass } from "./apple-pass.ts";
import { fault, requireKnownMembers } from "./fault.ts";
import { type GoogleMembers, googleMembers, readGooglePass } from "./google-pass.ts";
import { mergedApple, mergedGoogle } from "./merged.ts";

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
 * everything that the request omits: fields are merged by key, text modules by id, and every other member of the
 * request replaces the template's. Throws an `ApiError` 400 that names the field.
 */
export function acceptPass(body: unknown, context: PassContext): AcceptedPass {
  if (!isJsonObject(body)) throw new ApiError(400, "the body must be a JSON object");
  requireKnownMembers(body, ["pass_type", "pass_data", "template_id"]);
  const template = readTemplate(body["template_id"], context.templates);
  const type = readType(body["pass_type"], template);
  const given = body["pass_data"] ?? (template === null ? null : {});
  if (given === null) throw fault("pass_data", "is required");
  if (!isJsonObject(given)) throw fault("pass_data", "must be an object");
  const slug = template === null ? null : String(body["template_id"]);
  if (type === "apple") return { ...readApplePass(appleOver(template, given)), template: slug };
  return { ...readGooglePass(googleOver(template, given), context), images: new Map(), template: slug };
}

/**
 * Checks a template from an operator as far as possible, with made-up values for the parts that a request must add.
 * Throws an `ApiError` 400 that names the field.
 */
export function checkTemplate({ passType, style, passData }: WalletTemplate): void {
  if (passType === "apple") {
    const members = new Map<string, Json>([
      ...Object.entries({ serialNumber: "1", organizationName: "-", description: "-", style }),
      ...appleMembers(passData),
    ]);
    readApplePass(members);
    return;
  }
  if (style !== null) throw fault("style", "is for passes of type apple only");
  const members = new Map<string, Json>([
    ...Object.entries({ classId: "1.class", objectId: "1.object", objectData: {} }),
    ...[...googleMembers(passData)].filter(([, value]) => value !== null),
  ]);
  readGooglePass(members, { issuerId: null, kind: "generic", title: "-" });
}

function readTemplate(slug: Json | undefined, templates: ReadonlyMap<string, WalletTemplate>): WalletTemplate | null {
  if (slug === undefined || slug === null || slug === "") return null;
  if (typeof slug !== "string") throw fault("template_id", "must be a string");
  const template = TEMPLATE_SLUG.test(slug) ? templates.get(slug) : undefined;
  if (template !== undefined) return template;
  throw new ApiError(400, `there is no wallet template with the template_id "${slug.slice(0, QUOTED_CHARS_MAX)}"`);
}

function readType(given: Json | undefined, template: WalletTemplate | null): PassType {
  if ((given ?? "") === "" && template !== null) return template.passType;
  const type = PASS_TYPES.find((one) => one === given);
  if (type === undefined) throw fault("pass_type", `must be ${PASS_TYPES.join(" or ")}`);
  if (template !== null && template.passType !== type) {
    throw fault("pass_type", `must be ${template.passType}, as in the template, or be left out`);
  }
  return type;
}

function appleOver(template: WalletTemplate | null, passData: JsonObject): AppleMembers {
  const given = appleMembers(passData);
  if (template === null) return given;
  const style: readonly (readonly [string, Json])[] = template.style === null ? [] : [["style", template.style]];
  const under = new Map([...appleMembers(template.passData), ...style]);
  return mergedApple(under, given);
}

function googleOver(template: WalletTemplate | null, passData: JsonObject): GoogleMembers {
  const given = googleMembers(passData);
  if (template === null) return given;
  const under = googleMembers(template.passData);
  const result = new Map([...under, ...given]);
  const [underObject, overObject] = [under.get("objectData"), given.get("objectData")];
  if (isJsonObject(underObject) && isJsonObject(overObject)) {
    result.set("objectData", mergedGoogle(underObject, overObject));
  }
  return result;
}
