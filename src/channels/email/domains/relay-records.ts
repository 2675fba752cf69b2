import type { DnsRecord, RegisteredDomain } from "../../../domain/channels/domain.ts";

export interface RelayRecords {
  /** Routes bounces to the platform. */
  readonly returnPath: DnsRecord;
  /**
   * Allows the platform to send with envelope senders at the return path (RFC 7208: SPF checks the envelope sender).
   */
  readonly spf: DnsRecord;
  readonly dkim: DnsRecord;
  readonly dmarc: DnsRecord;
}

type Keys = Pick<RegisteredDomain, "domain" | "selector" | "publicKey" | "returnPathHost">;

const MX_PRIORITY = 10;

/**
 * Returns the records that a tenant publishes before the platform's relay sends its mail. `mailHost` receives bounces
 * for the platform; the SPF record at `spf.<mailHost>` lists the addresses that the platform sends from.
 *
 * A value is a single text, even if it is longer than the 255 bytes of a string in a zone file.
 */
export function relayRecords({ domain, selector, publicKey, returnPathHost }: Keys, mailHost: string): RelayRecords {
  return {
    returnPath: { type: "MX", name: returnPathHost, value: mailHost, priority: MX_PRIORITY },
    spf: { type: "TXT", name: returnPathHost, value: `v=spf1 include:${spfHost(mailHost)} ~all` },
    dkim: { type: "TXT", name: `${selector}._domainkey.${domain}`, value: `v=DKIM1; k=rsa; p=${publicKey}` },
    dmarc: { type: "TXT", name: `_dmarc.${domain}`, value: "v=DMARC1; p=none" },
  };
}

/** Returns the name of the platform's own SPF record, which tenants' records include. */
export function spfHost(mailHost: string): string {
  return `spf.${mailHost}`;
}

/**
 * Returns the host that receives bounces of a domain's mail. It is a separate name, so the domain's own MX and SPF
 * records stay as they are.
 */
export function toReturnPathHost(domain: string): string {
  return `bounce.${domain}`;
}
