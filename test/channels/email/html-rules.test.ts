import { describe, expect, test } from "bun:test";
import { checkHtml, type HtmlRule } from "../../../src/channels/email/content/html-rules.ts";
import { emailLimits } from "../../../src/channels/email/limits.ts";

const findBrokenRules = (html: string, bytes?: number): HtmlRule[] => checkHtml(html, bytes).map(({ rule }) => rule);

describe("HTML is empty", () => {
  test.each(["", " \n\t", "\u00a0", "\u200b\ufeff", "\u2028"])("when it is %p", (html) => {
    expect(findBrokenRules(html)).toEqual(["empty"]);
  });
});

describe("HTML has neither text nor an image", () => {
  test.each([
    "<p>&nbsp;</p>",
    "<p>&#8203;&zwnj;&shy;\u2060\ufeff</p>",
    "<p>\u2800\u3164\u115f</p>",
    "<p>\u202e\u200f</p>",
    "<template>words</template>",
    "<iframe>words</iframe>",
    "<br><hr><table><tr><td></td></tr></table>",
  ])("in %p", (html) => expect(findBrokenRules(html)).toEqual(["empty"]));
});

describe("HTML has an image and no text", () => {
  test.each([
    '<img src="https://x.test/a.png">',
    '<img alt="words">',
    '<a href="https://x.test"><img></a>',
    "<style>p { color: red }</style><img>",
    "<!-- words --><img>",
    "<!DOCTYPE html><?xml words?><img>",
    "<title>words</title><img>",
    "<html><head><title>words</title>words</head><body><img></body></html>",
    "<svg><title>words</title></svg>",
    '<div style="background: url(https://x.test/a.png)"></div>',
    '<table background="https://x.test/a.png"></table>',
  ])("in %p", (html) => expect(findBrokenRules(html)).toEqual(["image_only"]));
});

describe("HTML has text", () => {
  test.each([
    "words",
    "<p>.</p>",
    "<p>&amp;</p>",
    "<p>\u{1f600}</p>",
    "<p>{{.name}}</p>",
    "<img><p>words",
    "<head><title>t</title><p>words",
    "<html><head><meta charset=utf-8><body>words</body></html>",
    "<style>a</style>words",
    "<noscript>words</noscript>",
    "<h1>w</h1>",
    "<custom-element>words</custom-element>",
    "< words",
  ])("in %p", (html) => expect(findBrokenRules(html)).toEqual([]));
});

describe("a script is found", () => {
  test.each([
    "<script>alert(1)</script>",
    "<ScRiPt>alert(1)</ScRiPt>",
    "<script/x>alert(1)</script>",
    "<script\n>alert(1)",
    "<script\f>",
    "<script src=https://x.test/a.js",
    "<script",
    "<script ",
    "<svg><script>alert(1)</script></svg>",
    "<svg><script xlink:href=data:,alert(1) />",
    "<svg:script>alert(1)</svg:script>",
    "<math><mtext><script>alert(1)</script>",
    "<svg><style><script>alert(1)</script>",
    "<svg><title><script>alert(1)</script>",
    "<svg><style><foreignObject><p><![CDATA[ ><script>alert(1)</script>",
    "<select><style><script>alert(1)</script>",
    "<frameset><noframes></frameset><script>alert(1)</script>",
    '<noscript><p title="</noscript><script>alert(1)</script>">',
    "<![CDATA[ ><script>alert(1)</script>",
    "<!--><script>alert(1)</script>",
    "<!---><script>alert(1)</script>",
    "<!-- --!><script>alert(1)</script>",
    "<?x><script>alert(1)</script>",
    "</x><script>alert(1)</script>",
    "<<script>alert(1)</script>",
    "<p title='\"'><script>alert(1)</script>",
    "<p title=><script>alert(1)</script>",
    "<style></style/x><script>alert(1)</script>",
    "<style>\x1c/style><!-- </style><script>alert(1)</script> -->",
    "<textarea></textarea ><script>alert(1)</script>",
    "</p title='<iframe>'><script>alert(1)</script></iframe>",
    "</p/title='<iframe>'><script>alert(1)</script></iframe>",
    '</p\ntitle="<title>"><script>alert(1)</script>',
    "<a href={{.x}}'></a><i title='<title> style=><script>alert(1)</script>",
    "<style></{{.x}}style><script>alert(1)</script>",
    "<style></sty{{.x}}le><script>alert(1)</script>",
    "<!--{{.x}}><script>alert(1)</script>-->",
    "<!-- --{{.x}}><script>alert(1)</script>-->",
    "<{{.tag}}>alert(1)</{{.tag}}>",
    "<scr{{.rest}}>alert(1)",
  ])("in words and %p", (html) => expect(findBrokenRules(`words${html}`)).toContain("script"));
});

describe("no script is seen", () => {
  test.each([
    "&lt;script&gt;",
    "&#60;script>",
    "<!-- <script>alert(1)</script> -->",
    "<p title='<script>'>words</p>",
    "<textarea><script></textarea>",
    "<style>/* <script> */</style>",
    "<scripts>words</scripts>",
    "<scr\0ipt>",
    "< script>",
    "</script>",
    "<p>{{.name}} < {{.limit}}</p>",
    '<a href="{{.link}}">{{.label}}</a>',
  ])("in words and %p", (html) => expect(findBrokenRules(`words ${html}`)).toEqual([]));
});

describe("the size", () => {
  const bytes = emailLimits.inlineHtmlBytesMax;

  test("may be 524,288 bytes and not one more, counted in UTF-8", () => {
    expect(findBrokenRules("a".repeat(bytes))).toEqual([]);
    expect(findBrokenRules("a".repeat(bytes + 1))).toEqual(["too_large"]);
    expect(findBrokenRules("é".repeat(bytes / 2))).toEqual([]);
    expect(findBrokenRules(`${"é".repeat(bytes / 2)}a`)).toEqual(["too_large"]);
  });

  test("is the caller's where the caller knows it", () => {
    expect(findBrokenRules("words", bytes + 1)).toEqual(["too_large"]);
  });

  test("hides neither emptiness nor a script, and all that apply are named in one order", () => {
    expect(findBrokenRules(" ".repeat(bytes + 1))).toEqual(["empty", "too_large"]);
    expect(findBrokenRules(`<script></script>${"a".repeat(bytes)}`)).toEqual(["too_large", "script"]);
    expect(findBrokenRules("<img><script>alert(1)</script>")).toEqual(["image_only", "script"]);
  });

  test("hides nothing that stands behind what would have been allowed", () => {
    expect(findBrokenRules(`<p>${"x".repeat(bytes)}</p><script>alert(1)</script>`)).toEqual(["too_large", "script"]);
    expect(findBrokenRules(`<img src="data:image/png;base64,${"A".repeat(bytes)}">`)).toEqual([
      "too_large",
      "image_only",
    ]);
    expect(findBrokenRules("<p></p>".repeat(100_000))).toEqual(["empty", "too_large"]);
    expect(findBrokenRules(`<img src="https://a.example/b.png">`.repeat(20_000))).toEqual(["too_large", "image_only"]);
  });

  test("is told without the rules that only the end of far larger HTML breaks", () => {
    expect(findBrokenRules(`${"a".repeat(emailLimits.inspectedHtmlCharsMax)}<script></script>`)).toEqual(["too_large"]);
  });
});

test("every violation says in words what is wrong", () => {
  const violations = checkHtml("<img><script>");
  expect(violations).toHaveLength(2);
  for (const { message } of violations) expect(message).toMatch(/^the HTML .{10,}$/);
});

describe("512 KB of one hostile unit are judged in time", () => {
  const units = [
    "<div>",
    "<",
    "<a href=",
    "<!--",
    '<a "',
    "{{",
    "<{{",
    "<a",
    "&amp",
    "&",
    "<script",
    "</",
    "<a:",
    " ",
    "<b =",
  ];
  const openers = ["", "<style>", "<title>", "<svg>", "<textarea>&", "\x01"];
  test.each(openers)(
    "after %p",
    (opener) => {
      for (const unit of units) checkHtml(opener + unit.repeat(500_000 / unit.length));
    },
    90_000,
  );
});
