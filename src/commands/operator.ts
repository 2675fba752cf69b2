import type { Config } from "../config/config.ts";
import { PERMISSIONS, type Permission, TENANT_ID } from "../domain/tenants/tenant.ts";
import type { Json } from "../domain/texts/json.ts";
import { FolderLock } from "../storage/folder-lock.ts";
import type { Creation } from "../tasks/command-line-operator.ts";
import { runningStart } from "../tasks/control-socket.ts";
import type { NewTenant } from "../tenants/registry.ts";
import { UsageError } from "./command-line.ts";

export interface TenantOptions {
  readonly id?: string | undefined;
  readonly plan?: string | undefined;
  readonly channels?: string | undefined;
  readonly "allow-custom"?: string | undefined;
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
  const tenant = await newTenant(name, options);
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

async function newTenant(
  name: string,
  { id, plan, channels, "allow-custom": custom, permissions, tokens }: TenantOptions,
): Promise<NewTenant> {
  if (id !== undefined && !TENANT_ID.test(id)) {
    throw new UsageError("--id takes 1-63 of a-z, 0-9 and -, and begins with a letter or digit");
  }
  if (tokens !== undefined && !/^\d{1,9}$/.test(tokens)) throw new UsageError("--tokens takes a whole number");
  return {
    name,
    ...(id === undefined ? {} : { id }),
    ...(plan === undefined ? {} : { plan }),
    ...(channels === undefined ? {} : { channels: namesIn("--channels", channels, await channelNames()) }),
    ...(custom === undefined ? {} : { allow_custom: namesIn("--allow-custom", custom, await channelNames()) }),
    ...(permissions === undefined
      ? {}
      : { permissions: namesIn<Permission>("--permissions", permissions, PERMISSIONS) }),
    ...(tokens === undefined ? {} : { tokens: Number(tokens) }),
  };
}

async function channelNames() {
  const { CHANNELS } = await import("../app/channels.ts");
  return CHANNELS.map(({ name }) => name);
}

function namesIn<T extends string>(option: string, text: string, known: readonly T[]): readonly T[] {
  return text.split(",").map((given) => {
    const name = known.find((candidate) => candidate === given.trim());
    if (name === undefined)
      throw new UsageError(`${option} takes a selection of ${known.join(", ")}, separated by commas`);
    return name;
  });
}

/** Creates it in the registry, or through the server that holds the registry, without loading the code that opens one. */
async function createAt(config: Config, creation: Creation): Promise<unknown> {
  if (config.databaseUrl !== null) return createHere(config, creation);
  const lock = FolderLock.tryAcquire(config.home);
  // Creations contain only JSON values.
  if (lock === null) return runningStart(config.home).ask("create", creation as unknown as Json, () => undefined);
  try {
    return await createHere(config, creation);
  } finally {
    lock.release();
  }
}

async function createHere(config: Config, creation: Creation): Promise<unknown> {
  const [{ create }, { withRegistry }] = await Promise.all([
    import("../tasks/command-line-operator.ts"),
    import("./with-registry.ts"),
  ]);
  return withRegistry(config, (registry) => create(registry, creation));
}
