import { isJsonArray, isJsonObject, type Json, type JsonObject } from "../../../domain/texts/json.ts";
import { shortened } from "../callbacks/shortened.ts";
import { chatLimits } from "../limits.ts";
import { isPlainLine } from "./value-rules.ts";

/** One of the provider's templates in one language. */
export interface TemplateVersion {
  readonly language: string;
  /** In the provider's words, a growing vocabulary: `APPROVED`, `PAUSED`, … */
  readonly status: string;
  readonly category: string | null;
  /** `POSITIONAL` or `NAMED`; null: the provider does not say. */
  readonly parameter_format: string | null;
  /** The provider's name of the header's format: `TEXT`, `IMAGE`, …; null if the template has no header. */
  readonly header_format: string | null;
  /** The placeholders of a header of text. */
  readonly header_params: readonly string[];
  /** The placeholders of the body, each once; null if the body's form is unknown. */
  readonly body_params: readonly string[] | null;
  /** Positions of the buttons that a message must fill. */
  readonly filled_buttons: readonly number[];
}

/** The templates of an account, by name. */
export type TemplatesByName = ReadonlyMap<string, readonly TemplateVersion[]>;

/** The list of an account's templates as it was read. */
export interface TemplateList {
  /** The provider's id of the account. */
  readonly accountId: string;
  /** In unix milliseconds. */
  readonly readAtMs: number;
  /** Whether the list has all templates of the account. */
  readonly isComplete: boolean;
  readonly templates: TemplatesByName;
}

const WORD_CHARS_MAX = 64;
const PLACEHOLDER = /\{\{\s*(\w{1,100})\s*\}\}/g;
const PARAMS_MAX = chatLimits.chatParamsMax;

/** Reads a listed template (Graph API, "WhatsApp Business Account > Message Templates"); null if it has no name. */
export function templateIn(listed: Json): readonly [name: string, version: TemplateVersion] | null {
  if (!isJsonObject(listed)) return null;
  const { name, language, status, category, parameter_format: format } = listed;
  const isNamed = typeof name === "string" && name.length <= chatLimits.chatTemplateNameCharsMax && isPlainLine(name);
  const [spoken, said] = [wordIn(language), wordIn(status)];
  if (!isNamed || name === "" || spoken === null || said === null) return null;
  const components = (isJsonArray(listed["components"]) ? listed["components"] : []).filter(isJsonObject);
  const [header, body, buttons] = ["HEADER", "BODY", "BUTTONS"].map((type) =>
    components.find((one) => String(one["type"]).toUpperCase() === type),
  );
  return [
    name,
    {
      language: spoken,
      status: said.toUpperCase(),
      category: wordIn(category),
      parameter_format: wordIn(format),
      header_format: header === undefined ? null : (wordIn(header["format"]) ?? "TEXT").toUpperCase(),
      header_params: placeholdersIn(header?.["text"]) ?? [],
      body_params: placeholdersIn(body?.["text"]),
      filled_buttons: filledButtons(buttons),
    },
  ];
}

function wordIn(value: Json | undefined): string | null {
  const word = shortened(value, WORD_CHARS_MAX);
  return word !== null && word !== "" && isPlainLine(word) ? word : null;
}

function placeholdersIn(text: Json | undefined): readonly string[] | null {
  if (typeof text !== "string") return null;
  const names = new Set(Array.from(text.matchAll(PLACEHOLDER), ([, name = ""]) => name));
  return names.size <= PARAMS_MAX ? [...names] : null;
}

/** Returns the positions of buttons that are known to need a value; a button of unknown type needs none. */
function filledButtons(component: JsonObject | undefined): readonly number[] {
  const { buttons } = component ?? {};
  if (!isJsonArray(buttons)) return [];
  return [...buttons.entries()].flatMap(([at, button]) => {
    if (!isJsonObject(button)) return [];
    const type = String(button["type"]).toUpperCase();
    const isFilled = type === "URL" && (placeholdersIn(button["url"]) ?? []).length > 0;
    return isFilled || type === "COPY_CODE" ? [at] : [];
  });
}

/** Adds templates to those of other pages; the last one in a language wins. */
export function withTemplates(known: Map<string, readonly TemplateVersion[]>, listed: readonly Json[]): void {
  for (const one of listed) {
    const read = templateIn(one);
    if (read === null) continue;
    const [name, version] = read;
    const others = (known.get(name) ?? []).filter(({ language }) => language !== version.language);
    known.set(name, [...others, version]);
  }
}

/** Converts the templates to the registry's form. */
export function storedTemplates(templates: TemplatesByName): JsonObject {
  return Object.fromEntries(
    Array.from(templates, ([name, versions]) => [name, versions.map((version): JsonObject => ({ ...version }))]),
  );
}

/** Parses the output of `storedTemplates`. */
export function parseTemplates(stored: JsonObject): TemplatesByName {
  return new Map(Object.entries(stored).map(([name, versions]) => [name, versions as unknown as TemplateVersion[]]));
}
