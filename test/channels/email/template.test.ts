import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { RenderTooLargeError, Template } from "../../../src/channels/email/content/template.ts";
import type { JsonObject } from "../../../src/domain/texts/json.ts";

const CHARS_MAX = 1_000_000;
const render = (text: string, data: JsonObject, escape: "html" | "none" = "none") =>
  Template.parse(text).render(data, escape, CHARS_MAX);

/** A text whose JSON parser creates `__proto__` as an own key, as a request's would. */
const parsed = (json: string): JsonObject => JSON.parse(json);

describe("a placeholder", () => {
  test.each<[string, string]>([
    ["{{.name}}", "Ana"],
    ["{{ .name }}", "Ana"],
    ["{{\t.name\n}}", "Ana"],
    ["a{{.name}}b{{.name}}c", "aAnabAnac"],
    ["{{.user.city}}", "Lugo"],
    ["{{.items.1}}", "two"],
    ["{{{.name}}}", "{Ana}"],
    ["{{ {{.name}}", "{{ Ana"],
    ["{{.missing}}", ""],
    ["{{.name.length}}", ""],
    ["{{.user.missing.deeper}}", ""],
    ["{{.none}}", ""],
    ["{{.count}} {{.ratio}} {{.yes}}", "0 1.5 true"],
    ["{{.user}}", '{"city":"Lugo"}'],
    ["{{.items}}", '["one","two"]'],
    ["{{.müll}}", "ü"],
  ])("%p is filled", (text, expected) => {
    const data = {
      name: "Ana",
      user: { city: "Lugo" },
      items: ["one", "two"],
      none: null,
      count: 0,
      ratio: 1.5,
      yes: true,
      müll: "ü",
    };
    expect(render(text, data)).toBe(expected);
  });

  test.each([
    "{{",
    "{{}}",
    "{{name}}",
    "{{.}}",
    "{{. name}}",
    "{{.a b}}",
    "{{.a}",
    "{{.a..b}}",
    "{{.a.}}",
    "{{1}}",
    "{{.a",
  ])("that %p is not one stays as it is", (text) => expect(render(text, { a: "filled", name: "filled" })).toBe(text));

  test("reads own properties and nothing that an object inherits", () => {
    for (const name of ["__proto__", "constructor", "toString", "hasOwnProperty", "constructor.name"]) {
      expect(render(`[{{.${name}}}]`, {})).toBe("[]");
      expect(render(`[{{.user.${name}}}]`, { user: {} })).toBe("[]");
    }
    const own = parsed('{"__proto__": "mine", "user": {"constructor": "hers"}}');
    expect(render("{{.__proto__}} {{.user.constructor}}", own)).toBe("mine hers");
  });

  test("in a value is not filled again", () => {
    expect(render("{{.x}}", { x: "{{.y}}{{.x}}", y: "secret" })).toBe("{{.y}}{{.x}}");
    expect(render("{{{.open}}.y}}", { open: "{", y: "secret" })).toBe("{{.y}}");
  });
});

test("in HTML no value brings a character of markup with it, and a reader gets the value back", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("</p><script>", "\"'><&amp;", "&lt;")), (x) => {
      const rendered = render('<a title="{{.x}}">{{.x}}</a>', { x }, "html");
      const inside = rendered.slice('<a title="'.length, rendered.indexOf('">'));
      expect(inside).not.toMatch(/[<>"']|&(?!(?:amp|lt|gt|quot|#39);)/);
      expect(rendered).toBe(`<a title="${inside}">${inside}</a>`);
      const entities: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" };
      expect(inside.replace(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => entities[name] ?? "")).toBe(x);
    }),
  );
});

test("what surrounds the placeholders is never changed", () => {
  const piece = fc.oneof(fc.string(), fc.constantFrom("{", "{{", "}}", "{{.", "{{ .a", ".a}}"));
  fc.assert(
    fc.property(piece, piece, (before, after) => {
      fc.pre(!/\{\{[\s.]*$/.test(before) && !/^[\s.}]/.test(after));
      const [left, right] = [render(before, {}), render(after, {})];
      expect(render(`${before}{{.x}}${after}`, { x: "|" })).toBe(`${left}|${right}`);
    }),
  );
});

test("a rendering that would grow beyond its bound is refused", () => {
  const template = Template.parse("{{.x}}".repeat(1_000));
  expect(() => template.render({ x: "y".repeat(10_000) }, "none", CHARS_MAX)).toThrow(RenderTooLargeError);
  expect(template.render({ x: "y" }, "none", CHARS_MAX)).toHaveLength(1_000);
});

test.each(["{{", "{", "{{.", "{{ ", "{{.a", "{{.a.", "{{.a}", "}}", "{{.a{"])(
  "512 KB of %p are parsed and come out as they are",
  (unit) => {
    const text = unit.repeat(524_288 / unit.length);
    expect(render(text, {}) === text).toBe(true);
  },
  10_000,
);
