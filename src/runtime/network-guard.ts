import { BlockList, isIP } from "node:net";
import { dns } from "bun";
import type { OutboundGuard, OutboundRoute } from "../domain/texts/outbound.ts";

export interface NetworkGuardOptions {
  /** CIDRs that are allowed although they are not public. */
  readonly allow: readonly string[];
  /** False if no connection may leave the machine: then only `allow` applies. */
  readonly publicAllowed: boolean;
  /** Returns all addresses of a name; by default from `/etc/hosts`, or from the system's name servers. */
  readonly resolveHost?: (host: string) => Promise<readonly string[]>;
}

/**
 * Keeps connections that tenants request out of private networks (OWASP: server-side request forgery). Every address of
 * a name must be allowed, and the caller connects to the very address that was checked: changing a name's address in
 * between is useless.
 */
export class NetworkGuard implements OutboundGuard {
  private readonly allowed: BlockList;

  /** Throws `TypeError` if an entry of `allow` is not a CIDR. */
  constructor(private readonly options: NetworkGuardOptions) {
    this.allowed = buildBlockList(options.allow);
  }

  async routeTo(host: string): Promise<OutboundRoute> {
    if (isIP(host) !== 0) return this.judge([host]);
    try {
      return this.judge(await (this.options.resolveHost ?? resolveBySystem)(host));
    } catch (error) {
      const code: unknown = error instanceof Error ? Reflect.get(error, "code") : null;
      if (code === "DNS_ENOTFOUND" || code === "DNS_ENODATA") {
        return { kind: "refused", cause: "absent", why: "does not exist" };
      }
      return { kind: "unanswered", why: "could not be looked up" };
    }
  }

  private judge(addresses: readonly string[]): OutboundRoute {
    const [address] = addresses;
    if (address === undefined) return { kind: "refused", cause: "absent", why: "has no address" };
    const configured = addresses.every((one) => this.isConfigured(one));
    if (configured || addresses.every((one) => this.mayReach(one))) {
      return { kind: "allowed", address, addresses, configured };
    }
    return { kind: "refused", cause: "forbidden", why: "is at an address that must not be connected to" };
  }

  private isConfigured(address: string): boolean {
    return isOn(this.allowed, address);
  }

  private mayReach(address: string): boolean {
    return this.isConfigured(address) || (this.options.publicAllowed && isPublic(address));
  }
}

/**
 * IPv4: all addresses except those that IANA's registry of special-purpose addresses keeps off the public Internet (RFC
 * 6890), and except the public address at which one cloud serves its machines their configuration.
 */
// biome-ignore format: a list of networks
const SPECIAL_IPV4 = buildBlockList([
  "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
  "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
  "224.0.0.0/4", "240.0.0.0/4", "168.63.129.16/32",
]);

/**
 * IPv6 is the reverse: only global unicast addresses are public (RFC 4291, 2.5.4). All others, present and future, are
 * local, or stand for an IPv4 address: mapped, translated (`::ffff:0:…`, `64:ff9b::…`), compatible.
 */
const GLOBAL_IPV6 = buildBlockList(["2000::/3"]);
/** The exceptions among them: protocols and Teredo, documentation, 6to4, and the former 6bone. */
const SPECIAL_IPV6 = buildBlockList(["2001::/23", "2001:db8::/32", "2002::/16", "3ffe::/16", "3fff::/20"]);

function isPublic(address: string): boolean {
  if (isIP(address) === 4) return !isOn(SPECIAL_IPV4, address);
  return isIP(address) === 6 && isOn(GLOBAL_IPV6, address) && !isOn(SPECIAL_IPV6, address);
}

/** Whether the address is on a list. A text that is not an address, such as a name, is on none. */
function isOn(list: BlockList, address: string): boolean {
  const family = isIP(address);
  // A zone belongs to this machine, so no list contains it.
  return family !== 0 && !address.includes("%") && list.check(address, family === 6 ? "ipv6" : "ipv4");
}

/**
 * Resolves a name without occupying a thread. `node:dns` calls getaddrinfo, which blocks one of the runtime's threads,
 * of which there is one per core: a few names with silent servers, all of one tenant, would stop every other lookup,
 * the reading of files and the derivation of keys, for ten seconds each time.
 */
async function resolveBySystem(host: string): Promise<readonly string[]> {
  return (await dns.lookup(host, { backend: "c-ares" })).map(({ address }) => address);
}

function buildBlockList(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", prefix = ""] = network.split("/");
    list.addSubnet(address, Number(prefix), isIP(address) === 6 ? "ipv6" : "ipv4");
  }
  return list;
}

/** The addresses that tenants may make us connect to. With the sandbox, no connection leaves the machine. */
export function outboundGuard({
  outboundAllow,
  providers,
}: {
  readonly outboundAllow: readonly string[] | null;
  readonly providers: "live" | "sandbox";
}): OutboundGuard {
  return new NetworkGuard({ allow: outboundAllow ?? [], publicAllowed: providers === "live" });
}
