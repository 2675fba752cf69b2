import { expect, test } from "bun:test";
import { RenderTooLargeError, Template } from "../../../src/channels/email/content/template.ts";
import { EmailComposer } from "../../../src/channels/email/email-composer.ts";
import type { Json, JsonObject } from "../../../src/domain/texts/json.ts";
import { aTenant } from "../../support/tenants.ts";
import { FUZZ_TIMEOUT_MS, fuzz, type Picker } from "./fuzzing.ts";

const CHARS_MAX = 100_000;
const NAMES = [
  "a",
  "name",
  "__proto__",
  "constructor",
  "toString",
  "0",
  "ü",
  "a-b",
  "length",
  "$",
  "\u{1f600}",
] as const;
const PIECES = [
  ..."{}.<>&\"' \n\t",
  "{{",
  "}}",
  "{{.",
  "{{.a}}",
  "{{ .a }}",
  "{{.a.name}}",
  "{{.name.0}}",
  "{{.__proto__}}",
  "{{.toString.name}}",
  "{{{.a}}}",
  "{{.a b}}",
  "{{.}}",
  "{{a}}",
  "{{\u00a0.a}}",
  "{{.ü}}",
  "{{.\u{1f600}}}",
  "$&",
  "$1",
  "text",
  "&amp;",
  "\0",
  "\ud83d",
  "\u2028",
] as const;
const VALUES = [
  "<b>",
  "</p>",
  "<script>alert(1)</script>",
  '" onclick="x',
  "' x='",
  "&lt;",
  "&",
  "{{.a}}",
  "{{",
  "}}",
  "$&",
  "\r\nBcc: x@y.test",
  "\u2028",
  "\0",
  "\ud83d",
  "-->",
  "javascript:x",
  "plain",
  "",
  "]]>",
  "\u{e0001}",
] as const;

/** Finds placeholders by their definition, independently of the parser. */
const PLACEHOLDER = /\{\{[ \t\n\r]*((?:\.[^\0-\x20.{}]+)+)[ \t\n\r]*\}\}/g;
const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function expected(text: string, data: JsonObject, html: boolean): string {
  return text.replace(PLACEHOLDER, (_whole, path: string) => {
    let value: unknown = data;
    for (const name of path.slice(1).split(".")) {
      value =
        typeof value === "object" && value !== null ? Object.getOwnPropertyDescriptor(value, name)?.value : undefined;
    }
    const written =
      value === undefined || value === null ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
    return html ? Array.from(written, (character) => ENTITIES[character] ?? character).join("") : written;
  });
}

function someValue(pick: Picker, depth: number): Json {
  const kind = pick.below(depth > 2 ? 4 : 7);
  if (kind < 3) return pick.text(VALUES, 3);
  if (kind === 3) return pick.of<Json>([null, true, false, 0, -1.5, 1e21]);
  if (kind === 4) return Array.from({ length: pick.below(3) }, () => someValue(pick, depth + 1));
  return someData(pick, depth + 1);
}

/** Parsed like a request's JSON, so that `__proto__` is a property like any other. */
function someData(pick: Picker, depth = 0): JsonObject {
  const members = Array.from(
    { length: pick.below(6) },
    () => `${JSON.stringify(pick.of(NAMES))}:${JSON.stringify(someValue(pick, depth))}`,
  );
  return JSON.parse(`{${members.join(",")}}`);
}

test(
  "a rendering is what the definition of placeholders says, for HTML and for text",
  () =>
    fuzz((pick) => {
      const text = pick.text(PIECES, 12);
      const data = someData(pick);
      const template = Template.parse(text);
      for (const escape of ["html", "none"] as const) {
        expect({ text, out: template.render(data, escape, CHARS_MAX) }).toEqual({
          text,
          out: expected(text, data, escape === "html"),
        });
      }
    }),
  FUZZ_TIMEOUT_MS,
);

/** Parses HTML as a mail program does: only its elements, with their attributes' names. */
function structure(html: string): string[] {
  const seen: string[] = [];
  new HTMLRewriter()
    .on("*", {
      element: (element) => {
        seen.push([element.tagName, ...Array.from(element.attributes, ([name]) => name)].join(" "));
      },
    })
    .transform(html);
  return seen;
}

/**
 * Templates whose placeholders stand where the documentation promises that they are safe: in text and in quoted
 * attributes.
 */
const SAFE_PIECES = [
  "<p>",
  "</p>",
  "<b>{{.a}}</b>",
  '<a href="{{.a}}">{{ .name }}</a>',
  "<a title='{{.a.name}}'>x</a>",
  "<br>",
  "{{.a}}{{.name}}",
  '<td style="color:{{.a}}" class="{{.0}}">',
  "</td>",
  "text &amp; {{.__proto__}}",
  "<!-- c -->",
  '<img alt="{{.a}}{{.name}}">',
] as const;

test(
  "no value changes what elements and attributes a message has",
  () =>
    fuzz((pick) => {
      let html = "";
      for (let left = pick.below(10) + 1; left > 0; left -= 1) html += pick.of(SAFE_PIECES);
      const data = someData(pick);
      const out = Template.parse(html).render(data, "html", CHARS_MAX);
      expect({ html, data, seen: structure(out) }).toEqual({
        html,
        data,
        seen: structure(html.replace(PLACEHOLDER, "")),
      });
    }),
  FUZZ_TIMEOUT_MS,
);

test(
  "a composed message has a subject of one line, well-formed and bounded, or says why there is none",
  () => {
    const composer = new EmailComposer();
    const tenant = aTenant();
    return fuzz((pick) => {
      const payload = {
        to: "ann@good.test",
        subject: pick.text(PIECES, 8),
        html: pick.text(PIECES, 8),
        data: someData(pick),
      };
      const composed = composer.compose(payload, tenant);
      if (composed.kind === "impossible") throw new Error(composed.error);
      expect(composed.content.subject).not.toMatch(/[\p{Cc}\u2028\u2029]/u);
      expect(composed.content.subject.isWellFormed()).toBe(true);
      expect(composed.content.subject.length).toBeLessThanOrEqual(998);
    });
  },
  FUZZ_TIMEOUT_MS,
);

test(
  "a rendering is never longer than its bound",
  () =>
    fuzz((pick) => {
      const template = Template.parse(pick.text(PIECES, 12));
      const data = someData(pick);
      const charsMax = pick.below(60);
      try {
        expect(template.render(data, "html", charsMax).length).toBeLessThanOrEqual(charsMax);
      } catch (error) {
        if (!(error instanceof RenderTooLargeError)) throw error;
      }
    }),
  FUZZ_TIMEOUT_MS,
);
