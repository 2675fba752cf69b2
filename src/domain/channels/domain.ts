import type { AllOfTenant, Done, Invalid, Missing } from "../store-result.ts";

/** `pending`: not verified yet; `failed`: the last verification found a problem. */
export type DomainStatus = "pending" | "verified" | "failed";

/** A record that a tenant publishes. */
export interface DnsRecord {
  readonly type: "MX" | "TXT";
  readonly name: string;
  readonly value: string;
  /** MX only. */
  readonly priority?: number;
}

/** The subjects of verification: four records for sending through the platform's relay, and a tenant's own relay. */
export const DOMAIN_CHECKS = ["return_path", "spf", "dkim", "dmarc", "smtp"] as const;
export type DomainCheckName = (typeof DOMAIN_CHECKS)[number];

/** The result of one check. `unanswered`: the check got no answer, which changes no status. */
export interface Finding {
  readonly check: DomainCheckName;
  readonly result: "passed" | "failed" | "unanswered";
  /** One sentence, for the operator; null if the check passed. */
  readonly why: string | null;
}

/** A tenant's sending domain as it is registered, without its private key. */
export interface RegisteredDomain {
  readonly tenantId: string;
  /** Lower case, ASCII. No two tenants have the same domain. */
  readonly domain: string;
  /** Whether mail may go through the platform's relay. */
  readonly relayEnabled: boolean;
  /** Whether mail may go through the tenant's own relay. */
  readonly smtpEnabled: boolean;
  readonly relayStatus: DomainStatus;
  readonly smtpStatus: DomainStatus;
  /** Selector of its DKIM key (RFC 6376, 3.1). Changes each time the domain is registered. */
  readonly selector: string;
  /** SubjectPublicKeyInfo, DER in base64: the `p=` of the DKIM record. */
  readonly publicKey: string;
  /** The destination of bounces: the domain of its mail's envelope sender. */
  readonly returnPathHost: string;
  readonly createdAtMs: number;
  /** Results of the last verification; empty before the first. */
  readonly findings: readonly Finding[];
  /** When the last verification took place, or null. */
  readonly checkedAtMs: number | null;
}

export interface NewDomain
  extends Omit<RegisteredDomain, "relayStatus" | "smtpStatus" | "createdAtMs" | "findings" | "checkedAtMs"> {
  /** PKCS #8, PEM. Stored encrypted. */
  readonly privateKeyPem: string;
}

/** The findings of a verification, and the resulting statuses. */
export interface DomainVerdict extends Pick<RegisteredDomain, "relayStatus" | "smtpStatus" | "findings"> {
  readonly checkedAtMs: number;
}

export type NoNewDomain =
  /** The tenant has reached its limit of domains. */
  | { readonly kind: "full"; readonly most: number }
  /** A tenant, this one or another, has the domain. */
  | { readonly kind: "taken"; readonly domain: string };

export type NewDomainResult<T> = Done<T> | Missing<"tenant"> | NoNewDomain;

export type DomainResult<T> = Done<T> | Missing<"tenant" | "domain">;

/** Stores domains. All processes see every change within a second. */
export interface DomainStore {
  create(domain: NewDomain): Promise<NewDomainResult<RegisteredDomain>>;
  /** Lists the tenant's domains, ordered by name. */
  all(tenantId: string): Promise<AllOfTenant<RegisteredDomain>>;
  one(tenantId: string, domain: string): Promise<DomainResult<RegisteredDomain>>;
  /**
   * Records the result of verifying `domain`. Returns `missing` if the domain was deleted or registered again since.
   */
  judge(domain: RegisteredDomain, verdict: DomainVerdict): Promise<DomainResult<RegisteredDomain>>;
  delete(tenantId: string, domain: string): Promise<DomainResult<null>>;
}

/** Stores the domain of the platform's own sender. All processes see every change within a second. */
export interface SenderDomainStore {
  /** Returns the domain of the configured sender; null: it has no key yet. */
  read(): Promise<RegisteredDomain | null>;
  /** Returns the stored domain: an earlier one wins. */
  create(domain: Pick<NewDomain, "selector" | "publicKey" | "privateKeyPem">): Promise<RegisteredDomain>;
  judge(domain: RegisteredDomain, verdict: DomainVerdict): Promise<RegisteredDomain>;
}

/** The domain of the platform's own sender, whose mail is signed once the domain is verified. */
export interface SenderDomain {
  /** Creates its key on the first call. */
  view(): Promise<DomainView>;
  /** Runs all checks again, and returns the domain with the new results. */
  verify(): Promise<DomainView>;
}

/** A domain as tenants see it, with the names of the public API. */
export interface DomainRecord {
  readonly Domain: string;
  readonly RelayEnabled: boolean;
  readonly RelayStatus: DomainStatus;
  readonly SMTPEnabled: boolean;
  readonly SMTPStatus: DomainStatus;
  readonly DNSRecords: { readonly relay: readonly DnsRecord[] };
}

/** Additional data for operators, with the names of the operator API; times are ISO 8601 UTC. */
export interface DomainDetails {
  readonly created_at: string;
  /** When the last verification took place; null before the first. */
  readonly checked_at: string | null;
  /** Results of the last verification. */
  readonly checks: readonly Finding[];
}

export interface DomainView {
  readonly record: DomainRecord;
  readonly details: DomainDetails;
}

/** Domain operations for the HTTP API. */
export interface Domains {
  /** Creates a key pair and stores the domain, unverified. */
  register(tenantId: string, request: DomainRequest): Promise<NewDomainResult<DomainView> | Invalid>;
  all(tenantId: string): Promise<AllOfTenant<DomainView>>;
  one(tenantId: string, domain: string): Promise<DomainResult<DomainView>>;
  /** Runs all checks again, and returns the domain with the new results. */
  verify(tenantId: string, domain: string): Promise<DomainResult<DomainView>>;
  delete(tenantId: string, domain: string): Promise<DomainResult<null>>;
}

export interface DomainRequest {
  readonly domain: string;
  readonly relayEnabled: boolean;
  readonly smtpEnabled: boolean;
}

/** Everything needed to send from a verified domain. */
export interface VerifiedDomain {
  readonly domain: string;
  /** Null: not verified for the platform's relay. Verifiers could not find its key, so mail is not signed with it. */
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

/** Tests whether a tenant's own relay can be used, by the relay's stored address. Never rejects. */
export interface RelayProbe {
  /** Connects, greets and authenticates; sends no mail. `smtpUrl` null: none is stored. */
  check(smtpUrl: string | null): Promise<Finding>;
}
