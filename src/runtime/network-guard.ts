import { lookup } from "node:dns/promises";
import { BlockList, isIP } from "node:net";
import type { OutboundGuard, OutboundRoute } from "../core/outbound.ts";

export interface NetworkGuardOptions {
  /** CIDRs that may be connected to although they are not public. */
  readonly allow: readonly string[];
  /** False where nothing may leave the machine: then `allow` is all there is. */
  readonly publicAllowed: boolean;
  /** All addresses of a name; by default the system's look-up. */
  readonly addressesOf?: (host: string) => Promise<readonly string[]>;
}

/**
 * Keeps connections that tenants ask for out of private networks (OWASP: server-side request forgery). Every address
 * that a name has must be allowed, and the caller connects to the one that was looked at, so that a name whose address
 * changes in between gains nothing.
 */
export class NetworkGuard implements OutboundGuard {
  private readonly allowed = new BlockList();

  /** Throws `TypeError` where an entry of `allow` is no CIDR. */
  constructor(private readonly options: NetworkGuardOptions) {
    for (const network of options.allow) addNetwork(this.allowed, network);
  }

  async routeTo(host: string): Promise<OutboundRoute> {
    if (isIP(host) !== 0) return this.judge([host]);
    try {
      return this.judge(await (this.options.addressesOf ?? systemAddressesOf)(host));
    } catch (error) {
      // What getaddrinfo says for a name that does not exist (RFC 3493, 6.1), in the words of the runtime.
      const code: unknown = error instanceof Error ? Reflect.get(error, "code") : null;
      if (code === "ENOTFOUND" || code === "ENODATA") return { kind: "refused", why: "does not exist" };
      return { kind: "unanswered", why: "could not be looked up" };
    }
  }

  private judge(addresses: readonly string[]): OutboundRoute {
    const [address] = addresses;
    if (address === undefined) return { kind: "refused", why: "has no address" };
    const configured = addresses.every((one) => this.isConfigured(one));
    if (configured || addresses.every((one) => this.mayReach(one))) return { kind: "allowed", address, configured };
    return { kind: "refused", why: "is at an address that must not be connected to" };
  }

  private isConfigured(address: string): boolean {
    return this.allowed.check(address, familyOf(address));
  }

  private mayReach(address: string): boolean {
    if (this.isConfigured(address)) return true;
    return this.options.publicAllowed && !SPECIAL.check(address, familyOf(address));
  }
}

/**
 * Networks that are not the public Internet: the special-purpose registries of IANA (RFC 6890), and IPv6 ranges that
 * stand for IPv4 addresses. An IPv4 rule holds of its mapped form (`::ffff:…`) as well.
 */
const SPECIAL = new BlockList();
// biome-ignore format: a list of networks
const SPECIAL_NETWORKS = [
  "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
  "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
  "224.0.0.0/4", "240.0.0.0/4", "::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23",
  "2001:db8::/32", "2002::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
];
for (const network of SPECIAL_NETWORKS) addNetwork(SPECIAL, network);

async function systemAddressesOf(host: string): Promise<readonly string[]> {
  return (await lookup(host, { all: true, verbatim: true })).map(({ address }) => address);
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIP(address) === 6 ? "ipv6" : "ipv4";
}

function addNetwork(list: BlockList, network: string): void {
  const [address = "", prefix = ""] = network.split("/");
  list.addSubnet(address, Number(prefix), familyOf(address));
}
