import { and, asc, count, eq } from "drizzle-orm";
import type {
  DomainResult,
  DomainStore,
  DomainVerdict,
  NewDomain,
  NewDomainResult,
  NoNewDomain,
  RegisteredDomain,
  VerifiedDomain,
} from "../../../domain/channels/domain.ts";
import type { Clock } from "../../../domain/clock.ts";
import { type AllOfTenant, done, missing } from "../../../domain/store-result.ts";
import type { Database } from "../../../storage/postgres/database.ts";
import { listOfTenant, readOfTenant } from "../../../storage/postgres/of-tenant.ts";
import { type RegistryChanges, Undone } from "../../../storage/registry-changes.ts";
import type { SecretPlace, Vault } from "../../../storage/vault.ts";
import { domains } from "../tables.ts";

/** A tenant's snapshot holds all of its domains. */
const DOMAINS_PER_TENANT_MAX = 100;

export interface DomainRepositoryOptions {
  readonly database: Database;
  readonly changes: RegistryChanges;
  readonly vault: Vault;
  readonly clock: Clock;
}

export class DomainRepository implements DomainStore {
  constructor(private readonly options: DomainRepositoryOptions) {}

  create({ privateKeyPem, ...domain }: NewDomain): Promise<NewDomainResult<RegisteredDomain>> {
    const { tenantId } = domain;
    const { vault, clock, changes } = this.options;
    const privateKey = vault.seal(keyPlace(tenantId, domain.domain), privateKeyPem);
    const createdAt = new Date(clock.nowMs());
    return changes.ofTenant(tenantId, async (transaction) => {
      // The change has locked the tenant's row, so no other change adds a domain in the meantime.
      const [room] = await transaction.select({ held: count() }).from(domains).where(eq(domains.tenantId, tenantId));
      if (Number(room?.held ?? 0) >= DOMAINS_PER_TENANT_MAX) {
        return new Undone<NoNewDomain>({ kind: "full", most: DOMAINS_PER_TENANT_MAX });
      }
      const [row] = await transaction
        .insert(domains)
        .values({ ...domain, ...NEVER_CHECKED, privateKey, createdAt })
        .onConflictDoNothing()
        .returning();
      return row === undefined
        ? new Undone<NoNewDomain>({ kind: "taken", domain: domain.domain })
        : done(toRegisteredDomain(row));
    });
  }

  all(tenantId: string): Promise<AllOfTenant<RegisteredDomain>> {
    return listOfTenant(this.options.database, tenantId, {
      rows: (db) =>
        db
          .select()
          .from(domains)
          .where(eq(domains.tenantId, tenantId))
          .orderBy(asc(domains.domain))
          .limit(DOMAINS_PER_TENANT_MAX),
      item: toRegisteredDomain,
    });
  }

  one(tenantId: string, domain: string): Promise<DomainResult<RegisteredDomain>> {
    return readOfTenant(this.options.database, tenantId, async (db) => {
      const [row] = await db.select().from(domains).where(ofTenant(tenantId, domain));
      return row === undefined ? missing("domain") : done(toRegisteredDomain(row));
    });
  }

  judge(
    { tenantId, domain, selector }: RegisteredDomain,
    verdict: DomainVerdict,
  ): Promise<DomainResult<RegisteredDomain>> {
    const { relayStatus, smtpStatus, findings, checkedAtMs } = verdict;
    const found = storedFindings(findings);
    return this.options.changes.ofTenant(tenantId, async (transaction) => {
      const [row] = await transaction
        .update(domains)
        .set({ relayStatus, smtpStatus, findings: found, checkedAt: new Date(checkedAtMs) })
        // If the domain was registered again in the meantime, it has another key, and these results do not apply to it.
        .where(and(ofTenant(tenantId, domain), eq(domains.selector, selector)))
        .returning();
      return row === undefined ? new Undone(missing("domain")) : done(toRegisteredDomain(row));
    });
  }

  delete(tenantId: string, domain: string): Promise<DomainResult<null>> {
    return this.options.changes.ofTenant(tenantId, async (transaction) => {
      const deleted = await transaction
        .delete(domains)
        .where(ofTenant(tenantId, domain))
        .returning({ domain: domains.domain });
      return deleted.length === 0 ? new Undone(missing("domain")) : done(null);
    });
  }
}

/** Returns the domain with the key that signs its mail, or null if no mail may be sent from it. */
export function toVerifiedDomain(row: typeof domains.$inferSelect, vault: Vault): VerifiedDomain | null {
  const { tenantId, domain, selector, returnPathHost } = row;
  const relay = row.relayEnabled && row.relayStatus === "verified";
  const smtp = row.smtpEnabled && row.smtpStatus === "verified";
  if (!relay && !smtp) return null;
  const signing = () => ({
    selector,
    privateKeyPem: vault.open(keyPlace(tenantId, domain), row.privateKey),
    returnPathHost,
  });
  return { domain, relay: relay ? signing() : null, smtp };
}

const NEVER_CHECKED = { relayStatus: "pending", smtpStatus: "pending", findings: { all: [] } } as const;

function ofTenant(tenantId: string, domain: string) {
  return and(eq(domains.domain, domain), eq(domains.tenantId, tenantId));
}

/** Converts findings to the form of their column. */
export function storedFindings(findings: DomainVerdict["findings"]): (typeof domains.$inferSelect)["findings"] {
  return { all: findings.map(({ check, result, why }) => ({ check, result, why })) };
}

/** Returns the location of a domain's DKIM key in the vault. */
export function keyPlace(tenantId: string, domain: string): SecretPlace {
  return { tenantId, kind: "dkim", field: domain };
}

function toRegisteredDomain(row: typeof domains.$inferSelect): RegisteredDomain {
  const { privateKey: _, createdAt, checkedAt, findings, ...domain } = row;
  return {
    ...domain,
    createdAtMs: createdAt.getTime(),
    checkedAtMs: checkedAt === null ? null : checkedAt.getTime(),
    findings: findings.all,
  };
}
