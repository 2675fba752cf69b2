/** `http://host:port`, with an IPv6 address in brackets (RFC 3986, 3.2.2). */
export function httpOrigin(host: string, port: number): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** Whether the host or address belongs to this machine alone: no other machine can connect to it, or from it. */
export function isLoopback(host: string): boolean {
  return /^(localhost|::1|(::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3})$/i.test(host);
}
