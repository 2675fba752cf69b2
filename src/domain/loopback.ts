/** Whether the host or address belongs to this machine alone: no other machine can connect to it, or from it. */
export function isLoopback(host: string): boolean {
  return /^(localhost|::1|(::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3})$/i.test(host);
}
