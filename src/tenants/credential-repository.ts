import { type Done, done, type Missing } from "../domain/store-result.ts";
import type { RegistryChanges } from "../storage/registry-changes.ts";
import type { Secret, Vault } from "../storage/vault.ts";
import { credentials } from "./tables.ts";

/** Tenants' own credentials, for any provider. */
export class CredentialRepository {
  constructor(
    private readonly vault: Vault,
    private readonly changes: RegistryChanges,
  ) {}

  /** Takes effect once the tenant may use its own credentials on the channel. */
  put({ place, text }: Secret): Promise<Done | Missing<"tenant">> {
    const { tenantId, kind } = place;
    const sealed = this.vault.seal(place, text);
    return this.changes.ofTenant(tenantId, async (transaction) => {
      await transaction
        .insert(credentials)
        .values({ tenantId, kind, sealed })
        .onConflictDoUpdate({ target: [credentials.tenantId, credentials.kind], set: { sealed } });
      return done(null);
    });
  }
}
