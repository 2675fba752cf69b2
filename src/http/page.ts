import { Type } from "@sinclair/typebox";
import Negotiator from "negotiator";
import type { AnswerHeaders, Exchange } from "./exchange.ts";
import type { FrontDoor } from "./front-door.ts";
import type { HeaderParameter } from "./parameters.ts";

/*
 * Pages for people who are neither tenants nor operators, who follow a link in a message or open an address by hand. They need
 * no script and load no other file, so they work in every browser that a mail program may open.
 */

/** The languages that pages are written in; the first is the default. */
const LANGUAGES = ["en", "es"] as const;
export type Language = (typeof LANGUAGES)[number];

/** Something in every language. */
export type InLanguages<T> = Readonly<Record<Language, T>>;

/** Text that is HTML already. Only `html` makes it. */
export class Markup {
  private constructor(readonly text: string) {}

  static of(parts: TemplateStringsArray, values: readonly (string | Markup)[]): Markup {
    const filled = values.map(
      (value, at) => `${value instanceof Markup ? value.text : escaped(value)}${parts[at + 1]}`,
    );
    return new Markup(`${parts[0]}${filled.join("")}`);
  }
}

/** Tags a template: values are escaped unless they are `Markup`. */
export function html(parts: TemplateStringsArray, ...values: readonly (string | Markup)[]): Markup {
  return Markup.of(parts, values);
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}

export interface PageContent {
  /** The page's title and its heading. */
  readonly title: string;
  /** The content after the heading. */
  readonly main: Markup;
}

/** Whether the caller would rather have a page than JSON: browsers say so, programs do not. */
export function wantsPage(request: Request): boolean {
  return negotiator(request, "accept").mediaType(["application/json", "text/html"]) === "text/html";
}

/** Returns the reader's preferred language among those that pages are written in. */
export function chooseLanguage(request: Request): Language {
  const known: string[] = [...LANGUAGES];
  const preferred = negotiator(request, "accept-language").language(known);
  return LANGUAGES.find((language) => language === preferred) ?? LANGUAGES[0];
}

export const LANGUAGE_HEADER: HeaderParameter = {
  name: "Accept-Language",
  description: "Pages are in English or Spanish; in English if neither is asked for.",
  schema: Type.String(),
  example: "es-MX, es;q=0.9, en;q=0.8",
};

/** Longer headers than any browser's count as absent. */
const HEADER_CHARS_MAX = 2_000;

function negotiator({ headers }: Request, name: string): Negotiator {
  const value = headers.get(name);
  return new Negotiator({ headers: value === null || value.length > HEADER_CHARS_MAX ? {} : { [name]: value } });
}

/** Answers with a page in the reader's language. `extra` headers are added to those of all pages. */
export function pageAnswer(
  door: FrontDoor,
  exchange: Exchange,
  answer: { readonly status: number; readonly content: InLanguages<PageContent>; readonly extra?: AnswerHeaders },
): Response {
  const { status, content, extra } = answer;
  const language = chooseLanguage(exchange.request);
  return exchange.body(status, renderDocument(language, content[language]), {
    ...extra,
    ...door.ofPages,
    ...PAGE_HEADERS,
    "content-language": language,
  });
}

function renderDocument(language: Language, { title, main }: PageContent): string {
  return html`<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
${STYLE_ELEMENT}
</head>
<body>
<main>
<h1>${title}</h1>
${main}
</main>
</body>
</html>
`.text;
}

/** Every pair of colours has a contrast of at least 4.5:1 in both modes, which a test measures in a browser. */
const STYLE_ELEMENT = html`<style>
:root{color-scheme:light dark;--paper:#f4f6f9;--card:#fff;--edge:#d8dde6;--ink:#1b2230;--soft:#4a5466;--act:#1a4fc4;--on-act:#fff}
@media (prefers-color-scheme:dark){:root{--paper:#10141b;--card:#1a202a;--edge:#333c4b;--ink:#e9edf4;--soft:#b3bccb;--act:#8fb4ff;--on-act:#0c1830}}
*{box-sizing:border-box}
body{margin:0;padding:clamp(1rem,8vh,6rem) 1rem;background:var(--paper);color:var(--ink);font:1.0625rem/1.55 system-ui,sans-serif;overflow-wrap:anywhere}
main{max-width:34rem;margin:0 auto;padding:clamp(1.5rem,5vw,2.5rem);background:var(--card);border:1px solid var(--edge);border-radius:.75rem}
h1{margin:0 0 1rem;font-size:1.625rem;line-height:1.25}
p{margin:0 0 1rem}
.soft{color:var(--soft)}
main>:last-child{margin-bottom:0}
a{color:var(--act);text-underline-offset:.2em}
button{min-height:2.75rem;padding:.625rem 1.5rem;border:1px solid transparent;border-radius:.5rem;background:var(--act);color:var(--on-act);font:inherit;font-weight:600;cursor:pointer}
button.quiet{border-color:var(--act);background:transparent;color:var(--act)}
a:focus-visible,button:focus-visible{outline:3px solid var(--act);outline-offset:3px;border-radius:.25rem}
form{margin:1.5rem 0 0}
form+form{margin-top:.75rem}
.below{margin-top:1.5rem}
</style>`;

const STYLE_HASH = new Bun.CryptoHasher("sha256")
  .update(STYLE_ELEMENT.text.slice("<style>".length, -"</style>".length))
  .digest("base64");

/** Restricts the pages to their own style and form, and forbids frames, caches and indexing. */
const PAGE_HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "cache-control": "no-store",
  "content-security-policy":
    `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; ` +
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  vary: "Accept, Accept-Language",
  "x-robots-tag": "noindex",
} as const;
