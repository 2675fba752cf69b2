import { getServers } from "node:dns";
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import type { Config } from "../../../config/config.ts";
import { ConfigurationError } from "../../../domain/errors.ts";
import { answeredWithin } from "../../../runtime/answered-within.ts";

/** Addresses with a port. Rejects with `ConfigurationError` if a configured server's name has no address. */
export async function resolveNameServers({ dnsServers }: Pick<Config, "dnsServers">): Promise<readonly string[]> {
  if (dnsServers === null) return getServers().map(withPort);
  return (await Promise.all(dnsServers.map(resolveAddresses))).flat();
}

const NAME_SERVER_MS = 4_000;

/** All of a name's: a server may listen at one of them alone. */
async function resolveAddresses(server: string): Promise<readonly string[]> {
  const [, host = "", port] = /^\[?(.*?)\]?:(\d+)$/.exec(server) ?? [];
  if (isIP(host) !== 0) return [server];
  try {
    const found = await answeredWithin(NAME_SERVER_MS, () => lookup(host, { all: true }));
    return found.map(({ address, family }) => `${family === 6 ? `[${address}]` : address}:${port}`);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new ConfigurationError(`DNS_SERVERS names "${server}"; its host should be a name with an address (${why})`);
  }
}

/** The system's list omits the default port: `10.0.0.2` and `::1`, but `10.0.0.2:5353` and `[::1]:5353`. */
function withPort(address: string): string {
  if (/^\[.*\]:\d+$/.test(address) || /^[\d.]+:\d+$/.test(address)) return address;
  return address.includes(":") ? `[${address}]:53` : `${address}:53`;
}
