import type { Config } from "../config/config.ts";
import type { OutboundGuard } from "../domain/texts/outbound.ts";
import { NetworkGuard } from "../runtime/network-guard.ts";

/** The addresses that tenants may make us connect to. With the sandbox, no connection leaves the machine. */
export function outboundGuard({ outboundAllow, providers }: Config): OutboundGuard {
  return new NetworkGuard({ allow: outboundAllow ?? [], publicAllowed: providers === "live" });
}
