import { describe, expect, test } from "bun:test";
import { checkHtml } from "../../../src/channels/email/content/html-rules.ts";
import { htmlToText } from "../../../src/channels/email/content/html-to-text.ts";
import { Template } from "../../../src/channels/email/content/template.ts";
import { trackedHtml } from "../../../src/channels/email/content/tracked-html.ts";
import { BuiltinSpamFilter } from "../../../src/channels/email/spam/builtin-spam-filter.ts";
import { FUZZ_TIMEOUT_MS, fuzz, type Picker } from "./fuzzing.ts";
import { HOSTILE_HTML } from "./hostile-html.ts";

const TRACKING = { pixel: "https://send.test/o.gif", trackedUrl: () => "https://send.test/c" };

const PIECES = [
  ..."<>/!-=\"'& \n\t\f\0",
  "<script>",
  "</script>",
  "<SCRIPT ",
  "<scr",
  "ipt>",
  "<script/",
  "<svg>",
  "</svg>",
  "<svg:script>",
  "<math>",
  "<style>",
  "</style>",
  "<title>",
  "</title>",
  "<textarea>",
  "</textarea>",
  "<noscript>",
  "</noscript>",
  "<template>",
  "</template>",
  "<select>",
  "</select>",
  "<iframe>",
  "</iframe>",
  "<plaintext>",
  "<xmp>",
  "</xmp>",
  "<noembed>",
  "</noembed>",
  "<noframes>",
  "<frameset>",
  "<foreignObject>",
  "<desc>",
  "<!--",
  "-->",
  "--!>",
  "<!-->",
  "<!--->",
  "<![CDATA[",
  "]]>",
  "<?",
  "?>",
  "<!doctype html>",
  "<p>",
  "</p>",
  "<b>",
  "</b>",
  "<table>",
  "<td>",
  "<br>",
  "<br><br>",
  "<h1>",
  "<li>",
  "<a href=",
  '<a href="https://a.test">',
  "</a>",
  "<img src=x alt='",
  "<head>",
  "</head>",
  "<body>",
  ' style="display:none"',
  ' style="color:#fff"',
  "data:text/html,x",
  "javascript:",
  "&lt;",
  "&#60;script&#62;",
  "&#x3c",
  "&nbsp;",
  "&#8203;",
  "\u200b",
  "\u3164",
  "words ",
  "{{.a}}",
  "{{",
  "<{{.a}}",
  "<scr{{.a}}ipt>",
  "<s{{.b}}cript ",
  "\ud83d",
  "\u{1f600}",
  "e\u0301\u0323",
] as const;

/** Values that would be a script without escaping. */
const DATA = [
  { a: "<script>x</script>", b: "" },
  { a: "", b: "script" },
  { a: "--><script>", b: "</style><script>" },
  { a: "script ", b: "\0" },
] as const;

const someHtml = (pick: Picker) => pick.text(PIECES, 14);

/** Whether another reader of HTML (the one of Cloudflare's lol-html) finds a script element. */
function hasScript(html: string): boolean {
  let found = false;
  const note = () => {
    found = true;
  };
  try {
    new HTMLRewriter().on("script", { element: note }).transform(html);
  } catch {
    // It refuses input on which readers would disagree; what it has seen until then counts.
  }
  return found;
}

test(
  "no script that another reader of HTML finds is let through",
  () =>
    fuzz((pick) => {
      const html = someHtml(pick);
      if (!hasScript(html)) return;
      expect({ html, rules: checkHtml(html).map(({ rule }) => rule) }).toMatchObject({
        rules: expect.arrayContaining(["script"]),
      });
    }),
  FUZZ_TIMEOUT_MS,
);

test(
  "no data make a script of HTML that was let through",
  () =>
    fuzz((pick) => {
      const html = someHtml(pick);
      if (checkHtml(html).some(({ rule }) => rule === "script")) return;
      const data = pick.of(DATA);
      const rendered = Template.parse(html).render(data, "html", 1_000_000);
      expect({ html, data, script: hasScript(rendered) }).toMatchObject({ script: false });
    }),
  FUZZ_TIMEOUT_MS,
);

test(
  "the rules on HTML answer in their order, each once, and the same again",
  () =>
    fuzz((pick) => {
      const html = someHtml(pick);
      const rules = checkHtml(html).map(({ rule }) => rule);
      const order = ["empty", "too_large", "image_only", "script"].filter((rule) =>
        rules.some((each) => each === rule),
      );
      expect({ html, rules }).toEqual({ html, rules: checkHtml(html).map(({ rule }) => rule) });
      expect({ html, rules: rules.map(String) }).toEqual({ html, rules: order });
    }),
  FUZZ_TIMEOUT_MS,
);

test(
  "a text alternative holds no line that was not there, and no element",
  () =>
    fuzz((pick) => {
      const html = someHtml(pick);
      const text = htmlToText(html);
      expect(text).toBe(text.trim());
      expect({ html, text }).toEqual({ html, text: htmlToText(html) });
      expect({ html, tripled: /\n{3}/.test(text) }).toEqual({ html, tripled: false });
    }),
  FUZZ_TIMEOUT_MS,
);

test(
  "the spam filter has a verdict on everything, and the same again",
  () => {
    const filter = new BuiltinSpamFilter();
    return fuzz(async (pick) => {
      const html = someHtml(pick);
      const message = {
        subject: someHtml(pick),
        html,
        text: pick.of([null, html]),
        from: someHtml(pick),
        to: "a@b.test",
      };
      const verdict = await filter.score(message);
      expect(verdict.score).toBeGreaterThanOrEqual(0);
      expect(await filter.score(message)).toEqual(verdict);
    });
  },
  FUZZ_TIMEOUT_MS,
);

describe("half a megabyte is read in time by the rules, the text alternative, the template and the links, of", () => {
  test.each(Object.entries(HOSTILE_HTML))(
    "%s",
    (_name, html) => {
      expect(checkHtml(html).length).toBeLessThanOrEqual(4);
      expect(htmlToText(html).length).toBeLessThanOrEqual(20 * html.length);
      expect(Template.parse(html).render({ a: "x" }, "html", 2 * html.length).length).toBeLessThanOrEqual(
        2 * html.length,
      );
      expect(trackedHtml(html, TRACKING).length).toBeLessThanOrEqual(2 * html.length);
    },
    90_000,
  );
});
