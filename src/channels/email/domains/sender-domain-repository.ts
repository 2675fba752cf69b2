import { and, eq } from "drizzle-orm";
import type {
  DomainSigning,
  DomainVerdict,
  NewDomain,
  RegisteredDomain,
  SenderDomainStore,
} from "../../../domain/channels/domain.ts";
import { UnavailableError } from "../../../domain/errors.ts";
import type { SecretPlace } from "../../../storage/vault.ts";
import { senderDomains } from "../tables.ts";
import { type DomainRepositoryOptions, storedFindings } from "./domain-repository.ts";
import { toReturnPathHost } from "./relay-records.ts";

export interface SenderDomainRepositoryOptions extends DomainRepositoryOptions {
  /** The domain of `MAIL_FROM`: lower case, ASCII. */
  readonly domain: string;
}

type Row = typeof senderDomains.$inferSelect;

/** The platform's sender and how its mail is signed. */
export class SenderDomainRepository implements SenderDomainStore {
  private signedWith: DomainSigning | null = null;

  constructor(private readonly options: SenderDomainRepositoryOptions) {}

  /** The signing key as of the last `refresh`; null if the domain is not verified, so its mail is not signed. */
  get signing(): DomainSigning | null {
    return this.signedWith;
  }

  /** Rejects with `UnavailableError`, and with `VaultError` if the key does not open. */
  async refresh(): Promise<void> {
    const row = await this.row();
    this.signedWith =
      row?.status === "verified"
        ? {
            selector: row.selector,
            privateKeyPem: this.options.vault.open(senderKeyPlace(row.domain), row.privateKey),
            returnPathHost: toReturnPathHost(row.domain),
          }
        : null;
  }

  async read(): Promise<RegisteredDomain | null> {
    const row = await this.row();
    return row === null ? null : toRegisteredDomain(row);
  }

  async create({
    selector,
    publicKey,
    privateKeyPem,
  }: Pick<NewDomain, "selector" | "publicKey" | "privateKeyPem">): Promise<RegisteredDomain> {
    const { database, vault, clock, domain } = this.options;
    const privateKey = vault.seal(senderKeyPlace(domain), privateKeyPem);
    const given = { domain, selector, publicKey, privateKey, createdAt: new Date(clock.nowMs()) };
    const none = { status: "pending", checkedAt: null, findings: { all: [] } } as const;
    await database.write((db) =>
      db
        .insert(senderDomains)
        .values({ ...given, ...none })
        .onConflictDoNothing(),
    );
    return this.stored();
  }

  async judge({ selector }: RegisteredDomain, verdict: DomainVerdict): Promise<RegisteredDomain> {
    const { relayStatus: status, checkedAtMs } = verdict;
    const findings = storedFindings(verdict.findings);
    await this.options.changes.ofOperators((transaction) =>
      transaction
        .update(senderDomains)
        .set({ status, findings, checkedAt: new Date(checkedAtMs) })
        .where(and(eq(senderDomains.domain, this.options.domain), eq(senderDomains.selector, selector))),
    );
    return this.stored();
  }

  private async stored(): Promise<RegisteredDomain> {
    const stored = await this.read();
    if (stored === null) throw new UnavailableError("the sender's domain was stored and is missing");
    return stored;
  }

  private row(): Promise<Row | null> {
    const { database, domain } = this.options;
    return database.read(async (db) => {
      const [row] = await db.select().from(senderDomains).where(eq(senderDomains.domain, domain));
      return row ?? null;
    });
  }
}

/** Returns the location of the DKIM key of the platform's sender in the vault. */
export function senderKeyPlace(domain: string): SecretPlace {
  return { tenantId: "", kind: "dkim", field: domain };
}

function toRegisteredDomain({
  domain,
  status,
  selector,
  publicKey,
  createdAt,
  checkedAt,
  findings,
}: Row): RegisteredDomain {
  return {
    tenantId: "",
    domain,
    relayEnabled: true,
    smtpEnabled: false,
    relayStatus: status,
    smtpStatus: "pending",
    selector,
    publicKey,
    returnPathHost: toReturnPathHost(domain),
    createdAtMs: createdAt.getTime(),
    checkedAtMs: checkedAt?.getTime() ?? null,
    findings: findings.all,
  };
}
