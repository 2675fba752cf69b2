import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { accessibilityFindings, browserMissing, closeBrowser, openTab, type Reader } from "../support/browser.ts";
import { eventually } from "../support/eventually.ts";
import { DashboardWorld, JOB, OPERATOR_TOKEN } from "./support/dashboard-world.ts";

const missing = browserMissing();

setDefaultTimeout(300_000);

/** Each page, with its heading. */
const PAGES: readonly (readonly [string, RegExp])[] = [
  ["overview", /^Overview$/],
  ["tenants", /^Tenants$/],
  ["tenants/acme", /^Acme </],
  ["tenants/acme/keys", /^Acme </],
  ["tenants/acme/credentials", /^Acme </],
  ["tenants/acme/templates", /^Acme </],
  ["tenants/acme/templates/welcome", /^Acme </],
  ["tenants/acme/aliases", /^Acme </],
  ["tenants/acme/domains", /^Acme </],
  ["tenants/acme/tokens", /^Acme </],
  ["tenants/acme/suppressions", /^Acme </],
  ["tenants/acme/webhooks", /^Acme </],
  ["tenants/acme/usage", /^Acme </],
  ["messages", /^Messages$/],
  ["messages?tenant=acme", /^Messages$/],
  ["messages?who=ann%40example.com", /^Messages$/],
  [`messages/acme/${JOB}`, /^E-mail to …@example\.com$/],
  ["failures", /^Failures$/],
  ["failures?range=7d", /^Failures$/],
  ["webhooks", /^Webhooks$/],
  ["plans", /^Plans$/],
  ["overview?range=7d", /^Overview$/],
  ["usage", /^Usage$/],
  ["sandbox", /^Sandbox$/],
  ["operators", /^Operators$/],
  ["audit", /^Audit log$/],
  ["nowhere", /^Nothing is here$/],
];

const DESK: Reader = { width: 1280, colours: "light", language: "en-GB" };
const PHONE: Reader = { width: 375, colours: "dark", language: "en-GB" };
const TABLET: Reader = { width: 800, colours: "dark", language: "en-GB" };

/** Runs in the page: returns the traces of an attack. */
const TRACES = "[window.owned ?? null, document.querySelectorAll('[onerror], [onload], script:not([src])').length]";
const OVERFLOW = "((page) => page.scrollWidth - page.clientWidth)(document.documentElement)";
const SETTLED =
  "document.querySelector('h1') !== null && document.querySelector('.waiting') === null ? document.querySelector('h1').textContent : ''";

describe.skipIf(missing !== null)(`the dashboard${missing === null ? "" : ` (skipped: ${missing})`}`, () => {
  let world: DashboardWorld;
  beforeAll(async () => {
    world = await DashboardWorld.start();
  });
  afterAll(async () => {
    await closeBrowser();
    await world.stop();
  }, 90_000);

  async function signedIn(reader: Reader, token = OPERATOR_TOKEN): Promise<Bun.WebView> {
    const tab = await openTab(reader);
    await tab.cdp("Network.clearBrowserCookies");
    await tab.navigate(`${world.url}/dash`);
    await shows(tab, "button.primary", "Sign in");
    await tab.evaluate(`document.querySelector("#token").value = ${JSON.stringify(token)}`);
    await tab.click("button.primary");
    await settled(tab, /^Overview$/);
    return tab;
  }

  async function open(tab: Bun.WebView, page: string, heading: RegExp): Promise<void> {
    await tab.evaluate(`location.hash = ${JSON.stringify(`#/${page}`)}`);
    await settled(tab, heading);
  }

  test.each([DESK, PHONE])(
    "axe finds nothing on any page, nothing is too wide, and no attack runs: %j",
    async (reader) => {
      using tab = await signedIn(reader);
      for (const [page, heading] of PAGES) {
        await open(tab, page, heading);
        expect([page, await tab.evaluate(OVERFLOW)]).toEqual([page, 0]);
        expect([page, await findings(tab)]).toEqual([page, []]);
        expect([page, await tab.evaluate(TRACES)]).toEqual([page, [null, 0]]);
      }
    },
  );

  test("who may only look sees no button that changes something", async () => {
    using tab = await signedIn(DESK, world.readerToken);
    const changing = [
      "button.primary",
      "button.danger",
      "button.danger-quiet",
      "input:not([type=text],[type=date],[type=month],[type=search])",
    ];
    const seen: string[] = [];
    for (const [page, heading] of PAGES) {
      await open(tab, page, heading);
      const found = await tab.evaluate<readonly string[]>(
        `[...document.querySelectorAll("main :is(${changing.join()}, textarea)")].map((each) => each.textContent || each.name)`,
      );
      const isHarmless = (text: string) => ["Search", "Preview with these", "{}"].includes(text);
      seen.push(...found.filter((text) => !isHarmless(text)).map((text) => `${page}: ${text}`));
    }
    expect(seen).toEqual([]);
  });

  test("a wrong token is refused in words; a deep link survives the sign-in, and signing out ends it", async () => {
    using tab = await openTab(DESK);
    await tab.cdp("Network.clearBrowserCookies");
    await tab.navigate(`${world.url}/dash#/messages/acme/${JOB}`);
    await shows(tab, "h1", "Waybill");
    expect(await findings(tab)).toEqual([]);
    await tab.click("#token");
    await tab.type("a wrong one");
    await tab.press("Enter");
    await shows(tab, "[role=alert]", "the operator token is missing or wrong");
    await shows(tab, "[role=alert]", "Request ");
    await tab.evaluate("document.querySelector('#token').value = ''");
    await tab.click("#token");
    await tab.type(OPERATOR_TOKEN);
    await tab.press("Enter");
    await settled(tab, /^E-mail to/);
    expect(await tab.evaluate("document.cookie")).toBe("");
    await tab.click(".account button");
    await shows(tab, "h1", "Waybill");
    await tab.reload();
    await shows(tab, "button.primary", "Sign in");
  });

  test("why a message failed stands first, and what happened is told in order", async () => {
    using tab = await signedIn(DESK);
    await open(tab, `messages/acme/${JOB}`, /^E-mail to/);
    await shows(tab, ".outcome", "It failed: the mail server refused the message: 550 5.7.1");
    expect(
      await tab.evaluate("[...document.querySelectorAll('.timeline .badge')].map((each) => each.textContent)"),
    ).toEqual(["Accepted", "Try 1: put off at mx.example.com:25", "Try 2: failed for good at mx.example.com:25"]);
    await shows(tab, ".timeline .said", "“451 4.7.1 Try again later” Next try after 6 min.");
    await clickButton(tab, "Send it again");
    await eventually("it is sent again", () => world.retries.length > 0);
  });

  test("a message is shown in its own looks, runs nothing, leads nowhere and loads nothing", async () => {
    using tab = await signedIn(DESK);
    for (const [page, heading, button] of [
      [`messages/acme/${JOB}`, /^E-mail to/, "Show the content"],
      ["sandbox", /^Sandbox$/, null],
      ["tenants/acme/templates/welcome", /^Acme/, null],
    ] as const) {
      await open(tab, page, heading);
      if (button !== null) await clickButton(tab, button);
      await eventually("the message is dressed", () => tab.evaluate(`${FRAME}?.adoptedStyleSheets?.length > 0`));
      const look = await tab.evaluate(
        `[getComputedStyle(${FRAME}.querySelector("h1")).color, getComputedStyle(${FRAME}.querySelector("p")).color]`,
      );
      expect([page, look]).toEqual([page, ["rgb(10, 20, 30)", "rgb(1, 2, 3)"]]);
      const left = await tab.evaluate(
        `[...${FRAME}.querySelectorAll("script,form,button,iframe,[href],[onload],[onerror],[src]:not([src^='data:'])")].map(({ outerHTML }) => outerHTML)`,
      );
      expect([page, left]).toEqual([page, []]);
      expect(await tab.evaluate("document.querySelector('iframe').getAttribute('sandbox')")).toBe("allow-same-origin");
      // Markup that is inserted later does not run or load either.
      await tab.evaluate(
        `${FRAME}.body.insertAdjacentHTML("beforeend", '<img src="/dash/api/session" onerror="top.owned=1"><iframe src="/dash"></iframe>')`,
      );
      await tab.evaluate(
        `(() => { const s = ${FRAME}.createElement("script"); s.text = "top.owned=1"; ${FRAME}.body.append(s); })()`,
      );
      expect(await tab.evaluate("window.owned ?? null")).toBeNull();
    }
  });

  test("failed messages are counted before they are sent again, and a purge says how much it ends", async () => {
    using tab = await signedIn(DESK);
    await open(tab, "messages?tenant=acme&channel=email", /^Messages$/);
    await clickButton(tab, "Send failed ones again…");
    await shows(tab, "dialog", "37 failed messages are to be sent again");
    expect(await findings(tab)).toEqual([]);
    await clickButton(tab, "Send 37 messages again");
    await shows(tab, "dialog", "35 messages queued again, 2 skipped.");
    expect(world.retries.at(-1)).toEqual({ filter: { channel: "email" }, cursor: null });
    await open(tab, "tenants/acme", /^Acme/);
    await clickButton(tab, "Purge… E-mail");
    await shows(tab, "dialog", "1 unfinished job will end as failed");
    expect(await findings(tab)).toEqual([]);
  });

  test("a dialog takes the focus, closes with Esc, and gives the focus back; a new key is shown once", async () => {
    using tab = await signedIn(PHONE);
    await open(tab, "tenants/acme/keys", /^Acme/);
    // A new page takes the focus once it is painted.
    await eventually("the page has the focus", () =>
      tab.evaluate("document.activeElement === document.querySelector('main[tabindex]')"),
    );
    await tab.evaluate(
      "[...document.querySelectorAll('button')].find((each) => each.textContent === 'Make a key').focus()",
    );
    await tab.evaluate(
      `new MutationObserver(() => {
        window.wasOpen ??= document.querySelector("dialog")?.open;
      }).observe(document.body, { childList: true, subtree: true })`,
    );
    await tab.press("Enter");
    await shows(tab, "dialog h2", "Make a key");
    // From its first moment: an earlier close would have no effect.
    expect(await tab.evaluate("window.wasOpen")).toBe(true);
    await eventually("it has the focus", () =>
      tab.evaluate("document.querySelector('dialog').contains(document.activeElement)"),
    );
    await tab.press("Escape");
    await eventually("it is closed", () => tab.evaluate("document.querySelector('dialog') === null"));
    expect(await tab.evaluate("document.activeElement.textContent")).toBe("Make a key");
    await tab.press("Enter");
    await shows(tab, "dialog h2", "Make a key");
    await tab.evaluate("document.querySelector('dialog [name=name]').value = 'shop'");
    await tab.evaluate("document.querySelector('dialog [name=scopes][value=manage]').click()");
    await clickButton(tab, "Make");
    await shows(tab, "dialog code", "wb_");
    const key = await tab.evaluate<string>("document.querySelector('dialog code').textContent");
    expect((await world.front.fetch("/v1/jobs/x", { headers: { "x-api-key": key } })).status).toBe(404);
    await clickButton(tab, "Close");
    await shows(tab, "tbody th", "shop");
    await shows(tab, "tbody td", "send, read");
    await eventually("it is gone", () => tab.evaluate(`!document.body.textContent.includes(${JSON.stringify(key)})`));
  });

  test("a list says what became of a message: one that bounced after its hand-over has no sign of success", async () => {
    using tab = await signedIn(DESK);
    await open(tab, "messages?who=ann%40example.com", /^Messages$/);
    await shows(tab, "tbody .badge.bad", "bounced");
    expect(await tab.evaluate("document.querySelectorAll('tbody .badge.good').length")).toBe(0);
  });

  test("nothing of a list of messages is cut into syllables on a tablet", async () => {
    using tab = await signedIn(TABLET);
    await open(tab, "messages?who=ann%40example.com", /^Messages$/);
    await shows(tab, "tbody .long .cell-value", "the mail server refused");
    const width = "document.querySelector('tbody .long .cell-value').clientWidth";
    expect(await tab.evaluate<number>(width)).toBeGreaterThan(300);
  });

  test("erasing a mistyped address says that nothing was found, and erasing a known one what is gone", async () => {
    await world.front.operate("PUT", "/tenants/acme/suppressions/eve@example.com", { reason: "manual" });
    using tab = await signedIn(DESK);
    await open(tab, "tenants/acme/suppressions", /^Acme/);
    await clickButton(tab, "Erase a recipient…");
    for (const [recipient, words] of [
      ["evee@example.com", "Nothing of evee@example.com was found with this tenant, so nothing was erased"],
      ["eve@example.com", "Nothing is left of eve@example.com: 1 suppression erased."],
    ] as const) {
      await tab.evaluate(`document.querySelector("dialog [name=recipient]").value = ${JSON.stringify(recipient)}`);
      await clickButton(tab, "Erase");
      await shows(tab, "dialog [role=status]", words);
    }
  });

  test("an operator has a domain verified, and sees what was found", async () => {
    using tab = await signedIn(DESK);
    await open(tab, "tenants/acme/domains", /^Acme/);
    await shows(tab, ".card", "never verified");
    await clickButton(tab, "Verify now");
    await shows(tab, ".checks", "there is no DNS here");
    const { body } = await world.front.operate("GET", "/audit?tenant=acme&action=verifyTenantDomain");
    expect(body["rows"]).toMatchObject([{ target: expect.stringContaining("mail.example.com") }]);
  });

  test("a chart's axis has room for all digits", async () => {
    using tab = await signedIn(DESK);
    await eventually("the chart is drawn", () => tab.evaluate("document.querySelector('.plot .u-over') !== null"));
    const [room, needed] = await tab.evaluate<readonly [number, number]>(
      `(() => {
        const pen = document.createElement("canvas").getContext("2d");
        pen.font = "12px system-ui, sans-serif";
        return [document.querySelector(".plot .u-over").offsetLeft, pen.measureText("120,000").width];
      })()`,
    );
    // Beside the text, uPlot draws a tick of ten pixels and leaves five.
    expect(room).toBeGreaterThanOrEqual(needed + 15);
  });

  test("a tenant is found by a part of its name, on its page and where messages are searched", async () => {
    await world.front.operate("POST", "/tenants", { id: "zz-last", name: "Zebra & 100%_Sons" });
    using tab = await signedIn(DESK);
    for (const [page, heading, field, found] of [
      ["tenants", /^Tenants$/, "#find-tenant", "tbody th"],
      ["messages", /^Messages$/, "[name=tenant]", "datalist option[value=zz-last]"],
    ] as const) {
      await open(tab, page, heading);
      await tab.click(field);
      await tab.type("100%_s");
      await shows(tab, found, page === "tenants" ? "zz-last" : "Zebra & 100%_Sons (zz-last)");
      const count = `document.querySelectorAll("${found.split("[")[0]}").length`;
      await eventually("only it is offered", async () => (await tab.evaluate(count)) === 1);
    }
  });

  test("all tenants' usage of a month is on one page and in one file, with what is billed apart from operators' own", async () => {
    using tab = await signedIn(DESK);
    await open(tab, "usage?month=2026-10", /^Usage$/);
    const row = (of: string) =>
      tab.evaluate(
        `[...document.querySelectorAll("tbody tr")].find((each) => each.textContent.includes(${JSON.stringify(of)}))
          ?.querySelectorAll(".number .cell-value").values().map((each) => each.textContent).toArray().slice(-4)`,
      );
    await shows(tab, "tbody th", "All: 2 tenants");
    expect(await row("All: 2 tenants")).toEqual(["15", "19", "4", "920"]);
    expect(await row("acme")).toEqual(["10", "12", "2", "460"]);
    await tab.evaluate(
      "URL.createObjectURL = (blob) => { void blob.text().then((text) => { window.saved = text; }); return '#'; }",
    );
    await clickButton(tab, "As CSV");
    await eventually("it is saved", () => tab.evaluate("window.saved !== undefined"));
    expect(await tab.evaluate("window.saved")).toBe("tenant_id,month\r\nacme,2026-10\r\nother,2026-10\r\n");
  });

  test("a tenant is deleted by who writes its id once more", async () => {
    await world.front.operate("POST", "/tenants", { id: "gone", name: "Gone" });
    using tab = await signedIn(DESK);
    await open(tab, "tenants/gone", /^Gone$/);
    await clickButton(tab, "Delete…");
    await tab.evaluate("document.querySelector('dialog [name=confirm]').value = 'acme'");
    await clickButton(tab, "Delete");
    await shows(tab, "dialog [role=alert]", "Request ");
    await tab.evaluate("document.querySelector('dialog [name=confirm]').value = 'gone'");
    await clickButton(tab, "Delete");
    await settled(tab, /^Tenants$/);
    expect((await world.front.operate("GET", "/tenants/gone")).status).toBe(404);
  });

  test("an error of the API is shown as it is written, with the request's id", async () => {
    using tab = await signedIn(DESK);
    await open(tab, "tenants/acme/suppressions", /^Acme/);
    await clickButton(tab, "Suppress an address");
    await tab.evaluate("document.querySelector('dialog [name=address]').value = 'no address'");
    await clickButton(tab, "Suppress");
    const { error } = (
      await world.front.operate("PUT", "/tenants/acme/suppressions/no%20address", { reason: "manual" })
    ).body;
    await shows(tab, "dialog [role=alert]", String(error));
    await shows(tab, "dialog [role=alert]", "Request ");
  });

  test("the overview goes on when its stream is broken, and a session that is over leads to the sign-in", async () => {
    using tab = await signedIn(DESK);
    await shows(tab, ".freshness", "Live");
    world.isStreamBroken = true;
    await tab.reload();
    await shows(tab, ".freshness", "Every 10 s");
    world.isStreamBroken = false;
    await tab.cdp("Network.clearBrowserCookies");
    await tab.evaluate("location.hash = '#/operators'");
    await shows(tab, "button.primary", "Sign in");
  });

  test("the first key leads past the sections to the content", async () => {
    using tab = await signedIn(PHONE);
    await tab.reload();
    await settled(tab, /^Overview$/);
    await tab.press("Tab");
    await shows(tab, ":focus", "Skip to the content");
    await tab.press("Enter");
    expect(await tab.evaluate("document.activeElement.tagName")).toBe("MAIN");
  });

  test("nothing is too wide on a tablet", async () => {
    using tab = await signedIn(TABLET);
    for (const [page, heading] of PAGES) {
      await open(tab, page, heading);
      expect([page, await tab.evaluate(OVERFLOW)]).toEqual([page, 0]);
    }
  });
});

const FRAME = "document.querySelector('iframe')?.contentDocument";

async function clickButton(tab: Bun.WebView, label: string): Promise<void> {
  const found = `[...document.querySelectorAll("button")].findLast((each) => each.textContent === ${JSON.stringify(label)})`;
  await eventually(`there is a button ${label}`, () => tab.evaluate(`${found} !== undefined`));
  await tab.evaluate(`${found}.click()`);
}

/** The findings of axe. It cannot look into the frames of messages, which run no script. */
async function findings(tab: Bun.WebView): Promise<readonly string[]> {
  return (await accessibilityFindings(tab)).filter((finding) => !finding.startsWith("frame-tested: <iframe"));
}

/** Waits until the page has its heading and has loaded its resources. */
async function settled(tab: Bun.WebView, heading: RegExp): Promise<void> {
  let seen = "";
  await eventually(`the heading is ${heading}`, async () => {
    seen = await tab.evaluate<string>(SETTLED);
    return heading.test(seen);
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}; it is "${seen}"`);
  });
}

async function shows(tab: Bun.WebView, selector: string, text: string): Promise<void> {
  await eventually(`${selector} says ${text}`, () =>
    tab.evaluate(
      `[...document.querySelectorAll(${JSON.stringify(selector)})].some((each) => each.textContent.includes(${JSON.stringify(text)}))`,
    ),
  );
}
