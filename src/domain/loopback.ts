/** Whether the host or address is this machine's own alone: nobody else can connect to it, or from it. */
export function isLoopback(host: string): boolean {
  return /^(localhost|::1|(::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3})$/i.test(host);
}
