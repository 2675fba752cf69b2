import type { RegistryChanges } from "../storage/registry-changes.ts";
import { requireTenantId } from "../storage/require-tenant.ts";
import type { Secret, Vault } from "../storage/vault.ts";
import { credentials } from "./tables.ts";

/** Tenants' own credentials, for any provider. */
export class CredentialRepository {
  constructor(
    private readonly vault: Vault,
    private readonly changes: RegistryChanges,
  ) {}

  /** Takes effect once the tenant may use its own credentials on the channel. */
  async put({ place, text }: Secret): Promise<void> {
    const { tenantId, kind } = place;
    requireTenantId(tenantId);
    const sealed = this.vault.seal(place, text);
    await this.changes.ofTenant(tenantId, (transaction) =>
      transaction
        .insert(credentials)
        .values({ tenantId, kind, sealed })
        .onConflictDoUpdate({ target: [credentials.tenantId, credentials.kind], set: { sealed } }),
    );
  }
}
