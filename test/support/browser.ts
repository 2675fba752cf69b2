import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdtemp, readlink, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { eventually } from "./eventually.ts";

const BINARY = "/usr/bin/chromium";

/** A reader's settings for pages. */
export interface Reader {
  /** Pixels. */
  readonly width: number;
  readonly colours: "light" | "dark";
  /** In the form of `Accept-Language`. */
  readonly language: string;
}

/** Returns why no browser can run here, or null. */
export function browserMissing(): string | null {
  return existsSync(BINARY) ? null : `chromium is not installed (${BINARY})`;
}

/** The folder of the browser's profile, while there is one. */
let profile: string | null = null;

/** A tab of a headless Chromium that all tabs of this process share. */
export async function openTab({ width, colours, language }: Reader): Promise<Bun.WebView> {
  profile ??= await mkdtemp(join(tmpdir(), "waybill-browser-"));
  const tab = new Bun.WebView({
    width,
    height: 700,
    dataStore: { directory: profile },
    // Its own sandbox does not work for root, nor in most containers.
    backend: { type: "chrome", url: false, path: BINARY, argv: ["--no-sandbox", "--disable-dev-shm-usage"] },
  });
  await tab.navigate("about:blank");
  await tab.cdp("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: colours }] });
  await tab.cdp("Network.enable");
  await tab.cdp("Network.setExtraHTTPHeaders", { headers: { "Accept-Language": language } });
  return tab;
}

/** Ends the browser with all its tabs, and removes its files. */
export async function closeBrowser(): Promise<void> {
  if (profile === null) return;
  const folder = profile;
  // It keeps a socket elsewhere.
  const socket = await readlink(join(folder, "SingletonSocket"));
  Bun.WebView.closeAll();
  // Its processes outlive that a little, and would recreate their files.
  await eventually("the browser ends", () => !isNamedByProcess(folder));
  for (const left of [folder, dirname(socket)]) await rm(left, { recursive: true, force: true });
  profile = null;
}

/** Whether a running process has the text in its command line. */
function isNamedByProcess(text: string): boolean {
  return readdirSync("/proc").some((entry) => {
    try {
      return /^\d+$/.test(entry) && readFileSync(`/proc/${entry}/cmdline`, "utf8").includes(text);
    } catch {
      // It has ended meanwhile.
      return false;
    }
  });
}

/**
 * Runs an action that leads to another page, and marks the current page, so that {@link isShown} does not take it for
 * the next.
 */
export async function leave(tab: Bun.WebView, act: () => Promise<unknown>): Promise<void> {
  await tab.evaluate("globalThis.isLeft = true");
  try {
    await act();
  } catch (error) {
    // The browser may report the former page as gone before it reports the action as done.
    if (!String(error).includes("navigated or closed")) throw error;
  }
}

/** Whether a complete page with the title is there, other than the one that was left. */
export async function isShown(tab: Bun.WebView, title: string): Promise<boolean> {
  try {
    return (await tab.evaluate("globalThis.isLeft ? '' : document.readyState + document.title")) === `complete${title}`;
  } catch {
    // One page is gone and the next has not loaded yet.
    return false;
  }
}

interface AxeResult {
  readonly id: string;
  readonly nodes: readonly { readonly html: string }[];
}

/** The problems of a page that axe finds or cannot decide: a line per finding. */
export async function accessibilityFindings(tab: Bun.WebView): Promise<readonly string[]> {
  // The page's policy allows no script; the debugger runs this beside the page.
  const axe = Bun.fileURLToPath(import.meta.resolve("axe-core/axe.min.js"));
  await tab.cdp("Runtime.evaluate", { expression: await Bun.file(axe).text() });
  const found = await tab.evaluate<readonly AxeResult[]>(
    "axe.run(document).then(({ violations, incomplete }) => [...violations, ...incomplete])",
  );
  return found.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}
