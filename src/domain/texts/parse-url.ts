/**
 * As `URL.parse`, but also null for a host that no resolver accepts. Converting a host to A-labels takes time that
 * grows with the square of its length: 40,000 accents on one letter took seven seconds.
 */
export function parseUrl(text: string): URL | null {
  const [, authority = ""] = WITH_HOST.exec(text.replace(/[\t\n\r]/g, "")) ?? [];
  if (authority === "") return URL.parse(text);
  const written = authority.slice(authority.lastIndexOf("@") + 1);
  if (isLonger(written, WRITTEN) && isLonger(shortened(written), WRITTEN)) return null;
  const url = URL.parse(text);
  return url === null || isLonger(url.hostname, NAME) ? null : url;
}

/** Returns the host with each escape as its character, and without the characters that are ignored in names. */
function shortened(host: string): string {
  return unescaped(host).replace(IGNORED, "");
}

function unescaped(host: string): string {
  try {
    return decodeURIComponent(host);
  } catch {
    return host;
  }
}

interface Bounds {
  readonly hostCharsMax: number;
  readonly labelCharsMax: number;
}

function isLonger(host: string, { hostCharsMax, labelCharsMax }: Bounds): boolean {
  return host.length > hostCharsMax || host.split(".").some((label) => label.length > labelCharsMax);
}

/**
 * The schemes whose hosts are names (WHATWG URL, 4.2), and the characters that end a host. Blanks before it and all
 * tabs and line ends are ignored.
 */
const WITH_HOST = /^[\0- ]*(?:file|ftp|https?|wss?):[/\\]*([^/?#\\]*)/i;

/** A soft hyphen, for example, which UTS 46 removes. */
const IGNORED = /\p{Default_Ignorable_Code_Point}/gu;

/** Bounds of a name as resolvers accept it, with a last dot (RFC 1035, 2.3.4). */
const NAME: Bounds = { hostCharsMax: 255, labelCharsMax: 63 };
/**
 * Bounds of a name in its written form, with letters of up to three code points and a port: reading it takes a third of
 * a millisecond.
 */
const WRITTEN: Bounds = { hostCharsMax: 400, labelCharsMax: 200 };
