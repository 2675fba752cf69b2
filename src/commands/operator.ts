import { CHANNELS } from "../app/channels.ts";
import { type Creation, create } from "../app/command-line-operator.ts";
import { runningStart } from "../app/control-socket.ts";
import { senderDomainOf } from "../app/email.ts";
import { type OpenRegistry, openRegistry } from "../app/open-registry.ts";
import { openDatabase } from "../app/stores.ts";
import type { Config } from "../config/config.ts";
import type { Json } from "../domain/json.ts";
import { PERMISSIONS, type Permission } from "../domain/tenant.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { systemRandom } from "../runtime/system-random.ts";
import { FolderLock } from "../storage/folder-lock.ts";
import { Vault } from "../storage/vault.ts";
import type { NewTenant } from "../tenants/registry.ts";
import { processTelemetry, UsageError } from "./command-line.ts";

export interface TenantOptions {
  readonly id?: string | undefined;
  readonly plan?: string | undefined;
  readonly channels?: string | undefined;
  readonly permissions?: string | undefined;
  readonly tokens?: string | undefined;
}

/** `waybill tenant create NAME …`: prints the tenant as JSON. */
export async function createTenant(
  config: () => Config,
  words: readonly string[],
  options: TenantOptions,
): Promise<number> {
  const name = words.join(" ");
  if (name === "") throw new UsageError('"tenant create" needs the name of the tenant');
  const tenant = newTenant(name, options);
  const created = await createAt(config(), { kind: "tenant", tenant });
  console.log(JSON.stringify(created, null, 2));
  return 0;
}

/** `waybill key create TENANT`: prints the key as JSON, only this once. */
export async function createKey(config: () => Config, words: readonly string[]): Promise<number> {
  const [tenantId, ...others] = words;
  if (tenantId === undefined || others.length > 0) throw new UsageError('"key create" needs the id of one tenant');
  const created = await createAt(config(), { kind: "key", tenantId });
  console.log(JSON.stringify(created, null, 2));
  return 0;
}

const CHANNEL_NAMES = CHANNELS.map(({ name }) => name);

function newTenant(name: string, { id, plan, channels, permissions, tokens }: TenantOptions): NewTenant {
  if (tokens !== undefined && !/^\d{1,9}$/.test(tokens)) throw new UsageError("--tokens takes a whole number");
  return {
    name,
    ...(id === undefined ? {} : { id }),
    ...(plan === undefined ? {} : { plan }),
    ...(channels === undefined ? {} : { channels: namesIn("--channels", channels, CHANNEL_NAMES) }),
    ...(permissions === undefined
      ? {}
      : { permissions: namesIn<Permission>("--permissions", permissions, PERMISSIONS) }),
    ...(tokens === undefined ? {} : { tokens: Number(tokens) }),
  };
}

function namesIn<T extends string>(option: string, text: string, known: readonly T[]): readonly T[] {
  return text.split(",").map((given) => {
    const name = known.find((candidate) => candidate === given.trim());
    if (name === undefined)
      throw new UsageError(`${option} takes a selection of ${known.join(", ")}, separated by commas`);
    return name;
  });
}

/** Creates it in the registry. If a server of ours holds that, asks the server. */
async function createAt(config: Config, creation: Creation): Promise<unknown> {
  if (config.databaseUrl !== null) return withRegistry(config, (registry) => create(registry, creation));
  const lock = FolderLock.tryAcquire(config.home);
  // What is created has only values that JSON has.
  if (lock === null) return runningStart(config.home).ask("create", creation as unknown as Json, () => undefined);
  try {
    return await withRegistry(config, (registry) => create(registry, creation));
  } finally {
    lock.release();
  }
}

export function withRegistry(
  config: Config,
  act: (registry: Pick<OpenRegistry, "registry" | "audit">) => Promise<unknown>,
): Promise<unknown> {
  return withOpenRegistry(config, act);
}

export async function withOpenRegistry<T>(config: Config, act: (registry: OpenRegistry) => Promise<T>): Promise<T> {
  const database = await openDatabase(config, "leave");
  try {
    const opened = await openRegistry({
      channels: CHANNELS,
      db: database.db,
      shards: config.shards,
      senderDomain: senderDomainOf(config),
      vault: new Vault(config.masterKeys, systemRandom),
      clock: systemClock,
      random: systemRandom,
      // Serving processes notice the change in the database within a second.
      feed: { announce: () => {}, onChange: () => () => {} },
      telemetry: processTelemetry(config),
    });
    return await act(opened);
  } finally {
    await database.close();
  }
}
