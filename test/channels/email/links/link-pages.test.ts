import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { subscriptionPage } from "../../../../src/channels/email/links/link-pages.ts";
import { UnavailableError } from "../../../../src/domain/errors.ts";
import type { SuppressionReason } from "../../../../src/domain/jobs/job.ts";
import { BROWSER } from "../../../http/support/browser-headers.ts";
import { type Answer, Front, linkTokens } from "../../../http/support/front.ts";
import { eventually } from "../../../support/eventually.ts";
import { must } from "../../../support/must.ts";

const JOB = "01a1fd15-0a3f-702b-89f2-ebefa432acf3";
const ANN = "ann@example.com";
const SPANISH = { ...BROWSER, "accept-language": "es-MX,es;q=0.9,en;q=0.8" };

const wayOut = (tenantId: string) => linkTokens.sign({ purpose: "unsubscribe", tenantId, jobId: JOB, recipient: ANN });
const OUT = `/u/${wayOut("acme")}`;

let front: Front;
beforeAll(async () => {
  front = await Front.start();
});
beforeEach(async () => {
  front.queue.failure = null;
  front.database.isAway = false;
  await front.registry.deleteSuppression("acme", ANN);
});
afterAll(() => front.stop(), 90_000);

const get = (path: string, headers: Readonly<Record<string, string>> = BROWSER) => front.fetch(path, { headers });
const post = (path: string, headers: Readonly<Record<string, string>> = BROWSER) =>
  front.fetch(path, { method: "POST", headers });

/** Returns the status, language and heading of a page; fails if it is not a page. */
function checkPage({ status, headers, text }: Answer): readonly [number, string | null, string] {
  expect(headers.get("content-type")).toBe("text/html; charset=utf-8");
  const [, language = ""] = /<html lang="(\w+)">/.exec(text) ?? [];
  expect(headers.get("content-language")).toBe(language);
  expect(headers.get("vary")).toBe("Accept, Accept-Language");
  const headings = Array.from(text.matchAll(/<h1>([^<]*)<\/h1>/g), ([, heading = ""]) => heading);
  expect(headings).toHaveLength(1);
  const [heading = ""] = headings;
  expect(text).toContain(`<title>${heading}</title>`);
  return [status, language, heading];
}

/** The choices that the page's buttons offer. */
const choicesIn = (text: string) => Array.from(text.matchAll(/action="\?choice=(\w+)"/g), ([, choice]) => choice);

describe("unsubscribing", () => {
  test("is asked for, with the tenant's name and what follows, in the reader's language", async () => {
    const english = await get(OUT);
    expect(checkPage(english)).toEqual([200, "en", "Unsubscribe"]);
    expect(english.text).toContain("stop receiving emails from <bdi><strong>Acme</strong></bdi>?");
    expect(english.text).toContain("You can undo it on this page.");
    expect(english.text).toContain('<button type="submit">Unsubscribe</button>');
    const spanish = await get(OUT, SPANISH);
    expect(checkPage(spanish)).toEqual([200, "es", "Darse de baja"]);
    expect(spanish.text).toContain("dejar de recibir correos de <bdi><strong>Acme</strong></bdi>?");
    expect(spanish.text).toContain('<button type="submit">Darme de baja</button>');
  });

  test("is confirmed each time, and only to undo it is left", async () => {
    for (const _ of [1, 2]) {
      const english = await post(OUT);
      expect(checkPage(english)).toEqual([200, "en", "You are unsubscribed"]);
      expect(english.text).toContain("<bdi><strong>Acme</strong></bdi>");
      expect(choicesIn(english.text)).toEqual(["undo_all"]);
    }
    expect(checkPage(await post(OUT, SPANISH))).toEqual([200, "es", "Se ha dado de baja"]);
    expect(await front.registry.suppressionReason("acme", ANN)).toBe("unsubscribed");
  });

  test("is one call at a time, however often the link is repeated, and one change of the list until it is undone", async () => {
    const { registry, stores } = front;
    const { directory } = stores;
    const [put, reason, byId] = [registry.putSuppression, registry.suppressionReason, directory.byId.bind(directory)];
    const gate = Promise.withResolvers<void>();
    const seen = { posts: 0, puts: 0, reads: 0 };
    directory.byId = (...given) => {
      seen.posts += 1;
      return byId(...given);
    };
    registry.suppressionReason = (...given) => {
      seen.reads += 1;
      return reason(...given);
    };
    registry.putSuppression = async (...given) => {
      seen.puts += 1;
      await gate.promise;
      return put(...given);
    };
    try {
      const posts = Array.from({ length: 20 }, () => post(OUT));
      await eventually("all have come", () => seen.posts === 20);
      gate.resolve();
      for (const answer of await Promise.all(posts)) expect(answer.status).toBe(200);
      // The first call finds it neither by its address nor by its erased name; both correct the index.
      expect(seen).toEqual({ posts: 20, puts: 1, reads: 2 + 2 + 1 + 2 });
      await registry.deleteSuppression("acme", ANN);
      expect(checkPage(await post(OUT))).toEqual([200, "en", "You are unsubscribed"]);
      expect([await reason("acme", ANN), seen.puts]).toEqual(["unsubscribed", 2]);
    } finally {
      Object.assign(registry, { putSuppression: put, suppressionReason: reason });
      directory.byId = byId;
    }
  });

  test("is not asked for again once it is done", async () => {
    await post(OUT);
    for (const _ of [1, 2]) {
      const english = await get(OUT);
      expect(checkPage(english)).toEqual([200, "en", "You are already unsubscribed"]);
      expect(english.text).toContain("<bdi><strong>Acme</strong></bdi>");
      expect(choicesIn(english.text)).toEqual(["undo_all"]);
    }
    expect(checkPage(await get(OUT, SPANISH))).toEqual([200, "es", "Ya se había dado de baja"]);
  });

  test("is asked for where the address is suppressed for another reason, or by another tenant", async () => {
    const reasons: readonly SuppressionReason[] = ["bounced", "complained", "manual"];
    for (const reason of reasons) {
      await front.registry.putSuppression("acme", ANN, reason);
      expect([reason, ...checkPage(await get(OUT))]).toEqual([reason, 200, "en", "Unsubscribe"]);
    }
    await post(OUT);
    await front.registry.createTenant({ id: "other", name: "Other" });
    expect(checkPage(await get(`/u/${wayOut("other")}`))).toEqual([200, "en", "Unsubscribe"]);
  });

  test("is asked for while nobody can tell whether it is done", async () => {
    await post(OUT);
    front.database.isAway = true;
    expect(checkPage(await get(OUT))).toEqual([200, "en", "Unsubscribe"]);
  });

  test("is a page for programs too, in English", async () => {
    for (const headers of [{}, { accept: "*/*" }, { accept: "application/json" }]) {
      expect(checkPage(await get(OUT, headers))).toEqual([200, "en", "Unsubscribe"]);
      expect(checkPage(await post(OUT, headers))).toEqual([200, "en", "You are unsubscribed"]);
      await front.registry.deleteSuppression("acme", ANN);
    }
  });

  test("is undone by the reader, and nothing that others put on the list is", async () => {
    await post(OUT);
    const undone = await post(`${OUT}?choice=undo_all`);
    expect([...checkPage(undone), choicesIn(undone.text)]).toEqual([200, "en", "You are subscribed again", ["all"]]);
    expect(checkPage(await post(`${OUT}?choice=undo_topic`, SPANISH))).toEqual([200, "es", "Vuelve a estar suscrito"]);
    expect(await front.registry.suppressionReason("acme", ANN)).toBeNull();
    expect([...front.queue.suppressed]).toEqual([]);
    for (const reason of ["bounced", "complained", "manual"] as const) {
      await front.registry.putSuppression("acme", ANN, reason);
      await post(`${OUT}?choice=undo_all`);
      expect(await front.registry.suppressionReason("acme", ANN)).toBe(reason);
    }
  });

  test("is as without a choice where the address has another, or the message no topic", async () => {
    for (const query of ["?choice=topic", "?choice=", "?choice=constructor", "?utm=1", "?choice=all&choice=undo_all"]) {
      await front.registry.deleteSuppression("acme", ANN);
      expect([query, ...checkPage(await post(OUT + query))]).toEqual([query, 200, "en", "You are unsubscribed"]);
      expect(await front.registry.suppressionReason("acme", ANN)).toBe("unsubscribed");
    }
  });

  test("never shows the address, which the token hides", async () => {
    const pages = [await get(OUT), await post(OUT), await get(OUT), await get("/u/x")];
    for (const { text } of pages) expect(text).not.toMatch(/\bann\b|example\.com/);
  });
});

describe("unsubscribing from a topic", () => {
  const name = `${ANN}\tnews & offers`;
  const topical = { purpose: "unsubscribe topic", tenantId: "acme", jobId: JOB, recipient: ANN } as const;
  const FROM_TOPIC = `/u/${linkTokens.sign({ ...topical, topic: "news & offers" })}`;
  const reasons = () => Promise.all([name, ANN].map((one) => front.registry.suppressionReason("acme", one)));
  beforeEach(async () => {
    await front.registry.deleteSuppression("acme", name);
    front.queue.suppressed.clear();
  });

  test("is one of two choices on a page that changes nothing", async () => {
    const page = await get(FROM_TOPIC);
    expect([...checkPage(page), choicesIn(page.text)]).toEqual([200, "en", "Unsubscribe", ["topic", "all"]]);
    expect(page.text).toContain("Only “<bdi>news &#38; offers</bdi>”");
    expect((await get(FROM_TOPIC, SPANISH)).text).toContain("Solo «<bdi>news &#38; offers</bdi>»");
    expect((await get(`${FROM_TOPIC}?choice=all`)).status).toBe(200);
    expect(await reasons()).toEqual([null, null]);
  });

  test("is done at once by a mail program, for the topic alone", async () => {
    const body = new URLSearchParams({ "List-Unsubscribe": "One-Click" });
    const answer = await fetch(front.url + FROM_TOPIC, { method: "POST", body, redirect: "manual" });
    expect(answer.status).toBe(200);
    expect(await reasons()).toEqual(["unsubscribed", null]);
    expect([...front.queue.suppressed]).toEqual([`acme ${name}`]);
    const page = await get(FROM_TOPIC);
    const title = "You are already unsubscribed";
    expect([...checkPage(page), choicesIn(page.text)]).toEqual([200, "en", title, ["undo_topic", "all"]]);
    // Mail without a topic still comes: its page asks.
    expect(checkPage(await get(OUT))).toEqual([200, "en", "Unsubscribe"]);
  });

  test("and from everything are undone one after the other, each as it was done", async () => {
    const left = await post(`${FROM_TOPIC}?choice=topic`);
    expect([...checkPage(left), choicesIn(left.text)]).toEqual([
      200,
      "en",
      "You are unsubscribed",
      ["undo_topic", "all"],
    ]);
    const all = await post(`${FROM_TOPIC}?choice=all`, SPANISH);
    expect([...checkPage(all), choicesIn(all.text)]).toEqual([200, "es", "Se ha dado de baja", ["undo_all"]]);
    expect(await reasons()).toEqual(["unsubscribed", "unsubscribed"]);
    // A mail program's one-click request does not say that other emails still come.
    expect(choicesIn((await post(FROM_TOPIC)).text)).toEqual(["undo_all"]);
    const back = await post(`${FROM_TOPIC}?choice=undo_all`);
    expect(choicesIn(back.text)).toEqual(["undo_topic", "all"]);
    expect(await reasons()).toEqual(["unsubscribed", null]);
    const again = await post(`${FROM_TOPIC}?choice=undo_topic`);
    expect([...checkPage(again), choicesIn(again.text)]).toEqual([200, "en", "You are subscribed again", ["topic"]]);
    expect([await reasons(), ...front.queue.suppressed]).toEqual([[null, null]]);
  });

  test("is refused where the token is for another purpose, also one that a former release would read", async () => {
    const { topic, ...all } = { ...topical, topic: "x" };
    expect(linkTokens.read("unsubscribe", linkTokens.sign({ ...all, topic }))).toBeNull();
    expect(linkTokens.read("unsubscribe topic", wayOut("acme"))).toBeNull();
  });
});

describe("a broken link", () => {
  const BROKEN = [
    "x",
    "%zz",
    `${wayOut("acme")}A`,
    wayOut("acme").slice(0, -1),
    wayOut("gone"),
    "A".repeat(9_000),
    "<script>",
  ];

  test("is a page that says so, with the same status, whatever is wrong with it", async () => {
    const shown = new Set<string>();
    for (const token of BROKEN) {
      for (const answer of [await get(`/u/${token}`), await post(`/u/${token}`)]) {
        expect(checkPage(answer)).toEqual([404, "en", "This link does not work"]);
        expect(answer.text).not.toContain("<form");
        shown.add(answer.text);
      }
      expect(checkPage(await get(`/u/${token}`, SPANISH))).toEqual([404, "es", "Este enlace no funciona"]);
      const click = await get(`/t/c/${token}`);
      expect(checkPage(click)).toEqual([404, "en", "This link does not work"]);
      expect(click.headers.get("location")).toBeNull();
      expect(checkPage(await get(`/t/c/${token}`, SPANISH))).toEqual([404, "es", "Este enlace no funciona"]);
    }
    expect(shown.size).toBe(1);
    expect(await front.registry.suppressionReason("acme", ANN)).toBeNull();
  });

  test("is JSON for programs, as ever", async () => {
    for (const headers of [{}, { accept: "*/*" }, { accept: "application/json" }]) {
      const click = await get("/t/c/x", headers);
      expect([click.status, click.text]).toEqual([404, '{"error":"there is no such link"}']);
      for (const answer of [await get("/u/x", headers), await post("/u/x", headers)]) {
        expect([answer.status, answer.text]).toEqual([404, '{"error":"there is no such link"}']);
        expect(answer.headers.get("content-type")).toBe("application/json");
        expect(answer.headers.has("vary")).toBe(false);
      }
    }
  });

  test("is a page for HEAD too, without a body", async () => {
    const { status, headers, text } = await front.fetch("/t/c/x", { method: "HEAD", headers: BROWSER });
    expect([status, headers.get("content-type"), text]).toEqual([404, "text/html; charset=utf-8", ""]);
  });

  test("leaves the pixel the picture that it is", async () => {
    const { status, headers } = await get("/t/o/x.gif");
    expect([status, headers.get("content-type")]).toEqual([200, "image/gif"]);
  });
});

describe("a failure of ours", () => {
  test("is a page from which the reader can try again, and JSON for programs", async () => {
    front.queue.failure = new UnavailableError("redis is away");
    const failed = await post(OUT);
    expect(checkPage(failed)).toEqual([500, "en", "You may still be subscribed"]);
    expect(failed.text).toContain('<button type="submit">Try again</button>');
    expect(checkPage(await post(OUT, SPANISH))).toEqual([500, "es", "Es posible que aún no se haya dado de baja"]);
    const json = await post(OUT, {});
    expect([json.status, json.text]).toEqual([
      500,
      '{"error":"a part of the service cannot be reached at the moment: try again"}',
    ]);
    front.queue.failure = null;
    expect((await post(OUT)).status).toBe(200);
  });

  test("tells nothing internal, also where the page itself cannot be made", async () => {
    await front.forgetAcme();
    front.database.isAway = true;
    const failed = await get(OUT);
    expect(checkPage(failed)).toEqual([500, "en", "Something went wrong"]);
    expect(failed.text).not.toMatch(/postgres|registry|server/i);
    expect(checkPage(await get(OUT, SPANISH))).toEqual([500, "es", "Algo ha fallado"]);
  });
});

describe("a tenant's name", () => {
  const nameIn = (text: string) => /<bdi><strong>([^<]*)<\/strong><\/bdi>/.exec(text)?.[1];
  const STATES = [null, "news"].flatMap((topic) =>
    [false, true].flatMap((hasLeftAll) => [false, true].map((hasLeftTopic) => ({ topic, hasLeftAll, hasLeftTopic }))),
  );
  const PAGES = STATES.flatMap((state) => (["left", "returned", null] as const).map((done) => ({ state, done })));
  const textsFor = (tenantName: string) =>
    PAGES.flatMap(({ state, done }) => Object.values(subscriptionPage({ ...state, tenantName }, done))).map(
      ({ main }) => main.text,
    );

  test.each([
    [
      "markup",
      `<img src=x onerror="alert('1')">&amp;`,
      "&#60;img src=x onerror=&#34;alert(&#39;1&#39;)&#34;&#62;&#38;amp;",
    ],
    [
      "an end of its element",
      "</strong></bdi></p><h1>Hacked</h1>",
      "&#60;/strong&#62;&#60;/bdi&#62;&#60;/p&#62;&#60;h1&#62;Hacked&#60;/h1&#62;",
    ],
    ["a placeholder", "{{.name}} ${name} $& $1", "{{.name}} ${name} $&#38; $1"],
    ["marks that reverse text", "\u202egnp.\u2066exe\u2069\u202c\u200f Acme\u061c", "gnp.exe Acme"],
    ["Hebrew and Arabic", "שלום Acme عالم", "שלום Acme عالم"],
    ["line ends and other control characters", "Acme\r\n\t\u0000\u0085\u2028Ltd", "Acme Ltd"],
    ["characters that nobody sees", "Ac\u200b\u2060\ufeff\u00adme\u{e0041}", "Acme"],
    ["joiners that a script and an emoji need", "می\u200cخواهم 👩\u200d💻", "می\u200cخواهم 👩\u200d💻"],
    ["accents", "Cafe\u0301 Ñandú Việt", "Cafe\u0301 Ñandú Việt"],
    ["a pile of accents", `Z${"\u0316".repeat(500)}a`, `Z${"\u0316".repeat(4)}a`],
    ["half a character", "Acme\ud800", "Acme\ufffd"],
  ])("with %s is shown as text", (_, name, expected) => {
    expect(textsFor(name).map(nameIn)).toEqual(textsFor(name).map(() => expected));
  });

  test.each(["x", "👩", "w ", "é"])("of 10,000 characters is cut short: %p", (char) => {
    for (const text of textsFor(char.repeat(10_000))) {
      const name = nameIn(text) ?? "";
      expect(Array.from(name).length).toBeLessThanOrEqual(100);
      expect(name).toEndWith("…");
      expect(name.isWellFormed()).toBe(true);
      expect(text.length).toBeLessThan(1_400);
    }
  });

  test.each(["", " \u3000 ", "\u202e\u2069", "\u200d\u200d", "\u0301", "\u3164"])(
    "of which nothing can be seen is left out: %p",
    (name) => {
      for (const text of textsFor(name)) {
        expect(nameIn(text)).toBeUndefined();
        expect(text).toMatch(/this sender|este remitente/);
      }
    },
  );

  test("is the one that it has now", async () => {
    const path = `/u/${wayOut("renamed")}`;
    await must(front.registry.createTenant({ id: "renamed", name: "<i>Before" }));
    expect(nameIn((await get(path)).text)).toBe("&#60;i&#62;Before");
    await must(front.registry.changeTenant("renamed", { name: "After" }));
    expect(nameIn((await get(path)).text)).toBe("After");
  });
});
