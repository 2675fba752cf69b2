/** `http://host:port`, with an IPv6 address in brackets (RFC 3986, 3.2.2). */
export function httpOrigin(host: string, port: number): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
