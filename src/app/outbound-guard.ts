import type { Config } from "../config/config.ts";
import type { OutboundGuard } from "../domain/outbound.ts";
import { NetworkGuard } from "../runtime/network-guard.ts";

/** Where connections may go that tenants ask for. With the sandbox, nothing leaves the machine. */
export function outboundGuard({ outboundAllow, providers }: Config): OutboundGuard {
  return new NetworkGuard({ allow: outboundAllow ?? [], publicAllowed: providers === "live" });
}
