/** Formats `http://host:port`, with an IPv6 address in brackets (RFC 3986, 3.2.2). */
export function httpOrigin(host: string, port: number): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** Returns the host of a URL, without the brackets around an IPv6 address. */
export function extractHost({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, "$1");
}

/** Returns the host and port to connect to for an HTTP or HTTPS URL. */
export function toSocketAddress(url: URL): { readonly host: string; readonly port: number } {
  return { host: extractHost(url), port: Number(url.port) || (url.protocol === "https:" ? 443 : 80) };
}

/**
 * Whether the host or address belongs to this machine alone: no other machine can connect to it, or from it. Judged by its form, also
 * by the one that a URL gives to a mapped address (`::ffff:7f00:1`), or by the one name that is reserved for it (RFC 6761, 6.3).
 */
export function isLoopback(host: string): boolean {
  return /^(localhost|::1|(::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3}|::ffff:7f[\da-f]{2}:[\da-f]{1,4})$/i.test(host);
}

/**
 * Returns the host in a `Host` header, without its port and without the brackets around an IPv6 address (RFC 3986,
 * 3.2.2), and the port; without one, 80. An empty name: the header is malformed.
 */
export function readHostHeader(text: string): { readonly host: string; readonly port: number } {
  const [, address, name = "", port = "80"] = /^(?:\[([\da-f:.]+)\]|([^:[\]]*))(?::(\d{1,5}))?$/i.exec(text) ?? [];
  return { host: address ?? name, port: Number(port) };
}

/**
 * Whether a web page made the request, according to its browser; false if a person entered the address or followed our
 * own link.
 */
export function isOfWebPage(headers: Headers): boolean {
  return headers.has("origin") || !OWN_SITES.has(headers.get("sec-fetch-site") ?? "none");
}

const OWN_SITES: ReadonlySet<string> = new Set(["none", "same-origin"]);
