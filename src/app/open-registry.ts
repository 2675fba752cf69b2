import type { AppChannel, ChannelStores, ChannelTools } from "../channels/contract.ts";
import type { Clock } from "../domain/clock.ts";
import type { ContentSeal } from "../domain/content-seal.ts";
import type { ContentStore } from "../domain/content-store.ts";
import { ConfigurationError } from "../domain/errors.ts";
import type { PayloadStore } from "../domain/jobs/payload-store.ts";
import type { ReadinessProbe } from "../domain/jobs/report.ts";
import type { Random } from "../domain/random.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { OperatorDirectory } from "../domain/tenants/operator.ts";
import type { RecipientIndex } from "../domain/tenants/recipient-index.ts";
import { type ChangeFeed, FREE_QUEUE_SHARE, QUEUE_SHARE, type TenantDirectory } from "../domain/tenants/tenant.ts";
import { AuditRepository } from "../operators/audit-log.ts";
import { OperatorRepository } from "../operators/operator-repository.ts";
import { OperatorTokens } from "../operators/operator-tokens.ts";
import { ContentRepository } from "../storage/content-repository.ts";
import { openContentSeal } from "../storage/content-seal.ts";
import { LastUses } from "../storage/last-uses.ts";
import { PayloadRepository } from "../storage/payload-repository.ts";
import { type AnyDb, Database } from "../storage/postgres/database.ts";
import { sqlState } from "../storage/postgres/sql-state.ts";
import { openRecipientIndex } from "../storage/recipient-index.ts";
import type { Registry, RegistryTools } from "../storage/registry.ts";
import { RegistryChanges } from "../storage/registry-changes.ts";
import { requireShards } from "../storage/require-shards.ts";
import { requireMasterKeys } from "../storage/sealed-column.ts";
import { plans, registryState } from "../storage/tables.ts";
import type { Vault } from "../storage/vault.ts";
import { CredentialRepository } from "../tenants/credential-repository.ts";
import { tenantRegistry } from "../tenants/endpoints.ts";
import { KeyRepository } from "../tenants/key-repository.ts";
import { TenantSnapshots } from "../tenants/tenant-snapshots.ts";
import { TenantSource } from "../tenants/tenant-source.ts";
import { DeliveryRepository } from "../webhooks/delivery-repository.ts";
import { webhookRegistry } from "../webhooks/endpoints.ts";
import { NewsRepository } from "../webhooks/news-repository.ts";
import { joinTenantParts, listCredentialKinds, listSealedColumns, listTemplateKinds } from "./of-channels.ts";

export interface RegistryOptions {
  readonly channels: readonly AppChannel[];
  readonly db: AnyDb;
  /** Told when it leaves a call unanswered. */
  readonly onSilence?: (() => void) | undefined;
  /** How many virtual shards the tenants are spread over; fixed when the data is first created. */
  readonly shards: number;
  /** The domain of the platform's own sender: lower case, ASCII. */
  readonly senderDomain: string;
  readonly vault: Vault;
  readonly clock: Clock;
  readonly random: Random;
  readonly feed: ChangeFeed;
  readonly telemetry: Telemetry;
}

export interface OpenRegistry extends ChannelStores {
  readonly registry: Registry;
  readonly payloads: PayloadStore;
  /** Files that jobs send. */
  readonly jobContents: ContentStore;
  readonly webhookDeliveries: DeliveryRepository;
  /** Its `start` removes old rows; one process of a start does. */
  readonly webhookNews: NewsRepository;
  readonly directory: TenantDirectory;
  readonly operators: OperatorDirectory;
  readonly operatorAccounts: OperatorRepository;
  /** Its `start` removes old rows; one process of a start does. */
  readonly audit: AuditRepository;
  readonly recipients: RecipientIndex;
  readonly contents: ContentSeal;
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
  const { clock, random, feed, telemetry, vault, shards } = options;
  const database = new Database(options.db, clock, options.onSilence);
  const version = await prepare(database, shards);
  await requireMasterKeys(database, vault, listSealedColumns(options.channels));
  const recipients = await openRecipientIndex(database, vault, random);
  const contents = await openContentSeal(database, vault, random);

  const source = new TenantSource({ database, vault, clock, channels: joinTenantParts(options.channels) });
  const onKeyUse = (keyId: string) => keyUses.note(keyId);
  const followers: (() => Promise<void>)[] = [];
  const onOperators = async (): Promise<void> => {
    await operators.refresh();
    for (const refresh of followers) await refresh();
  };
  const heard = { feed, onOperators, onKeyUse };
  const snapshots: TenantSnapshots = new TenantSnapshots({ source, version, ...heard, clock, telemetry });
  const changes = new RegistryChanges(database, {
    onTenant: (tenantId) => {
      snapshots.drop(tenantId);
      feed.announce(tenantId);
    },
    onPlans: async () => {
      feed.announce(null);
      await snapshots.takeNewPlans();
    },
    // Other processes notice at their next poll, and this one if it cannot read at once.
    async onOperators() {
      await operators.takeChange();
      for (const refresh of followers) await refresh().catch(() => {});
    },
  });
  const accounts = new OperatorRepository({ database, changes, clock, random });
  const { operators, operatorUses }: Tokens = operatorTokens(accounts, snapshots, { clock, telemetry });
  const keys = new KeyRepository({ database, changes, clock, random });
  const keyUses = new LastUses({ write: (uses) => keys.noteUses(uses), clock, telemetry });
  const kinds = listCredentialKinds(options.channels);
  const credentials = new CredentialRepository({ database, changes, vault, clock, kinds });
  const tools = { database, changes, vault, credentials, recipients, clock, random };
  const ofChannels = { ...tools, telemetry, senderDomain: options.senderDomain };
  const stores = createStores(options, { ...ofChannels, follow: (refresh) => followers.push(refresh) });
  await onOperators();
  return {
    registry: createRegistry(options, tools),
    ...stores,
    payloads: new PayloadRepository(database),
    jobContents: new ContentRepository(database),
    webhookDeliveries: new DeliveryRepository(tools),
    webhookNews: new NewsRepository({ database, clock, random, telemetry }),
    directory: snapshots,
    operators,
    operatorAccounts: accounts,
    audit: new AuditRepository({ database, clock, random, telemetry }),
    recipients,
    contents,
    probe: { name: "registry", check: () => database.read(async (db) => void (await db.select().from(registryState))) },
    ...together([snapshots, operatorUses, keyUses]),
  };
}

interface Tokens {
  readonly operators: OperatorTokens;
  readonly operatorUses: LastUses;
}

function operatorTokens(
  accounts: OperatorRepository,
  snapshots: TenantSnapshots,
  common: Pick<RegistryOptions, "clock" | "telemetry">,
): Tokens {
  const operatorUses = new LastUses({ write: (uses) => accounts.noteUses(uses), ...common });
  const operators = new OperatorTokens({
    read: () => accounts.withHashes(),
    isTrusted: () => snapshots.isTrusted,
    onUse: (id) => operatorUses.note(id),
  });
  return { operators, operatorUses };
}

/** Parts that are started and stopped together, in this order. */
function together(parts: readonly { start(): void; stop(): Promise<void> }[]) {
  return {
    start() {
      for (const part of parts) part.start();
    },
    async stop() {
      for (const part of parts) await part.stop();
    },
  };
}

function createRegistry({ channels, shards }: RegistryOptions, tools: RegistryTools): Registry {
  const names = channels.map(({ name }) => name);
  const ofTenants = tenantRegistry(tools, {
    channels: names,
    kinds: listTemplateKinds(channels),
    credentialKinds: listCredentialKinds(channels),
    shards,
  });
  const ofWebhooks = webhookRegistry(tools);
  // Each member of the type is one of these rooms' or of a listed channel's.
  return Object.assign(ofTenants, ofWebhooks, ...channels.map((channel) => channel.registry?.(tools))) as Registry;
}

function createStores({ channels }: RegistryOptions, tools: ChannelTools): ChannelStores {
  // Each member of the type is a listed channel's.
  return Object.assign({}, ...channels.map((channel) => channel.stores?.(tools))) as ChannelStores;
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
      const state = await requireShards(transaction, shards);
      if (state === null) throw new Error("the registry's state row is missing");
      return state.version;
    });
  } catch (error) {
    const isTableMissing = sqlState(error).state === "42P01";
    throw isTableMissing ? new ConfigurationError("The database has no current schema: run `waybill migrate`.") : error;
  }
}
