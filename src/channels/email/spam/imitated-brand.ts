import { domainToUnicode } from "node:url";
import { folded } from "./folded-words.ts";
import { registeredDomain } from "./link-target.ts";

/** Names that fraudsters often use, as they appear before the top-level domain. */
const BRANDS = new Set(
  (
    "adobe allegro amazon apple bankofamerica binance blockchain bradesco chase coinbase correios deutschepost docusign " +
    "dropbox ebay facebook fedex google hsbc icloud instagram itau laposte linkedin mercadolibre mercadopago metamask " +
    "microsoft netflix office365 outlook paypal postbank revolut royalmail santander sberbank sparkasse spotify telegram " +
    "usps volksbank wellsfargo whatsapp yahoo"
  ).split(" "),
);
/** Words added to a brand's name to make a host look like its log-in page. */
const BAIT =
  /^(?:account|alert|auth|billing|confirm|help|id|limited|login|pay|recover|secure|security|service|signin|support|unlock|update|verify)/;

/**
 * Returns the well-known name that a host imitates, or null: by look-alike letters (`pаypal.com` with a Cyrillic а,
 * `paypa1.com`), by starting with the whole domain (`paypal.com.example.net`), or by an added word
 * (`paypal-login.net`).
 */
export function imitatedBrand(host: string): string | null {
  const labels = domainToUnicode(host).split(".");
  const registered = registeredDomain(labels.join("."));
  const [name = ""] = registered.split(".");
  const front = labels.slice(0, labels.length - registered.split(".").length);
  for (const [at, label] of front.entries()) {
    // `paypal.` and a top-level domain before the domain that was really registered.
    if (BRANDS.has(label) && /^(?:com|net|org|co|de|fr|es|it|br)$/.test(front[at + 1] ?? "")) return label;
  }
  const skeleton = toSkeleton(name);
  if (skeleton !== name && BRANDS.has(skeleton)) return skeleton;
  const parts = name.split("-").map(toSkeleton);
  const brand = parts.find((part) => BRANDS.has(part));
  return brand !== undefined && parts.some((part) => part !== brand && BAIT.test(part)) ? brand : null;
}

/** Whether the host has a well-known name, under any top-level domain. */
export function isBrand(host: string): boolean {
  const [name = ""] = registeredDomain(host).split(".");
  return BRANDS.has(name);
}

/** Letters of other alphabets, mapped to the Latin letters that they resemble (Unicode TR 39, the common ones). */
const LOOK_ALIKES: Readonly<Record<string, string>> = Object.fromEntries(
  "аa вb сc ԁd еe ғf һh іi јj кk ӏl ⅼl мm ոn пn оo рp ԛq гr ѕs тt υu ѵv ԝw хx уy αa εe ηn ιi κk νv οo ρp τt ωw"
    .split(" ")
    .map((pair) => [pair.slice(0, 1), pair.slice(1)]),
);
const DIGITS: Readonly<Record<string, string>> = { "0": "o", "1": "l", "3": "e", "5": "s" };

/** Maps a name to the Latin letters that it resembles. */
function toSkeleton(name: string): string {
  if (BRANDS.has(name)) return name;
  return Array.from(folded(name), (letter) => LOOK_ALIKES[letter] ?? DIGITS[letter] ?? letter)
    .join("")
    .replaceAll("rn", "m")
    .replaceAll("vv", "w");
}
