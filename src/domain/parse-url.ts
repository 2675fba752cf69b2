/**
 * As `URL.parse`, but null as well for a host that no resolver takes. To make A-labels of a host takes a time that grows with the
 * square of its length: 40,000 accents on one letter took seven seconds.
 */
export function parseUrl(text: string): URL | null {
  const [, authority = ""] = WITH_HOST.exec(text.replace(/[\t\n\r]/g, "")) ?? [];
  return isLongHost(authority.slice(authority.lastIndexOf("@") + 1)) ? null : URL.parse(text);
}

/** Whether the host, in whatever spelling, is longer than names may be, or one of its labels is (RFC 1035, 2.3.4). */
export function isLongHost(host: string): boolean {
  return host.length > HOST_CHARS_MAX || host.split(".").some((label) => label.length > LABEL_CHARS_MAX);
}

/** The schemes whose hosts are names (WHATWG URL, 4.2), and what ends a host. Blanks before it and all tabs and line ends do not count. */
const WITH_HOST = /^[\0- ]*(?:file|ftp|https?|wss?):[/\\]*([^/?#\\]*)/i;

/** Of a name, with a last dot and a port. */
const HOST_CHARS_MAX = 260;
const LABEL_CHARS_MAX = 63;
