import { emailSecret } from "../channels/email/credentials.ts";
import { DomainRepository } from "../channels/email/domains/domain-repository.ts";
import { appleSecret, googleSecret } from "../channels/wallet/credentials.ts";
import { DeviceRepository } from "../channels/wallet/devices/device-repository.ts";
import { GoogleClassRepository } from "../channels/wallet/google-class-repository.ts";
import { PassRepository } from "../channels/wallet/pass-repository.ts";
import { AliasRepository } from "../channels/whatsapp/alias-repository.ts";
import { whatsappSecret } from "../channels/whatsapp/credentials.ts";
import type { Clock } from "../domain/clock.ts";
import type { DomainStore } from "../domain/domain.ts";
import { ConfigurationError } from "../domain/errors.ts";
import type { GoogleClassOwners } from "../domain/google-classes.ts";
import type { PassDevices, PassStore } from "../domain/passes.ts";
import type { PayloadStore } from "../domain/payload-store.ts";
import type { Random } from "../domain/random.ts";
import type { Registry } from "../domain/registry.ts";
import type { ReadinessProbe } from "../domain/report.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import { type ChangeFeed, FREE_QUEUE_SHARE, QUEUE_SHARE, type TenantDirectory } from "../domain/tenant.ts";
import { type AnyDb, Database } from "../storage/database.ts";
import { PayloadRepository } from "../storage/payload-repository.ts";
import { RegistryChanges } from "../storage/registry-changes.ts";
import { requireMasterKeys } from "../storage/require-master-keys.ts";
import { sqlState } from "../storage/sql-state.ts";
import { plans, registryState } from "../storage/tables.ts";
import type { Vault } from "../storage/vault.ts";
import { CredentialRepository } from "../tenants/credential-repository.ts";
import { KeyRepository } from "../tenants/key-repository.ts";
import { PlanRepository } from "../tenants/plan-repository.ts";
import { SuppressionRepository } from "../tenants/suppression-repository.ts";
import { TemplateRepository } from "../tenants/template-repository.ts";
import { TenantRepository } from "../tenants/tenant-repository.ts";
import { TenantSnapshots } from "../tenants/tenant-snapshots.ts";
import { TenantSource } from "../tenants/tenant-source.ts";
import { TokenRepository } from "../tenants/token-repository.ts";
import { type AppChannel, templateKindsOf, tenantPartOf } from "./app-channel.ts";

export interface RegistryOptions {
  readonly channels: readonly AppChannel[];
  readonly db: AnyDb;
  /** How many virtual shards the tenants are spread over; fixed when the data is first created. */
  readonly shards: number;
  readonly vault: Vault;
  readonly clock: Clock;
  readonly random: Random;
  readonly feed: ChangeFeed;
  readonly telemetry: Telemetry;
}

export interface OpenRegistry {
  readonly registry: Registry;
  readonly domains: DomainStore;
  readonly passes: PassStore;
  readonly devices: PassDevices;
  readonly googleClasses: GoogleClassOwners;
  readonly payloads: PayloadStore;
  readonly directory: TenantDirectory;
  readonly probe: ReadinessProbe;
  /** Starts following changes made elsewhere. Without this, cached data is usable for only a minute. */
  start(): void;
  stop(): Promise<void>;
}

const FIRST_PLANS = [
  { name: "free", requestsPerMinute: 100, deliveriesPerSecond: null, ...FREE_QUEUE_SHARE },
  { name: "pro", requestsPerMinute: 1_000, deliveriesPerSecond: null, ...QUEUE_SHARE },
];

/**
 * Opens the registry in a database prepared by `migrate`. Rejects with `ConfigurationError` if the database is not prepared,
 * was created with another number of shards, or holds credentials that need a master key not given; with `UnavailableError` if
 * it cannot be reached.
 */
export async function openRegistry(options: RegistryOptions): Promise<OpenRegistry> {
  const { clock, feed, telemetry, vault, shards } = options;
  const database = new Database(options.db, clock);
  const version = await prepare(database, shards);
  await requireMasterKeys(database, vault);

  const source = new TenantSource({ database, vault, clock, channels: tenantPartOf(options.channels) });
  const snapshots = new TenantSnapshots({ source, version, feed, clock, telemetry });
  const changes = new RegistryChanges(database, {
    onTenant: (tenantId) => {
      snapshots.drop(tenantId);
      feed.announce(tenantId);
    },
    onPlans: async () => {
      feed.announce(null);
      await snapshots.takeNewPlans();
    },
  });
  return {
    registry: registryOf(options, database, changes),
    domains: new DomainRepository({ database, changes, vault, clock }),
    passes: new PassRepository({ database, vault, clock }),
    devices: new DeviceRepository(database, clock),
    googleClasses: new GoogleClassRepository(database, clock),
    payloads: new PayloadRepository(database),
    directory: snapshots,
    probe: { name: "registry", check: () => database.read(async (db) => void (await db.select().from(registryState))) },
    start: () => snapshots.start(),
    stop: () => snapshots.stop(),
  };
}

function registryOf(options: RegistryOptions, database: Database, changes: RegistryChanges): Registry {
  const { channels, vault, clock, random, shards } = options;
  const names = channels.map(({ name }) => name);
  const tenants = new TenantRepository({ database, changes, shards, channels: names, clock, random });
  const keys = new KeyRepository({ database, changes, clock, random });
  const allPlans = new PlanRepository(database, changes);
  const templates = new TemplateRepository({ database, changes, kinds: templateKindsOf(channels) });
  const aliases = new AliasRepository(database, changes);
  const ownCredentials = new CredentialRepository(vault, changes);
  const tokens = new TokenRepository(database, clock);
  const suppressed = new SuppressionRepository(database, clock);
  return {
    createTenant: (tenant) => tenants.create(tenant),
    tenant: (tenantId) => tenants.one(tenantId),
    tenants: (cursor, limit) => tenants.page(cursor, limit),
    changeTenant: (tenantId, change) => tenants.change(tenantId, change),
    createKey: (tenantId) => keys.create(tenantId),
    keys: (tenantId) => keys.all(tenantId),
    revokeKey: (tenantId, keyId) => keys.revoke(tenantId, keyId),
    plans: () => allPlans.all(),
    putPlan: (plan) => allPlans.put(plan),
    putTemplate: (tenantId, template) => templates.put(tenantId, template),
    template: (tenantId, slug) => templates.one(tenantId, slug),
    templates: (tenantId) => templates.all(tenantId),
    deleteTemplate: (tenantId, slug) => templates.delete(tenantId, slug),
    putAlias: (tenantId, alias) => aliases.put(tenantId, alias),
    alias: (tenantId, alias) => aliases.one(tenantId, alias),
    aliases: (tenantId) => aliases.all(tenantId),
    deleteAlias: (tenantId, alias) => aliases.delete(tenantId, alias),
    putEmailCredentials: async (tenantId, given) => ownCredentials.put(emailSecret(tenantId, given)),
    putWhatsappCredentials: async (tenantId, given) => ownCredentials.put(whatsappSecret(tenantId, given)),
    putAppleCredentials: (tenantId, signer) => ownCredentials.put(appleSecret(tenantId, signer)),
    putGoogleCredentials: (tenantId, issuer) => ownCredentials.put(googleSecret(tenantId, issuer)),
    putWalletWebhook: (tenantId, url) => tenants.putWalletWebhook(tenantId, url),
    addTokens: (tenantId, amount, reason) => tokens.add(tenantId, amount, reason),
    tokenMovements: (tenantId, cursor, limit) => tokens.movements(tenantId, cursor, limit),
    putSuppression: (tenantId, address, reason) => suppressed.put(tenantId, address, reason),
    deleteSuppression: (tenantId, address) => suppressed.delete(tenantId, address),
    suppressionReason: (tenantId, address) => suppressed.reason(tenantId, address),
    suppressions: (tenantId, cursor, limit) => suppressed.page(tenantId, cursor, limit),
    suppressionsOfShard: (shard, after) => suppressed.ofShard(shard, after),
  };
}

/** Initializes a new registry or checks an existing one, and returns its version. */
async function prepare(database: Database, shards: number): Promise<number> {
  try {
    return await database.write(async (transaction) => {
      await transaction.insert(plans).values(FIRST_PLANS).onConflictDoNothing();
      await transaction
        .insert(registryState)
        .values({ id: 1, shards, version: 1, plansVersion: 1 })
        .onConflictDoNothing();
      const [state] = await transaction.select().from(registryState);
      if (state === undefined) throw new Error("the registry's state row is missing");
      if (state.shards === shards) return state.version;
      throw new ConfigurationError(
        `SHARDS is ${shards}, but the data was created with ${state.shards} and cannot change: set SHARDS=${state.shards}.`,
      );
    });
  } catch (error) {
    const isTableMissing = sqlState(error).state === "42P01";
    throw isTableMissing ? new ConfigurationError("The database has no current schema: run `waybill migrate`.") : error;
  }
}
