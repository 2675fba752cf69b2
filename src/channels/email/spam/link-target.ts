import { parseUrl } from "../../../domain/texts/parse-url.ts";

/** A link's text and address. */
export interface Link {
  readonly href: string;
  /** Its text, cut to a few hundred characters. */
  readonly label: string;
}

/** The target of a link. */
export interface LinkTarget extends Link {
  /** Lower case, with its colon; empty if the link is not a URL. */
  readonly scheme: string;
  /**
   * The host of a web link, as browsers resolve it (an IP address in any spelling becomes a dotted one); otherwise
   * empty.
   */
  readonly host: string;
  readonly port: string;
  readonly path: string;
  readonly hasUser: boolean;
}

/** Never fails: text that is not a URL gets an empty scheme. */
export function linkTarget({ href, label }: Link): LinkTarget {
  const url = parseUrl(href);
  const isWeb = url?.protocol === "http:" || url?.protocol === "https:";
  if (url === null) return { href, label, scheme: "", host: "", port: "", path: "", hasUser: false };
  return {
    href,
    label,
    scheme: url.protocol,
    host: isWeb ? url.hostname : "",
    port: isWeb ? url.port : "",
    path: isWeb ? url.pathname : "",
    hasUser: isWeb && (url.username !== "" || url.password !== ""),
  };
}

/** Second-level names under which countries accept registrations. */
const SHARED_SECOND_LEVEL = new Set("ac co com edu go gob gouv gov ne net or org".split(" "));

/** Returns the registered part of a host name, approximately: `shop.example.co.uk` gives `example.co.uk`. */
export function registeredDomain(host: string): string {
  const labels = host.replace(/\.$/, "").split(".");
  const [second = "", top = ""] = labels.slice(-2);
  return labels.slice(top.length === 2 && SHARED_SECOND_LEVEL.has(second) ? -3 : -2).join(".");
}

const NAMED_WITH_SCHEME = /^https?:\/\/((?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24})(?:[/?#:\s]|$)/i;
/** Without a scheme, most words with a dot are names of files and products. */
const NAMED_ALONE =
  /^(?:www\.(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}|(?:[a-z0-9-]{1,63}\.){1,8}(?:com|net|org|gov|co|uk|de|fr|es|it|nl|pl|br|ru|ch|at|eu))(?=[/?#:\s]|$)/i;

/** Returns the host that appears in a link's text, in lower case, or null. */
export function hostNamedIn(label: string): string | null {
  const text = label.trim();
  const host = NAMED_WITH_SCHEME.exec(text)?.[1] ?? NAMED_ALONE.exec(text)?.[0];
  return host?.toLowerCase() ?? null;
}
