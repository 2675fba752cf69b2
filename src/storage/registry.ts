import type { Clock } from "../domain/clock.ts";
import type { Random } from "../domain/random.ts";
import type { Done, Missing } from "../domain/store-result.ts";
import type { Database } from "./database.ts";
import type { RegistryChanges } from "./registry-changes.ts";
import type { Secret, Vault } from "./vault.ts";

/**
 * What operators read and change. Each room adds its own part with `declare module`, beside the function that makes the part
 * from `RegistryTools`.
 */
export interface Registry {}

/** What the rooms make their repositories of. */
export interface RegistryTools {
  readonly database: Database;
  /** For what tenant snapshots show. */
  readonly changes: RegistryChanges;
  readonly vault: Vault;
  /** Stores a tenant's own credentials sealed. They take effect once the tenant may use its own on the channel. */
  readonly credentials: { put(secret: Secret): Promise<Done | Missing<"tenant">> };
  readonly clock: Clock;
  readonly random: Random;
}
