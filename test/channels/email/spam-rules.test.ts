import { describe, expect, test } from "bun:test";
import { spamRulesPage } from "../../../infra/spam-rules-page.ts";
import { BuiltinSpamFilter, SPAM_RULES } from "../../../src/channels/email/spam/builtin-spam-filter.ts";
import { foldedWords } from "../../../src/channels/email/spam/folded-words.ts";
import { PHRASES } from "../../../src/channels/email/spam/phrase-families.ts";
import { PhraseFinder } from "../../../src/channels/email/spam/phrase-finder.ts";
import { HAM, SPAM } from "./spam-samples.ts";

const filter = new BuiltinSpamFilter();
/** Enough honest words that no rule about short messages applies. */
const WORDS =
  "<p>Hello Ann, the parts that you ordered last week have come and wait for you at our counter in town.</p>";

interface Part {
  readonly subject?: string;
  /** The part that follows WORDS. */
  readonly html?: string;
  /** The part that stands alone. */
  readonly alone?: string;
  readonly from?: string;
  readonly text?: string;
}

async function findMatchedRules({
  subject = "Your parts",
  html = "",
  alone,
  from = "Shop <orders@shop.test>",
  text,
}: Part) {
  const message = { subject, html: alone ?? WORDS + html, text: text ?? null, from, to: "ann@good.test" };
  return (await filter.score(message)).rules.map(({ rule }) => rule);
}

const link = (href: string, label = "here") => ({ html: `<p><a href="${href}">${label}</a></p>` });
const LONG = "the river and the mountain said quietly nothing at all yesterday ".repeat(5);
const JOINER = "\u200d";

/** By rule: parts that violate it, and similar parts that do not. */
const CASES: Readonly<Record<string, { readonly speaks: readonly Part[]; readonly silent: readonly Part[] }>> = {
  SUBJECT_CAPITALS: {
    speaks: [{ subject: "BUY THIS NOW" }, { subject: "КУПИТЕ СЕЙЧАС" }],
    silent: [{ subject: "INVOICE" }, { subject: "Your NASA and ESA News" }, { subject: "2026-11-21 10:00" }],
  },
  SUBJECT_MARKS: {
    speaks: [{ subject: "Look!!" }, { subject: "Really?!" }, { subject: "Cash $$$" }, { subject: "A! B! C!" }],
    silent: [{ subject: "Welcome!" }, { subject: "Ready? Go!" }, { subject: "$5 and $6" }],
  },
  SUBJECT_DISGUISED: {
    speaks: [
      { subject: "V1agra" },
      { subject: "Your c@sh" },
      { subject: "F R E E things" },
      { subject: "c.a.s.i.n.o" },
    ],
    silent: [{ subject: "Order A1B2C3" }, { subject: "Plan B 4 you" }, { subject: "U.S. news" }, { subject: "cash!" }],
  },
  SUBJECT_LURE: { speaks: [{ subject: "You won" }], silent: [{ subject: "You wonder" }, { html: "You won" }] },
  SUBJECT_URGENT: { speaks: [{ subject: "Urgent: reply" }], silent: [{ subject: "Urgently needed parts" }] },
  SUBJECT_EMOJI: { speaks: [{ subject: "🔥🔥🔥🔥" }], silent: [{ subject: "Spring 🌱🌷" }] },
  SUBJECT_EMPTY: { speaks: [{ subject: "" }, { subject: " - " }], silent: [{ subject: "7" }] },
  SENDER_POSES: {
    speaks: [{ from: "service@bank.test <x@other.test>" }],
    silent: [
      { from: "orders@shop.test <x@mail.shop.test>" },
      { from: "x@other.test" },
      { from: "A @ B <x@other.test>" },
    ],
  },
  LINK_IP: {
    speaks: [
      link("http://192.0.2.1/a"),
      link("http://3221225985"),
      link("http://0xc0.2.1"),
      link("https://[2001:db8::1]/"),
    ],
    silent: [link("https://192.0.2.1.shop.test/"), link("tel:192.0.2.1"), link("http://192.0.2.1.999")],
  },
  LINK_MISMATCH: {
    speaks: [link("https://other.test/", "https://bank.test/login"), link("https://other.test/", "www.bank.test")],
    silent: [
      link("https://login.bank.test/", "https://bank.test"),
      link("https://a.bank.co.uk/", "www.bank.co.uk"),
      link("https://other.test/", "Node.js"),
      link("https://other.test/", "invoice.pdf"),
      link("mailto:a@other.test", "www.bank.test"),
    ],
  },
  LINK_BORROWS_NAME: {
    speaks: [link("https://other.test/", "https://www.paypal.com/")],
    silent: [link("https://pay.paypal.com/", "https://paypal.com"), link("https://other.test/", "https://bank.test")],
  },
  LINK_IMITATES: {
    speaks: [
      link("https://paypa1.com/"),
      link("https://pаypal.com/"),
      link("https://xn--pypal-4ve.com/"),
      link("https://paypal.com.shop.test/"),
      link("https://login-paypal.test/"),
      link("https://rnicrosoft.com/"),
      link("https://amázon.com"),
    ],
    silent: [
      link("https://www.paypal.com/"),
      link("https://amazon.co.uk/"),
      link("https://apple-tree.test/"),
      link("https://login.shop.test/"),
      link("https://pineapple.test/"),
    ],
  },
  LINK_SHORTENED: {
    speaks: [link("https://bit.ly/x"), link(`https://b${"&shy;".repeat(64)}it.ly/x`)],
    silent: [link("https://notbit.ly/x")],
  },
  LINK_EXECUTABLE: { speaks: [link("https://a.test/x.exe?y=1")], silent: [link("https://a.test/x.exempt")] },
  LINK_POSING_FILE: { speaks: [link("https://a.test/x.pdf.exe")], silent: [link("https://a.test/x.exe")] },
  LINK_USER: { speaks: [link("https://bank.test@other.test/")], silent: [link("https://bank.test/@ann")] },
  LINK_PORT: { speaks: [link("http://a.test:8080/")], silent: [link("http://a.test:80/"), link("https://a.test:443")] },
  LINK_SCRIPT: {
    speaks: [link("javascript:alert(1)"), link(" JaVaScRiPt:x"), link("java\nscript:x"), link("&#106;avascript:x")],
    silent: [link("https://a.test/javascript:x")],
  },
  LINK_ALONE: {
    speaks: [{ alone: '<a href="https://a.test">Open</a>' }, { alone: "https://a.test/x" }],
    silent: [{ alone: "<p>See you at three</p>" }, link("https://a.test")],
  },
  GTUBE: {
    speaks: [
      { html: "XJS*C4JDBQADN1.NSBN3*2IDNEN*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X" },
      { html: "<b></b>XJS*C4JDBQADN1.NSBN3*<i>2IDNEN</i>*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X" },
      { subject: "YJS*C4JDBQADN1.NSBN3*2IDNEN*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X" },
    ],
    silent: [{ html: "GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL" }],
  },
  BODY_CAPITALS: { speaks: [{ alone: `<p>${LONG.toUpperCase()}</p>` }], silent: [{ html: "<p>USA, NATO</p>" }] },
  BODY_SHOUTS: {
    speaks: [{ html: "Now!! Yes!!" }, { alone: "One! Two! Three! Four!" }],
    silent: [{ html: "Welcome! Enjoy!!" }, { html: LONG + "One! Two! Three! Four!" }],
  },
  HIDDEN_TEXT: {
    speaks: [
      { html: `<div style="display:none">${LONG}</div>` },
      { html: `<div style="visibility: hidden"><b>${LONG}</b></div>` },
      { html: `<div style="max-height:0;overflow:hidden">${LONG}</div>` },
      { html: `<div style="position:absolute;left:-9999px">${LONG}</div>` },
    ],
    silent: [
      { html: `<div style="display:none">A preview line</div>${LONG}` },
      { html: `<div style="display:none"></div>${LONG}` },
      { html: `<div style="display:none">${"&zwnj;&nbsp;".repeat(400)}</div>` },
      { html: `<style>${LONG}</style><title>${LONG}</title>` },
    ],
  },
  HIDDEN_MOST: {
    speaks: [{ html: `<div style="display:none">${LONG}</div>` }],
    silent: [{ html: `<div style="display:none">${LONG}</div>${LONG}` }],
  },
  CAMOUFLAGED_TEXT: {
    speaks: [
      { html: `<p style="color:#fff">${LONG}</p>` },
      { html: `<p style="color: rgb(255, 255, 254) !important">${LONG}</p>` },
      { html: `<p style="font-size:0">${LONG}</p>` },
      { html: `<p style="font-size:1px"><b>${LONG}</b></p>` },
      { html: `<font color=white>${LONG}</font>` },
      { html: `<table bgcolor="#123456"><tr><td><span style="color:#123456">${LONG}</span></td></tr></table>` },
      { html: `<p style="color:transparent">${LONG}</p>` },
    ],
    silent: [
      { html: `<p style="color:#fff;background:#000 none">${LONG}</p>` },
      { html: `<table bgcolor="#123456"><tr><td style="color:white">${LONG}</td></tr></table>` },
      { html: `<div style="font-size:0"><p style="font-size:14px">${LONG}</p></div>` },
      { html: `<div style="background:url(a.png)"><p style="color:#fff">${LONG}</p></div>` },
      { html: `<p style="color:#fff">Hello</p>${LONG}` },
      { html: `<p style="color:#777777">${LONG}</p>` },
    ],
  },
  BROKEN_WORDS: {
    speaks: [
      { html: "v<!-- -->iag<!-- -->r<!-- -->a" },
      { html: "v<b></b>iag<i></i>r<span></span>a" },
      { html: 'v<i style="display:none">x</i>iag<i style="display:none">x</i>r<i style="display:none">x</i>a' },
      { html: "v\u200biag\u200br\u200ba" },
    ],
    silent: [
      { html: "<!-- a --><p>one</p><!-- b --><p>two</p><!-- c --><p>three</p><!-- d -->" },
      { html: "<b>o</b>ne <i>t</i>wo <u>t</u>hree <b>f</b>our" },
      { html: `क्${JOINER}ष क्${JOINER}ष क्${JOINER}ष` },
    ],
  },
  DISGUISED_WORDS: {
    speaks: [{ html: "cheap V!agra" }, { html: "your fr33 things" }, { html: "pr0fit" }, { html: "c-a-s-h" }],
    silent: [{ html: "MP3 and H2O, B2B, 4K" }, { html: "free! cash!! $money" }, { html: "the cash-desk" }],
  },
  MIXED_SCRIPTS: {
    speaks: [{ html: "Your аccount at the bаnk" }],
    silent: [{ html: "Ваш счёт в Bank" }, { html: "the α-decay of a μSv" }, { html: "Πρόσφορα και Mail" }],
  },
  STYLED_LETTERS: {
    speaks: [{ html: "𝐂𝐥𝐚𝐢𝐦 𝐲𝐨𝐮𝐫 𝐩𝐫𝐢𝐳𝐞" }, { html: "ＣＬＡＩＭ ＹＯＵＲＳ" }],
    silent: [{ html: "let 𝑥 be in ℝ" }, { html: "全角ＡＢＣ" }],
  },
  REVERSED_TEXT: { speaks: [{ html: "\u202eexe.fdp" }], silent: [{ html: "\u2067שלום\u2069 \u202bשלום\u202c" }] },
  BIG_MONEY: {
    speaks: [{ html: "$2,500,000" }, { html: "USD 10.000.000" }, { html: "€1 500 000" }],
    silent: [{ html: "$2,500.00" }, { html: "order 2,500,000" }, { html: "12.500,00 €" }],
  },
  ENCODED_TEXT: {
    speaks: [{ html: "Aa1".repeat(80) }],
    silent: [{ html: "Aa1 ".repeat(80) }, { html: "長".repeat(300) }, { html: `https://a.test/?${"Aa1".repeat(80)}` }],
  },
  PLACEHOLDER_LEFT: {
    speaks: [
      { html: "Dear {{.name}}," },
      { subject: "Hi {{first_name}}" },
      { html: "*|FNAME|*" },
      { html: "[First Name]" },
    ],
    silent: [{ html: "a {b} [c] %d 100%" }, { html: "{{" }],
  },
  IMAGE_ONLY: {
    speaks: [{ alone: '<img src="https://a.test/x.png"> Look at this' }],
    silent: [{ alone: '<img src="https://a.test/p.gif" width="1" height="1"> Look' }, { html: '<img src="x">' }],
  },
  IMAGES_MANY: {
    speaks: [{ html: '<img src="x">'.repeat(12) }],
    silent: [{ html: `${'<img src="x">'.repeat(12)}${LONG}` }],
  },
  FORM: { speaks: [{ html: "<form></form>" }], silent: [{ html: "<!-- <form> -->" }] },
  PASSWORD_FIELD: { speaks: [{ html: "<input type=PASSWORD>" }], silent: [{ html: "<input type=text>password" }] },
  FRAME: { speaks: [{ html: "<iframe src=x></iframe>" }], silent: [{ html: "&lt;iframe&gt;" }] },
  REFRESH: {
    speaks: [{ html: '<meta http-equiv="Refresh" content="0">' }],
    silent: [{ html: '<meta charset="utf-8">' }],
  },
  SCRIPT_HANDLER: { speaks: [{ html: '<p OnClick="x()">' }], silent: [{ html: '<p on="x" one="y">' }] },
  DATA_ATTACHMENT: {
    speaks: [link("data:text/html,x"), { html: '<embed src="data:image/svg+xml,x">' }],
    silent: [{ html: '<img src="data:image/png;base64,AA==">' }, link("https://a.test/data:text/html")],
  },
  UNBALANCED_HTML: {
    speaks: [{ html: "<div>".repeat(9) }, { html: "</b>".repeat(9) }, { html: "<b><div></b>".repeat(9) }],
    silent: [{ html: "<p>a<p>b<br><li>c<tr><td>d<img><input>".repeat(9) }, { html: "<div><b>x</b></div>".repeat(20) }],
  },
  TOO_LONG: { speaks: [{ html: " ".repeat(1024 * 1024) }], silent: [{ html: " ".repeat(512 * 1024) }] },
};

describe.each(Object.entries(CASES))("%s", (name, { speaks, silent }) => {
  test.each(speaks.map((part) => [part] as const))("speaks of %p", async (part) => {
    expect(await findMatchedRules(part)).toContain(name);
  });
  test.each(silent.map((part) => [part] as const))("is silent about %p", async (part) => {
    expect(await findMatchedRules(part)).not.toContain(name);
  });
});

describe("the rules", () => {
  test("each have cases of their own, or a sample that sets them off", async () => {
    const shown = new Set(Object.keys(CASES));
    for (const { subject, html } of SPAM)
      for (const rule of await findMatchedRules({ subject, alone: html })) shown.add(rule);
    expect(SPAM_RULES.map(({ name }) => name).filter((name) => !shown.has(name))).toEqual([]);
  });

  test("have names and points that can be kept, counted and read", () => {
    const names = SPAM_RULES.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const { name, score, description } of SPAM_RULES) {
      expect(name).toMatch(/^[A-Z][A-Z0-9_]{2,39}$/);
      expect(score).toBeGreaterThan(0);
      expect(Math.round(score * 100) / 100).toBe(score);
      expect(description).toMatch(/^[A-Z].{10,100}[^.]$/);
    }
  });

  test("give a message the same verdict in whatever order they are asked, and whenever", async () => {
    const backwards = new BuiltinSpamFilter(SPAM_RULES.toReversed());
    const halves = new BuiltinSpamFilter([...SPAM_RULES.slice(20), ...SPAM_RULES.slice(0, 20)]);
    for (const { subject, html } of [...SPAM, ...HAM]) {
      const message = { subject, html, text: null, from: "a@shop.test", to: "ann@good.test" };
      const verdict = await filter.score(message);
      expect(await filter.score(message)).toEqual(verdict);
      expect(await backwards.score(message)).toEqual(verdict);
      expect(await halves.score(message)).toEqual(verdict);
    }
  });

  test("are on their page as they are", async () => {
    const page = await Bun.file(new URL("../../../docs/spam-rules.md", import.meta.url)).text();
    // `bun infra/spam-rules-page.ts` regenerates it.
    expect(page).toBe(spamRulesPage());
  });

  test("see what only the text alternative says where the HTML says nothing", async () => {
    const text = "You have won the lottery: http://192.0.2.1/";
    expect(await findMatchedRules({ alone: "<div> </div>", text })).toEqual(
      expect.arrayContaining(["LOTTERY", "LINK_IP"]),
    );
    expect(await findMatchedRules({ text: "Buy viagra" })).toContain("DRUGS");
    for (const alone of [
      "<head><p>Buy viagra",
      "<head><title>Hi</title>Buy viagra</head>",
      "<head><noscript><b>Buy</b> viagra",
    ])
      expect(await findMatchedRules({ alone })).toContain("DRUGS");
    expect(
      await findMatchedRules({ alone: `<head><title>Buy viagra</title><style>/* viagra */</style>${WORDS}` }),
    ).not.toContain("DRUGS");
  });
});

describe("phrases", () => {
  test("are each found in a text of their own, in capitals and with marks around them", () => {
    const finder = new PhraseFinder(PHRASES);
    for (const [family, phrases] of Object.entries(PHRASES)) {
      for (const phrase of phrases) {
        const text = `Dear Ann, «${phrase.replace("*", "s").toUpperCase()}»! Yours.`;
        expect({ phrase, found: Array.from(finder.find([foldedWords(text)]).keys()) }).toMatchObject({
          found: expect.arrayContaining([family]),
        });
      }
    }
  });

  test("are not found across the ends of words", () => {
    const finder = new PhraseFinder({ one: ["free gift"], many: ["porn*"] });
    const found = (text: string) => Array.from(finder.find([foldedWords(text)]).keys());
    expect(found("carefree gifts, free gifted, a gift free")).toEqual([]);
    expect(found("FRÉE-GÍFT")).toEqual(["one"]);
    expect(found("fr\u200bee g\u00adift")).toEqual(["one"]);
    expect(found("pornography")).toEqual(["many"]);
    expect(found("popcorn por")).toEqual([]);
  });

  test("are found without the signs and strokes that their languages write", () => {
    const found = (text: string) => Array.from(new PhraseFinder(PHRASES).find([foldedWords(text)]).keys());
    expect(found("Wygrałeś samochód")).toContain("lottery");
    expect(found("Ödülünüzü alın")).toContain("lottery");
    expect(found("Heiße Frauen")).toContain("adult");
    expect(found("ÇA: VOUS AVEZ GAGNÉ")).toContain("lottery");
    expect(found("лёгкие деньги")).toContain("fastMoney");
  });

  test("count once, however often they are said", () => {
    const finder = new PhraseFinder({ drugs: ["viagra", "cialis"] });
    expect(finder.find([foldedWords("viagra viagra"), foldedWords("viagra cialis")]).get("drugs")).toBe(2);
  });
});
