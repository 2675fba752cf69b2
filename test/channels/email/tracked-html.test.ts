import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Parser } from "htmlparser2";
import { trackedHtml } from "../../../src/channels/email/content/tracked-html.ts";

const PIXEL = '<img src="https://send.test/o.gif" width="1" height="1" alt="" border="0">';

/** The HTML with its links redirected to us and without the pixel, and the links' original targets. */
function track(html: string): { html: string; urls: string[] } {
  const urls: string[] = [];
  const trackedUrl = (url: string) => `https://send.test/c/${urls.push(url)}`;
  return { html: trackedHtml(html, { pixel: "https://send.test/o.gif", trackedUrl }).replace(PIXEL, ""), urls };
}

describe("a link leads through us", () => {
  const cases: readonly [name: string, html: string, tracked: string, url: string][] = [
    ["in double quotes", '<a href="https://x.test/">x</a>', '<a href="https://send.test/c/1">x</a>', "https://x.test/"],
    ["in single quotes", "<a href='http://x.test'>x</a>", "<a href='https://send.test/c/1'>x</a>", "http://x.test"],
    ["without quotes", "<a href=http://x.test/a>x</a>", '<a href="https://send.test/c/1">x</a>', "http://x.test/a"],
    ["in an image map", '<area HREF="http://x.test/">', '<area HREF="https://send.test/c/1">', "http://x.test/"],
    ["in capitals", '<A HREF="HTTP://X.test/">x</A>', '<A HREF="https://send.test/c/1">x</A>', "HTTP://X.test/"],
    [
      "with entities",
      '<a href="http://x.test/?a=1&amp;b=2&#x26;c=&quot;">x</a>',
      '<a href="https://send.test/c/1">x</a>',
      'http://x.test/?a=1&b=2&c="',
    ],
    [
      "with blanks and line breaks around and within",
      '<a\n href =\t" http://x.test/a\nb ">x</a>',
      '<a\n href =\t"https://send.test/c/1">x</a>',
      "http://x.test/ab",
    ],
    [
      "beyond ASCII",
      '<a href="http://ü.test/é b">',
      '<a href="https://send.test/c/1">',
      "http://xn--tda.test/%C3%A9%20b",
    ],
    [
      "with a backslash",
      '<a href="http://x.test\\@y.test">',
      '<a href="https://send.test/c/1">',
      "http://x.test/@y.test",
    ],
    [
      "between others",
      '<a class=b href="http://x.test/" id=c>',
      '<a class=b href="https://send.test/c/1" id=c>',
      "http://x.test/",
    ],
    [
      "the first of two",
      '<a href="http://x.test/" href="http://y.test/">',
      '<a href="https://send.test/c/1" href="http://y.test/">',
      "http://x.test/",
    ],
    ["in a self-closed tag", '<a href="http://x.test/"/>', '<a href="https://send.test/c/1"/>', "http://x.test/"],
    [
      "between conditional comments",
      '<!--[if !mso]><!--><a href="http://x.test/"><!--<![endif]-->',
      '<!--[if !mso]><!--><a href="https://send.test/c/1"><!--<![endif]-->',
      "http://x.test/",
    ],
  ];
  for (const [name, html, tracked, url] of cases) {
    test(name, () => expect(track(html)).toEqual({ html: tracked, urls: [url] }));
  }
});

describe("stays as it is", () => {
  const cases: readonly string[] = [
    '<a href="mailto:a@x.test">x</a><a href="tel:1">x</a><a href="#top">x</a><a href="/path">x</a>',
    '<a href="//x.test/">x</a><a href="http:x.test">x</a><a href="javascript:alert(1)">x</a><a href="ftp://x.test/">x</a>',
    '<a href="http://">x</a><a href="https://[">x</a><a href="http://x test/">x</a><a href>x</a><a href="">x</a>',
    '<a href="http://x.test/" data-no-track>x</a><a DATA-NO-TRACK="" href="http://x.test/">x</a>',
    '<!-- <a href="http://x.test/">x</a> --><!--[if mso]><a href="http://x.test/">x</a><![endif]-->',
    '<script>"<a href=\'http://x.test/\'>"</script><style>/*<a href="http://x.test/">*/</style>',
    '<textarea><a href="http://x.test/"></textarea><title><a href="http://x.test/"></title><xmp><a href="http://x.test/"></xmp>',
    '<iframe><a href="http://x.test/"></iframe><noframes><a href="http://x.test/"></noframes>',
    '<link href="http://x.test/"><img src="http://x.test/"><form action="http://x.test/"><abbr href="http://x.test/">',
    '<p title="<a href=http://x.test/>">x</p><a xhref="http://x.test/" title=\'href="http://x.test/"\'>x</a>',
    '<p>&lt;a href="http://x.test/"&gt;</p>< a href="http://x.test/"></a href="http://x.test/">',
    '<p>text</p><a href="http://x.test/',
    '<p>text</p><a href="http://x.test/"',
  ];
  for (const html of cases) test(html, () => expect(track(html)).toEqual({ html, urls: [] }));
});

describe("the pixel", () => {
  const pixelled = (html: string) => trackedHtml(html, { pixel: "https://send.test/o.gif", trackedUrl: () => null });

  test("comes before the last </body>, or at the end", () => {
    expect(pixelled("<body><p>x</p></BODY ></html>")).toBe(`<body><p>x</p>${PIXEL}</BODY ></html>`);
    expect(pixelled("<body>a</body><p>b</p></body>c")).toBe(`<body>a</body><p>b</p>${PIXEL}</body>c`);
    expect(pixelled("<p>x</p>")).toBe(`<p>x</p>${PIXEL}`);
    expect(pixelled("")).toBe(PIXEL);
  });

  test("takes no </body> in a comment or a script for the end", () => {
    const html = "<body>x<!-- </body> --><script>'</body>'</script>";
    expect(pixelled(html)).toBe(html + PIXEL);
  });
});

test("what is not tracked is left out of the document's changes", () => {
  const html = '<a href="http://x.test/">x</a>';
  expect(trackedHtml(html, { pixel: "p", trackedUrl: () => null })).toStartWith(html);
});

test("a new address is written as an attribute's value, whatever it holds", () => {
  const hostile = `https://send.test/?a=1&b="'<>`;
  const html = trackedHtml(`<a href=http://x.test>x</a><a href='http://x.test'>y</a>`, {
    pixel: hostile,
    trackedUrl: () => hostile,
  });
  const seen: (string | undefined)[] = [];
  const parser = new Parser({ onopentag: (_, { href, src }) => void seen.push(href ?? src) });
  parser.end(html);
  expect(seen).toEqual([hostile, hostile, hostile]);
});

test("in any HTML, setting the addresses back gives the document that it was", () => {
  const piece = fc.constantFrom(
    ...'<a href="http://x.test/">|<a href=https://y.test/?a=1&amp;b>|<a |<area |href=|\'|"|http://x.test/|https://y.test/?a=1&amp;b|>| data-no-track|</a>|<!--|-->|<script>|</script>|</body>|&|<|/|=| |x|é'.split(
      "|",
    ),
  );
  const document = fc.array(piece, { maxLength: 40 }).map((pieces) => pieces.join(""));
  fc.assert(
    fc.property(document, (html) => {
      const urls = new Map<string, string>();
      const pixel = "https://send.test/o.gif";
      const trackedUrl = (url: string) => {
        const name = `https://send.test/c/${urls.size}-`;
        urls.set(name, url);
        return name;
      };
      const tracked = trackedHtml(html, { pixel, trackedUrl }).replace(PIXEL, "");
      // Every inserted value replaces one that was removed; the rest is equal piece by piece.
      const kept = tracked.split(/"?https:\/\/send\.test\/c\/\d+-"?/);
      let at = 0;
      for (const text of kept) {
        const found = html.indexOf(text, at);
        expect(found).toBeGreaterThanOrEqual(at);
        at = found + text.length;
      }
      expect(kept).toHaveLength(urls.size + 1);
      for (const url of urls.values()) expect(url).toMatch(/^https?:\/\//);
    }),
    { numRuns: 500 },
  );
});

test("takes time proportional to the length of the HTML", () => {
  const hostile = [
    "<a href=",
    "<a href='http://x.test/",
    "<a ",
    "&",
    "<!--",
    "<a href=http://x.test/>",
    "<a href=&#x41;",
  ];
  for (const piece of hostile) {
    const html = piece.repeat(Math.floor(524_288 / piece.length));
    expect(trackedHtml(html, { pixel: "p", trackedUrl: () => null })).toContain(piece);
  }
  const link = `<a href="http://x.test/${" ".repeat(524_288)}y">x</a>`;
  expect(trackedHtml(link, { pixel: "p", trackedUrl: () => null })).toContain(link);
}, 90_000);
