import type { JsonObject } from "../../../domain/texts/json.ts";
import type { ImageFiles } from "./apple-images.ts";
import { filled, kind, list, matching, record, text } from "./kinds.ts";
import { Fault, fault } from "./readers.ts";

/*
 * A pass that asks its holder to sign up for a programme (Apple, Wallet Developer Guide: Rewards Enrollment, and Wallet Passes:
 * Personalize).
 */

/** The names of the four fields that Wallet supports today. */
const PERSONALIZATION_FIELDS = ["Name", "PostalCode", "EmailAddress", "PhoneNumber"].map(
  (what) => `PKPassPersonalizationField${what}`,
);

const KNOWN = PERSONALIZATION_FIELDS.join(", ");
const fieldName = matching(
  /^PKPassPersonalizationField[A-Za-z]{1,100}$/,
  `must be a field of Apple's, such as ${KNOWN}`,
  {
    description: KNOWN,
  },
);
const fieldNames = list(fieldName, 20);

/** personalization.json. Of fields that Apple may add, only the form of the name is known here. */
export const PERSONALIZATION = record(
  {
    requiredPersonalizationFields: kind(
      (value, field) => {
        const names = fieldNames.read(value, field);
        if (names instanceof Fault || !Array.isArray(names)) return names;
        if (names.length === 0) return fault(field, "must not be empty");
        return new Set(names).size === names.length ? names : fault(field, "must have each field once");
      },
      { ...fieldNames.schema, minItems: 1, uniqueItems: true },
    ),
    description: filled,
    termsAndConditions: text,
  },
  ["requiredPersonalizationFields", "description"],
  {
    description:
      "Wallet asks the holder for these before it adds the pass, and the webhook event `pass.personalized` has what was entered. For a " +
      "storeCard with `nfc` and a `personalization_logo` of 2x or 3x.",
  },
);

/** The files that a pass has for the form alone, in whichever language. */
export const OF_FORM = /(?:^|\/)personalizationLogo(?:@[23]x)?\.png$/;

/** Returns why no phone would display the form, or null. */
export function formProblem(
  { style, pass }: { readonly style: string; readonly pass: JsonObject },
  images: ImageFiles,
): Fault | null {
  const field = "pass_data.personalization";
  if (style !== "storeCard") return fault(field, "is for the style storeCard only");
  if (pass["nfc"] === undefined) return fault(field, "needs nfc beside it");
  const hasLogo = ["personalizationLogo@2x.png", "personalizationLogo@3x.png"].some((file) => file in images);
  return hasLogo
    ? null
    : fault(field, "needs personalization_logo_2x_base64 or personalization_logo_3x_base64 beside it");
}
