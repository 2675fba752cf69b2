/** `pending`: not verified yet; `failed`: the last verification found something wrong. */
export type DomainStatus = "pending" | "verified" | "failed";

/** A record that a tenant publishes. */
export interface DnsRecord {
  readonly type: "MX" | "TXT";
  readonly name: string;
  readonly value: string;
  /** MX only. */
  readonly priority?: number;
}

/** What verification looks at: four records for sending through the platform's relay, and a tenant's own relay. */
export const DOMAIN_CHECKS = ["return_path", "spf", "dkim", "dmarc", "smtp"] as const;
export type DomainCheckName = (typeof DOMAIN_CHECKS)[number];

/** What one look found out. `unanswered`: nobody could say, which changes no status. */
export interface Finding {
  readonly check: DomainCheckName;
  readonly result: "passed" | "failed" | "unanswered";
  /** One sentence, for the operator; null where it passed. */
  readonly why: string | null;
}

/** A tenant's sending domain as it is registered, without its private key. */
export interface RegisteredDomain {
  readonly tenantId: string;
  /** Lower case, ASCII. No two tenants have the same. */
  readonly domain: string;
  /** Sending through the platform's relay. */
  readonly relayEnabled: boolean;
  /** Sending through the tenant's own relay. */
  readonly smtpEnabled: boolean;
  readonly relayStatus: DomainStatus;
  readonly smtpStatus: DomainStatus;
  /** Of its DKIM key (RFC 6376, 3.1). Another one each time that a domain is registered. */
  readonly selector: string;
  /** SubjectPublicKeyInfo, DER in base64: the `p=` of the DKIM record. */
  readonly publicKey: string;
  /** Where bounces go: the domain of its mail's envelope sender. */
  readonly returnPathHost: string;
  readonly createdAtMs: number;
  /** Of the last verification; empty before the first. */
  readonly findings: readonly Finding[];
  /** When that was, or null. */
  readonly checkedAtMs: number | null;
}

export interface NewDomain
  extends Omit<RegisteredDomain, "relayStatus" | "smtpStatus" | "createdAtMs" | "findings" | "checkedAtMs"> {
  /** PKCS #8, PEM. Stored encrypted. */
  readonly privateKeyPem: string;
}

/** What a verification found, and what follows. */
export interface DomainVerdict extends Pick<RegisteredDomain, "relayStatus" | "smtpStatus" | "findings"> {
  readonly checkedAtMs: number;
}

/**
 * Where domains are kept. A tenant or domain that does not exist is an `ApiError` 404, a domain that is taken 409.
 * Every change is seen by all processes within a second.
 */
export interface DomainStore {
  create(domain: NewDomain): Promise<RegisteredDomain>;
  /** In the order of their names. */
  all(tenantId: string): Promise<readonly RegisteredDomain[]>;
  one(tenantId: string, domain: string): Promise<RegisteredDomain>;
  /** Writes down what a verification of `domain` found; 404 where it was deleted or registered anew since. */
  judge(domain: RegisteredDomain, verdict: DomainVerdict): Promise<RegisteredDomain>;
  delete(tenantId: string, domain: string): Promise<void>;
}

/** A domain as tenants see it. The names are those of the public API. */
export interface DomainRecord {
  readonly Domain: string;
  readonly RelayEnabled: boolean;
  readonly RelayStatus: DomainStatus;
  readonly SMTPEnabled: boolean;
  readonly SMTPStatus: DomainStatus;
  readonly DNSRecords: { readonly relay: readonly DnsRecord[] };
}

/** What operators see beside the record. The names are those of the operator API, times are ISO 8601 UTC. */
export interface DomainDetails {
  readonly created_at: string;
  /** Of the last verification; null before the first. */
  readonly checked_at: string | null;
  /** What that found. */
  readonly checks: readonly Finding[];
}

export interface DomainView {
  readonly record: DomainRecord;
  readonly details: DomainDetails;
}

/** Domains as the front door needs them. What does not exist is an `ApiError` 404. */
export interface Domains {
  /** Makes a key pair and keeps the domain, not verified yet. 400 for what is no domain, 409 for one that is taken. */
  register(tenantId: string, request: DomainRequest): Promise<DomainView>;
  all(tenantId: string): Promise<readonly DomainView[]>;
  one(tenantId: string, domain: string): Promise<DomainView>;
  /** Looks at everything again, and answers the domain as it is then. */
  verify(tenantId: string, domain: string): Promise<DomainView>;
  delete(tenantId: string, domain: string): Promise<void>;
}

export interface DomainRequest {
  readonly domain: string;
  readonly relayEnabled: boolean;
  readonly smtpEnabled: boolean;
}

/** What sending from a verified domain takes. */
export interface VerifiedDomain {
  readonly domain: string;
  /** Null: not verified for the platform's relay, so its key is in no verifier's sight and signs nothing. */
  readonly relay: DomainSigning | null;
  /** Whether the tenant's own relay is verified. */
  readonly smtp: boolean;
}

export interface DomainSigning {
  readonly selector: string;
  /** PKCS #8, PEM. */
  readonly privateKeyPem: string;
  readonly returnPathHost: string;
}

/** Tells whether a tenant's own relay can be used, by the relay's stored address. Never rejects. */
export interface RelayProbe {
  /** Connects, greets and authenticates; sends no mail. `smtpUrl` null: none is stored. */
  check(smtpUrl: string | null): Promise<Finding>;
}
