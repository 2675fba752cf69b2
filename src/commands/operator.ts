import { CHANNELS } from "../app/channels.ts";
import { type OpenRegistry, openRegistry } from "../app/open-registry.ts";
import { openDatabase } from "../app/stores.ts";
import type { Config } from "../config/config.ts";
import { UnavailableError } from "../domain/errors.ts";
import { httpOrigin } from "../domain/host.ts";
import { PERMISSIONS, type Permission } from "../domain/tenant.ts";
import { ApiError } from "../http/api-error.ts";
import { resultOf } from "../http/store-results.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { systemRandom } from "../runtime/system-random.ts";
import { FolderInUseError, FolderLock } from "../storage/folder-lock.ts";
import type { Registry } from "../storage/registry.ts";
import { Vault } from "../storage/vault.ts";
import type { NewTenant } from "../tenants/registry.ts";
import { createdTenant } from "../tenants/tenant-endpoints.ts";
import { processTelemetry, UsageError } from "./command-line.ts";

export interface TenantOptions {
  readonly id?: string | undefined;
  readonly plan?: string | undefined;
  readonly channels?: string | undefined;
  readonly permissions?: string | undefined;
  readonly tokens?: string | undefined;
}

/** `waybill tenant create NAME …`: prints the tenant as JSON. */
export async function createTenant(config: Config, words: readonly string[], options: TenantOptions): Promise<number> {
  const name = words.join(" ");
  if (name === "") throw new UsageError('"tenant create" needs the name of the tenant');
  const tenant = newTenant(name, options);
  const created = await asOperator(config, {
    directly: async (registry) => createdTenant(await registry.createTenant(tenant)),
    over: (call) => call("/tenants", tenant),
  });
  console.log(JSON.stringify(created, null, 2));
  return 0;
}

/** `waybill key create TENANT`: prints the key as JSON, only this once. */
export async function createKey(config: Config, words: readonly string[]): Promise<number> {
  const [tenantId, ...others] = words;
  if (tenantId === undefined || others.length > 0) throw new UsageError('"key create" needs the id of one tenant');
  const created = await asOperator(config, {
    directly: async (registry) => resultOf(await registry.createKey(tenantId)),
    over: (call) => call(`/tenants/${encodeURIComponent(tenantId)}/keys`, null),
  });
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

type Call = (path: string, body: unknown) => Promise<unknown>;

/** Acts on the registry. If a server of ours holds the embedded registry, goes through that server's operator API. */
async function asOperator(
  config: Config,
  act: { directly(registry: Registry): Promise<unknown>; over(call: Call): Promise<unknown> },
): Promise<unknown> {
  if (config.databaseUrl !== null) return withRegistry(config, act.directly);
  let lock: FolderLock;
  try {
    lock = FolderLock.acquire(config.home);
  } catch (error) {
    if (!(error instanceof FolderInUseError)) throw error;
    return act.over((path, body) => callServer(config, path, body));
  }
  try {
    return await withRegistry(config, act.directly);
  } finally {
    lock.release();
  }
}

export function withRegistry(config: Config, act: (registry: Registry) => Promise<unknown>): Promise<unknown> {
  return withOpenRegistry(config, ({ registry }) => act(registry));
}

export async function withOpenRegistry<T>(config: Config, act: (registry: OpenRegistry) => Promise<T>): Promise<T> {
  const database = await openDatabase(config, "leave");
  try {
    const opened = await openRegistry({
      channels: CHANNELS,
      db: database.db,
      shards: config.shards,
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

async function callServer({ host, port, operatorToken }: Config, path: string, body: unknown): Promise<unknown> {
  const at = httpOrigin(host, port);
  let response: Response;
  try {
    response = await fetch(`${at}/dash/api${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${operatorToken}`, "content-type": "application/json" },
      ...(body === null ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(10_000),
    });
  } catch (error) {
    const message = `the data folder is in use, and no server answers at ${at}; set HOST and PORT to the server's`;
    throw new UnavailableError(message, { cause: error });
  }
  const answer: unknown = await response.json();
  if (response.ok) return answer;
  const said = typeof answer === "object" && answer !== null && "error" in answer ? String(answer.error) : "it refused";
  throw new ApiError(500, `the server at ${at} answered ${response.status}: ${said}`);
}
