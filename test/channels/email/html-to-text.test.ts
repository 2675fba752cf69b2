import { describe, expect, test } from "bun:test";
import { htmlToText } from "../../../src/channels/email/content/html-to-text.ts";

describe("the text of an HTML message", () => {
  test.each<[string, string]>([
    ["", ""],
    ["<img src=x>", ""],
    ["  words \n and\twords ", "words and words"],
    ["<p>one</p><p>two</p>", "one\n\ntwo"],
    ["<div>one</div><div><div>two</div></div>", "one\ntwo"],
    ["one<br>two<br><br><br><br>three", "one\ntwo\n\nthree"],
    ["<ul><li>one<li>two</ul>after", "- one\n- two\n\nafter"],
    ["<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "a b\nc"],
    ["b<b>ol</b>d", "bold"],
    ["a &amp; b&nbsp;c &lt;d&gt;", "a & b\u00a0c <d>"],
    ["<head><title>no</title></head><body>yes", "yes"],
    ["<head><title>no</title>yes</head>, too", "yes, too"],
    ["<html><head>\n<meta charset=utf-8>\n<style>no</style><p>yes</p></html>", "yes"],
    ["<head><template><p>no</p></template><noscript><p>yes", "yes"],
    ["<style>no</style>yes", "yes"],
    ["<head><meta charset=utf-8><body>yes", "yes"],
    ["<style>no</style><script>no</script><!-- no -->yes", "yes"],
    ["<textarea>yes</textarea>", "yes"],
    ['<img alt="Logo &amp; name">', "Logo & name"],
    ['Read <a href="https://x.test/?a=1&amp;b=2">this</a>.', "Read this (https://x.test/?a=1&b=2)."],
    ['<a href="https://x.test/"><img></a>', "https://x.test/"],
    ['<a href="https://x.test/">https://x.test/</a>', "https://x.test/"],
    ['<a href="mailto:a@x.test">a@x.test</a>', "a@x.test"],
    ['<a href="javascript:x">words</a> <a href="#top">top</a>', "words top"],
    ['<a href="https://x.test/">never closed', "never closed (https://x.test/)"],
    ["Dear {{ .user.name }},", "Dear {{ .user.name }},"],
    ['<a href="{{.link}}">{{.label}}</a>', "{{.label}} ({{.link}})"],
    ["<constructor>words</constructor>", "words"],
    ["<p>words</p x", "words"],
    ["<p>words</p ", "words"],
  ])("of %p", (html, text) => expect(htmlToText(html)).toBe(text));

  test("is made in time of 512 KB of one hostile unit", () => {
    const units = [
      "<div>",
      "<",
      "<a href=",
      "<a href=http:>x",
      "<!--",
      '<a "',
      "<br>",
      "<li>",
      "&amp;",
      "&",
      " x",
      "<img alt=a ",
    ];
    for (const unit of units) htmlToText(unit.repeat(524_288 / unit.length));
  }, 90_000);
});
