import type { PassStrings } from "../../../domain/channels/wallet.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../domain/texts/json.ts";
import { walletLimits } from "../limits.ts";
import { IMAGE_FILES } from "./apple-images.ts";
import { type Checked, checkMembers, Fault, fault, MemberNames, type NullMeans, readText } from "./readers.ts";

/** Translations of a pass: for each language, its texts (`pass.strings`), and images that replace the common ones. */

const FIELD = "pass_data.localizations";
/** A folder's name: `de`, `pt-BR`, `zh-Hans`. */
export const LANGUAGE = /^[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8}){0,3}$/;
const NAMES = new MemberNames(["strings", ...IMAGE_FILES.keys()]);

/** `localizations` with the members of each language under their canonical names. */
export function namedLanguages(value: Json, nullMeans: NullMeans): Checked<Json> {
  if (value === null) return value;
  if (!isJsonObject(value)) return fault(FIELD, "must be an object with languages, such as de");
  const languages = Object.entries(value);
  if (languages.length > walletLimits.passLanguagesMax) {
    return fault(FIELD, `must not have more than ${walletLimits.passLanguagesMax} languages`);
  }
  return checkMembers(languages, (members, language) => {
    const field = `${FIELD}.${language.slice(0, 40)}`;
    if (!LANGUAGE.test(language)) return fault(field, "is not a language, such as de or pt-BR");
    if (members === null) return nullMeans === "absent" ? undefined : null;
    if (!isJsonObject(members)) return fault(field, "must be an object with strings and images");
    const named = NAMES.read(members, field, nullMeans);
    return named instanceof Fault ? named : Object.fromEntries(named);
  });
}

/** One laid over the other: each language's members replace that language's; null takes a language, or a member of it, off. */
export function mergedLanguages(under: Json | undefined, over: Json | undefined): Json | undefined {
  if (!isJsonObject(under) || !isJsonObject(over)) return over === undefined ? under : over;
  const merged = Object.entries(over).map(([language, members]): [string, Json] => {
    const former = under[language];
    return [language, isJsonObject(former) && isJsonObject(members) ? { ...former, ...members } : members];
  });
  return { ...under, ...Object.fromEntries(merged) };
}

/** The texts of each language that has some. */
export function readStrings(languages: Json | undefined): Checked<PassStrings> {
  const read: [string, JsonObject][] = [];
  for (const [language, members] of Object.entries(isJsonObject(languages) ? languages : {})) {
    const strings = isJsonObject(members) ? (members["strings"] ?? null) : null;
    const field = `${FIELD}.${language}.strings`;
    if (strings === null) continue;
    if (!isJsonObject(strings)) return fault(field, "must be an object with texts");
    const texts = checkMembers(Object.entries(strings), (text, key) => {
      const unfit = readText(key, `the name of a text in ${field}`);
      if (unfit instanceof Fault) return unfit;
      return text === null ? undefined : readText(text, `${field}.${key.slice(0, 40)}`);
    });
    if (texts instanceof Fault) return texts;
    if (Object.keys(texts).length > 0) read.push([language, texts]);
  }
  // Each was read as a text.
  return Object.fromEntries(read) as PassStrings;
}

/** The file `pass.strings` (Apple, Creating the source for a pass), in UTF-8. */
export function stringsFile(texts: Readonly<Record<string, string>>): string {
  return Object.entries(texts)
    .map(([key, text]) => `${quoted(key)} = ${quoted(text)};\n`)
    .join("");
}

const ESCAPES: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, "\\$&").replace(/[\n\r\t]/g, (one) => ESCAPES[one] ?? one)}"`;
}
