import { and, asc, count, eq } from "drizzle-orm";
import type { Clock } from "../../../domain/clock.ts";
import type {
  DomainStore,
  DomainVerdict,
  NewDomain,
  RegisteredDomain,
  VerifiedDomain,
} from "../../../domain/domain.ts";
import { ApiError } from "../../../domain/errors.ts";
import type { AnyDb, Database } from "../../../storage/database.ts";
import type { RegistryChanges } from "../../../storage/registry-changes.ts";
import { requireTenant, requireTenantId } from "../../../storage/require-tenant.ts";
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

  create({ privateKeyPem, ...domain }: NewDomain): Promise<RegisteredDomain> {
    const { tenantId } = domain;
    requireTenantId(tenantId);
    const { vault, clock, changes } = this.options;
    const privateKey = vault.seal(keyPlace(tenantId, domain.domain), privateKeyPem);
    const createdAt = new Date(clock.nowMs());
    return changes.ofTenant(tenantId, async (transaction) => {
      // The change has locked the tenant's row, so no other change adds a domain in the meantime.
      await requireRoom(transaction, tenantId);
      const [row] = await transaction
        .insert(domains)
        .values({ ...domain, ...NEVER_CHECKED, privateKey, createdAt })
        .onConflictDoNothing()
        .returning();
      if (row === undefined) throw new ApiError(409, `The domain ${domain.domain} is registered already.`);
      return domainOf(row);
    });
  }

  all(tenantId: string): Promise<readonly RegisteredDomain[]> {
    return this.options.database.read(async (db) => {
      await requireTenant(db, tenantId);
      const rows = await db
        .select()
        .from(domains)
        .where(eq(domains.tenantId, tenantId))
        .orderBy(asc(domains.domain))
        .limit(DOMAINS_PER_TENANT_MAX);
      return rows.map(domainOf);
    });
  }

  one(tenantId: string, domain: string): Promise<RegisteredDomain> {
    return this.options.database.read(async (db) => {
      await requireTenant(db, tenantId);
      const [row] = await db.select().from(domains).where(ofTenant(tenantId, domain));
      if (row === undefined) throw noSuchDomain();
      return domainOf(row);
    });
  }

  judge({ tenantId, domain, selector }: RegisteredDomain, verdict: DomainVerdict): Promise<RegisteredDomain> {
    const { relayStatus, smtpStatus, findings, checkedAtMs } = verdict;
    const found = { all: findings.map(({ check, result, why }) => ({ check, result, why })) };
    return this.options.changes.ofTenant(tenantId, async (transaction) => {
      const [row] = await transaction
        .update(domains)
        .set({ relayStatus, smtpStatus, findings: found, checkedAt: new Date(checkedAtMs) })
        // If the domain was registered again in the meantime, it has another key, and these results do not apply to it.
        .where(and(ofTenant(tenantId, domain), eq(domains.selector, selector)))
        .returning();
      if (row === undefined) throw noSuchDomain();
      return domainOf(row);
    });
  }

  async delete(tenantId: string, domain: string): Promise<void> {
    requireTenantId(tenantId);
    await this.options.changes.ofTenant(tenantId, async (transaction) => {
      const deleted = await transaction
        .delete(domains)
        .where(ofTenant(tenantId, domain))
        .returning({ domain: domains.domain });
      if (deleted.length === 0) throw noSuchDomain();
    });
  }
}

/** The domain with the key that signs its mail, if mail may be sent from it; otherwise null. */
export function verifiedDomainOf(row: typeof domains.$inferSelect, vault: Vault): VerifiedDomain | null {
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

async function requireRoom(transaction: AnyDb, tenantId: string): Promise<void> {
  const [row] = await transaction.select({ held: count() }).from(domains).where(eq(domains.tenantId, tenantId));
  if (Number(row?.held ?? 0) < DOMAINS_PER_TENANT_MAX) return;
  throw new ApiError(409, `The tenant has ${DOMAINS_PER_TENANT_MAX} domains, and cannot have more.`);
}

function ofTenant(tenantId: string, domain: string) {
  return and(eq(domains.domain, domain), eq(domains.tenantId, tenantId));
}

function keyPlace(tenantId: string, domain: string): SecretPlace {
  return { tenantId, kind: "dkim", field: domain };
}

function domainOf(row: typeof domains.$inferSelect): RegisteredDomain {
  const { privateKey: _, createdAt, checkedAt, findings, ...domain } = row;
  return {
    ...domain,
    createdAtMs: createdAt.getTime(),
    checkedAtMs: checkedAt === null ? null : checkedAt.getTime(),
    findings: findings.all,
  };
}

function noSuchDomain(): ApiError {
  return new ApiError(404, "there is no such domain");
}
