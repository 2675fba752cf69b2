import { imitatedBrand, isBrand } from "./imitated-brand.ts";
import { hostNamedIn, type LinkTarget, registeredDomain } from "./link-target.ts";
import type { SpamRule } from "./spam-rule.ts";

/** Rules about the message's links. */
export const LINK_RULES: readonly SpamRule[] = [
  anyLink("LINK_IP", 3, "The message links to a bare IP address", ({ host }) =>
    /^(?:[\d.]+|\[[\da-f:.]+\])$/.test(host),
  ),
  anyLink("LINK_MISMATCH", 1.5, "The text of a link names another site than the link leads to", isMismatch),
  anyLink(
    "LINK_BORROWS_NAME",
    2,
    "The text of a link names a well-known site and the link leads elsewhere",
    (link) => isMismatch(link) && isBrand(hostNamedIn(link.label) ?? ""),
  ),
  {
    name: "LINK_IMITATES",
    score: 3,
    description: "The message links to a site whose name imitates a well-known one",
    matches: ({ links }) =>
      Array.from(new Set(links.map(({ host }) => host))).some((host) => imitatedBrand(host) !== null),
  },
  anyLink("LINK_SHORTENED", 1.2, "The message hides where a link leads behind a shortening service", ({ host }) =>
    SHORTENERS.has(host),
  ),
  anyLink("LINK_EXECUTABLE", 2, "The message links to a program", ({ path }) => EXECUTABLE.test(path)),
  anyLink("LINK_POSING_FILE", 2, "The message links to a program that poses as a document", ({ path }) =>
    POSING_FILE.test(path),
  ),
  anyLink("LINK_USER", 2.5, "A link has something before an @ that looks like its site", ({ hasUser }) => hasUser),
  anyLink("LINK_PORT", 0.6, "A link leads to an unusual port", ({ port }) => port !== ""),
  anyLink("LINK_SCRIPT", 3, "A link would run a script", ({ scheme }) => SCRIPT_SCHEMES.has(scheme)),
  {
    name: "LINK_ALONE",
    score: 1,
    description: "The message is hardly more than a link",
    matches: ({ links, wordCount }) => wordCount < 8 && links.some(({ host }) => host !== ""),
  },
];

function anyLink(name: string, score: number, description: string, matches: (link: LinkTarget) => boolean): SpamRule {
  return { name, score, description, matches: ({ links }) => links.some(matches) };
}

const SCRIPT_SCHEMES = new Set(["javascript:", "vbscript:"]);
const SHORTENERS = new Set(
  "bit.ly buff.ly cutt.ly goo.gl is.gd ow.ly rb.gy rebrand.ly s.id shorturl.at t.co t.ly tiny.cc tinyurl.com v.gd".split(
    " ",
  ),
);
const EXECUTABLE = /\.(?:apk|bat|cmd|exe|hta|img|iso|jar|jse|lnk|msi|pif|ps1|scr|vbe|vbs|wsf)$/i;
const POSING_FILE =
  /\.(?:docx?|html?|jpe?g|pdf|png|pptx?|txt|xlsx?|zip)\.(?:bat|cmd|exe|hta|jar|js|lnk|msi|pif|scr|vbs)$/i;

function isMismatch({ label, host }: LinkTarget): boolean {
  const named = host === "" ? null : hostNamedIn(label);
  return named !== null && registeredDomain(named) !== registeredDomain(host);
}
