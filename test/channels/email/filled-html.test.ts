import { expect, test } from "bun:test";
import { checkFilledHtml, wouldBeTooLarge } from "../../../src/channels/email/content/filled-html.ts";
import { EmailComposer } from "../../../src/channels/email/email-composer.ts";
import type { EmailPayload } from "../../../src/channels/email/payload.ts";
import type { Json, JsonObject } from "../../../src/domain/texts/json.ts";
import { aTenant } from "../../support/tenants.ts";

const TOO_LARGE = "the message would be larger than 512 KB once its placeholders are filled";
const MAX = 512 * 1024;

const composer = new EmailComposer();

function letter(html: string, x: Json): EmailPayload {
  return { to: "ana@example.test", subject: "s", html, data: { x } };
}

function compose(payload: EmailPayload, tenant = aTenant()) {
  const composed = composer.compose(payload, tenant);
  return composed.kind === "impossible" ? composed.error : composed.kind;
}

const isTooLarge = ({ html = "", data }: EmailPayload) => findBrokenRules(html, data).includes("too_large");

const findBrokenRules = (html: string, data: JsonObject = {}) => checkFilledHtml(html, data).map(({ rule }) => rule);

test.each<[html: string, data: JsonObject, rules: readonly string[]]>([
  ["<p>{{.x}}</p>", {}, ["empty"]],
  ["<p>{{.x}}</p>", { x: " " }, ["empty"]],
  ["<p>{{.x}}</p>", { x: "Hello" }, []],
  ["{{.x}}<img src='https://x.test/a.png'>", { x: "" }, ["image_only"]],
  ["<p>{{.x}}</p>", { x: "<script>alert(1)</script>" }, []],
  ["<p>{{.x}}</p><script>alert(1)</script>", { x: "" }, ["empty", "script"]],
  [`<p>${"y".repeat(MAX)}{{.x}}</p>`, { x: "z" }, ["too_large"]],
  [`<p>{{.x}}</p><script>alert(1)</script>`, { x: "z".repeat(MAX) }, ["too_large", "script"]],
  ['<img src="{{.x}}">', { x: "z".repeat(MAX) }, ["too_large", "image_only"]],
  ["<p>{{.x}}</p>", { x: "\u00e9".repeat(MAX / 2) }, ["too_large"]],
])("%.40p is judged as it will be sent", (html, data, rules) => {
  expect(findBrokenRules(html, data)).toEqual(rules as ReturnType<typeof findBrokenRules>);
});

test.each<[what: string, html: string, x: Json]>([
  ["many placeholders times a large value", "{{.x}}".repeat(100), "&".repeat(16 * 1024)],
  ["one value of many megabytes", "{{.x}}", "&".repeat(8 * 1024 * 1024)],
  ["a value that only its entities make too large", "{{.x}}", "&".repeat(200_000)],
  [
    "an object of many megabytes",
    "{{.x}}",
    Object.fromEntries(Array.from({ length: 300_000 }, (_, i) => [`n${i}`, i])),
  ],
  ["a list of many megabytes", "{{.x}}", Array.from({ length: 1_000_000 }, () => 1)],
  ["one long text in a list", "{{.x}}", ["y".repeat(600_000)]],
])("%s is refused before it is rendered", (_, html, x) => {
  const payload = letter(html, x);
  const startMs = performance.now();
  for (let i = 0; i < 5; i += 1) expect(compose(payload)).toBe(TOO_LARGE);
  // Five fully rendered ones of the first kind take more than twice as long on an idle machine.
  expect(performance.now() - startMs).toBeLessThan(2_000);
  expect(isTooLarge(payload)).toBe(true);
});

test("a message of exactly the maximum is sent, one character more is not", () => {
  const fill = "y".repeat(MAX - 100);
  for (const [x, expected] of [
    ["z".repeat(100), "composed"],
    ["z".repeat(101), TOO_LARGE],
    ["&".repeat(20), "composed"],
    ["&".repeat(21), TOO_LARGE],
  ] as const) {
    expect(compose(letter(`${fill}{{.x}}`, x))).toBe(expected);
    expect(isTooLarge(letter(`${fill}{{.x}}`, x))).toBe(expected !== "composed");
  }
});

test("an object or a list that fits as JSON is sent", () => {
  const lists: readonly Json[] = [
    Array.from({ length: 250_000 }, () => 1),
    [["y".repeat(500_000)], {}],
    Object.fromEntries(Array.from({ length: 30_000 }, (_, i) => [`n${i}`, null])),
  ];
  const tenant = aTenant({ emailTemplates: new Map([["t", { subject: "s", html: "<p>x</p>", text: "{{.x}}" }]]) });
  for (const x of lists) {
    expect(JSON.stringify(x).length).toBeLessThanOrEqual(MAX);
    expect(compose({ to: "ana@example.test", template: "t", data: { x } }, tenant)).toBe("composed");
  }
});

test("the text and the subject of a template are bounded as well, and a long subject is cut", () => {
  const of = (subject: string, text: string) =>
    aTenant({ emailTemplates: new Map([["t", { subject, html: "<p>x</p>", text }]]) });
  const payload: EmailPayload = { to: "ana@example.test", template: "t", data: { x: "y".repeat(10_000) } };
  expect(compose(payload, of("s", "{{.x}}".repeat(60)))).toBe(TOO_LARGE);
  expect(compose(payload, of("{{.x}}{{.x}}", "t"))).toBe(TOO_LARGE);
  const composed = composer.compose(payload, of("{{.x}}", "t"));
  expect(composed.kind === "composed" && composed.content.subject).toBe("y".repeat(998));
});

test("the size of a stored template is known when a message arrives", () => {
  const template = { subject: "s", html: "{{.x}}".repeat(100), text: null };
  const isTooLargeFor = (x: string) => wouldBeTooLarge(template, { x }, JSON.stringify({ x }).length);
  expect(isTooLargeFor("&".repeat(16 * 1024))).toBe(true);
  expect(isTooLargeFor("&".repeat(1024))).toBe(false);
});

test("numbers, which can be longer than they were written, do not slip through", () => {
  const html = "{{.x}}".repeat(30_000);
  const payload = letter(html, 1e20);
  expect(compose(payload)).toBe(TOO_LARGE);
  expect(isTooLarge(payload)).toBe(true);
});
