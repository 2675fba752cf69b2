import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { UnavailableError } from "../../src/domain/errors.ts";
import {
  accessibilityFindings,
  browserMissing,
  closeBrowser,
  isShown,
  leave,
  openTab,
  type Reader,
} from "../support/browser.ts";
import { eventually } from "../support/eventually.ts";
import { Front, linkTokens } from "./support/front.ts";

const missing = browserMissing();

setDefaultTimeout(90_000);

const JOB = "01a1fd15-0a3f-702b-89f2-ebefa432acf3";
const wayOut = (tenantId: string, recipient: string) =>
  `/u/${linkTokens.sign({ purpose: "unsubscribe", tenantId, jobId: JOB, recipient })}`;
const OUT = wayOut("acme", "ann@example.com");
const ofTopic = (recipient: string, topic = "product news") =>
  `/u/${linkTokens.sign({ purpose: "unsubscribe topic", tenantId: "acme", jobId: JOB, recipient, topic })}`;
const PATHS = [
  "/",
  "/nope",
  "/t/c/x",
  "/u/x",
  OUT,
  wayOut("acme", "out@example.com"),
  wayOut("long", "ann@example.com"),
  ofTopic("ann@example.com"),
  ofTopic("ann@example.com", "w".repeat(64)),
  ofTopic("left@example.com"),
];

const READERS: readonly Reader[] = [
  { width: 375, colours: "light", language: "en-GB" },
  { width: 375, colours: "dark", language: "es-MX" },
  { width: 768, colours: "light", language: "es-MX" },
  { width: 768, colours: "dark", language: "en-GB" },
  { width: 1440, colours: "light", language: "en-GB" },
  { width: 1440, colours: "dark", language: "es-MX" },
];

/** Pixels that the window lacks, the page's language, and its background. */
const LOOK =
  "((page) => [page.scrollWidth - page.clientWidth, page.lang, getComputedStyle(document.body).backgroundColor])(document.documentElement)";

describe.skipIf(missing !== null)(`in a browser${missing === null ? "" : ` (skipped: ${missing})`}`, () => {
  let front: Front;
  beforeAll(async () => {
    front = await Front.start();
    await front.registry.createTenant({ id: "long", name: "W".repeat(10_000) });
    await front.registry.putSuppression("acme", "out@example.com", "unsubscribed");
    await front.registry.putSuppression("acme", "left@example.com\tproduct news", "unsubscribed");
  });
  beforeEach(async () => {
    front.queue.failure = null;
    await front.registry.deleteSuppression("acme", "ann@example.com");
  });
  afterAll(async () => {
    await closeBrowser();
    await front.stop();
  }, 90_000);

  test.each(READERS)("axe finds nothing, and nothing is wider than the window: %j", async (reader) => {
    using tab = await openTab(reader);
    for (const path of PATHS) {
      await tab.navigate(front.url + path);
      expect([path, await accessibilityFindings(tab)]).toEqual([path, []]);
      const [overflow, language, background] = await tab.evaluate<readonly [number, string, string]>(LOOK);
      expect([path, overflow, language]).toEqual([path, 0, reader.language.slice(0, 2)]);
      // The style is in force: the policy allows it.
      const expected = reader.colours === "dark" ? "rgb(16, 20, 27)" : "rgb(244, 246, 249)";
      expect([path, background]).toEqual([path, expected]);
    }
  });

  test("a reader unsubscribes with the keyboard, finds it done, and sees where the focus is", async () => {
    using tab = await openTab({ width: 375, colours: "light", language: "en" });
    await tab.navigate(front.url + OUT);
    await tab.press("Tab");
    const focus = await tab.evaluate(
      "(({ tagName, offsetHeight }, { outlineStyle, outlineWidth }) => ({ tagName, isTall: offsetHeight >= 44, outlineStyle, outlineWidth }))(document.activeElement, getComputedStyle(document.activeElement))",
    );
    expect(focus).toEqual({ tagName: "BUTTON", isTall: true, outlineStyle: "solid", outlineWidth: "3px" });
    await leave(tab, () => tab.press("Enter"));
    await titled(tab, "You are unsubscribed");
    expect(await front.registry.suppressionReason("acme", "ann@example.com")).toBe("unsubscribed");
    await tab.navigate(front.url + OUT);
    await titled(tab, "You are already unsubscribed");
  });

  test("a reader leaves a topic with the keyboard, then everything, and takes both back", async () => {
    using tab = await openTab({ width: 375, colours: "light", language: "en" });
    await tab.navigate(front.url + ofTopic("eve@example.com"));
    await tab.press("Tab");
    await leave(tab, () => tab.press("Enter"));
    await titled(tab, "You are unsubscribed");
    expect(await front.registry.suppressionReason("acme", "eve@example.com\tproduct news")).toBe("unsubscribed");
    for (const [choice, title] of [
      ["all", "You are unsubscribed"],
      ["undo_all", "You are already unsubscribed"],
      ["undo_topic", "You are subscribed again"],
      ["topic", "You are unsubscribed"],
    ] as const) {
      await leave(tab, () => tab.click(`form[action="?choice=${choice}"] button`));
      await titled(tab, title);
      expect(await accessibilityFindings(tab)).toEqual([]);
    }
  });

  test("a reader whose click fails clicks again on the page that says so", async () => {
    using tab = await openTab({ width: 375, colours: "dark", language: "es" });
    await tab.navigate(front.url + OUT);
    front.queue.failure = new UnavailableError("redis is away");
    await leave(tab, () => tab.click("button"));
    await titled(tab, "Es posible que aún no se haya dado de baja");
    expect(await accessibilityFindings(tab)).toEqual([]);
    front.queue.failure = null;
    await leave(tab, () => tab.click("button"));
    await titled(tab, "Se ha dado de baja");
    expect(await accessibilityFindings(tab)).toEqual([]);
  });
});

async function titled(tab: Bun.WebView, title: string): Promise<void> {
  await eventually(`the page is "${title}"`, () => isShown(tab, title));
}
