import type { Clock } from "../domain/clock.ts";
import type { ChannelName } from "../domain/jobs/job.ts";
import type { Random } from "../domain/random.ts";
import type { Done, Missing } from "../domain/store-result.ts";
import type { RecipientIndex } from "../domain/tenants/recipient-index.ts";
import type { Database } from "./postgres/database.ts";
import type { RegistryChanges } from "./registry-changes.ts";
import type { Secret, Vault } from "./vault.ts";

/**
 * The data that operators read and change. Each folder adds its own part with `declare module`, beside the function
 * that makes the part from `RegistryTools`.
 */
export interface Registry {}

/** Whether stored credentials are in use: the tenant may use its own on the channel. */
export type CredentialsPut = Done<{ readonly used: boolean }> | Missing<"tenant">;

export interface CredentialStore {
  /** Stores a tenant's own credentials encrypted. They are used once the tenant may use its own on the channel. */
  put(secret: Secret, channel: ChannelName): Promise<CredentialsPut>;
  /**
   * Returns the decrypted credentials of a kind, by tenant, of all tenants that may use their own on the channel.
   * Credentials that do not open are left out: they cannot be used either.
   */
  opened(kind: string, channel: ChannelName): Promise<ReadonlyMap<string, string>>;
}

/** The dependencies from which the folders build their repositories. */
export interface RegistryTools {
  readonly database: Database;
  /** For data that tenant snapshots include. */
  readonly changes: RegistryChanges;
  readonly vault: Vault;
  readonly credentials: CredentialStore;
  /** Computes the names of erased recipients. */
  readonly recipients: RecipientIndex;
  readonly clock: Clock;
  readonly random: Random;
}
