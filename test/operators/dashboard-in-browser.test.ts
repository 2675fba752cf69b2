import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { accessibilityFindings, browserMissing, closeBrowser, openTab, type Reader } from "../support/browser.ts";
import { eventually } from "../support/eventually.ts";
import { DashboardWorld, JOB, OPERATOR_TOKEN } from "./support/dashboard-world.ts";

const missing = browserMissing();

setDefaultTimeout(120_000);

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
  ["tenants/acme/usage", /^Acme </],
  ["messages", /^Messages$/],
  ["messages?tenant=acme", /^Messages$/],
  ["messages?who=ann%40example.com", /^Messages$/],
  [`messages/acme/${JOB}`, /^E-mail to …@example\.com$/],
  ["sandbox", /^Sandbox$/],
  ["operators", /^Operators$/],
  ["audit", /^Audit log$/],
  ["nowhere", /^Nothing is here$/],
];

const DESK: Reader = { width: 1280, colours: "light", language: "en-GB" };
const PHONE: Reader = { width: 375, colours: "dark", language: "en-GB" };
const TABLET: Reader = { width: 800, colours: "dark", language: "en-GB" };

/** Runs in the page: what an attack would leave behind. */
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
  }, 15_000);

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

  test.each([DESK, PHONE])("axe finds nothing on any page, nothing is too wide, and no attack runs: %j", async (reader) => {
    using tab = await signedIn(reader);
    for (const [page, heading] of PAGES) {
      await open(tab, page, heading);
      expect([page, await tab.evaluate(OVERFLOW)]).toEqual([page, 0]);
      expect([page, await accessibilityFindings(tab)]).toEqual([page, []]);
      expect([page, await tab.evaluate(TRACES)]).toEqual([page, [null, 0]]);
    }
  });

  test("nothing is too wide on a tablet", async () => {
    using tab = await signedIn(TABLET);
    for (const [page, heading] of PAGES) {
      await open(tab, page, heading);
      expect([page, await tab.evaluate(OVERFLOW)]).toEqual([page, 0]);
    }
  });
});

/** Waits until the page has its heading and everything that it loads. */
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
