import { join } from "node:path";
import { emailTemplateBody } from "../../src/channels/email/content/stored-template.ts";
import { emailSecret } from "../../src/channels/email/credentials.ts";
import { domains } from "../../src/channels/email/tables.ts";
import type { EmailTemplate } from "../../src/domain/channels/email.ts";
import { connectPostgres } from "../../src/storage/postgres/connect-postgres.ts";
import { migrate } from "../../src/storage/postgres/migrate.ts";
import { openPglite } from "../../src/storage/postgres/pglite.ts";
import { plans, tenants } from "../../src/storage/tables.ts";
import { Vault } from "../../src/storage/vault.ts";
import { apiKeyHash, apiKeyPrefix, newApiKey } from "../../src/tenants/api-key.ts";
import { credentials, keys, templates } from "../../src/tenants/tables.ts";
import { tenantShard } from "../../src/tenants/tenant-shard.ts";
import { machineRandom } from "../tenants/machine.ts";
import { MASTER_KEY, openTestRegistry } from "../tenants/open-test-registry.ts";
import type { LoadTenant } from "./load.ts";

/** `MASTER_KEY` for processes that run on a seeded registry. */
export const SEED_MASTER_KEY = Buffer.from(MASTER_KEY).toString("base64");

export interface SeedTenant {
  readonly id: string;
  /** Default `load`: it sends as fast as it can. `limited`: ten requests per minute. */
  readonly plan?: "load" | "limited";
  /** The tenant's own mail server; absent: the platform's. Only with `PROVIDERS=live`. */
  readonly smtpUrl?: string;
  /** Private key (PKCS #8, PEM) of its own domain, which is verified for the platform's relay. */
  readonly dkimKeyPem?: string;
  readonly template?: EmailTemplate & { readonly slug: string };
  /** Default: e-mail alone. */
  readonly channels?: readonly ("email" | "whatsapp" | "wallet")[];
  /** Default: none. */
  readonly tokens?: number;
}

export interface SeedPlace {
  /** A folder for PGlite, or the URL of a PostgreSQL server. */
  readonly home?: string;
  readonly databaseUrl?: string;
  readonly shards?: number;
}

const ROWS_PER_INSERT = 500;
const LIMITED_REQUESTS_PER_MINUTE = 10;

/**
 * Writes tenants with their keys into a registry that no process has open: thousands per second, and with verified mail
 * servers of their own. Through the API, each would take several calls and a name server.
 */
export async function seedTenants(
  { home = "", databaseUrl, shards = 16 }: SeedPlace,
  wanted: readonly SeedTenant[],
): Promise<readonly LoadTenant[]> {
  const database =
    databaseUrl === undefined ? await openPglite(join(home, "postgres")) : await connectPostgres(databaseUrl);
  const { db } = database;
  try {
    await migrate(db);
    // Writes the row that every registry has.
    await (await openTestRegistry(database, { shards })).stop();
    const seeded = wanted.map((tenant) => ({ ...tenant, apiKey: newApiKey(machineRandom) }));
    const createdAt = new Date();
    await db
      .insert(plans)
      .values([
        { name: "load", requestsPerMinute: 1_000_000, deliveriesPerSecond: null },
        { name: "limited", requestsPerMinute: LIMITED_REQUESTS_PER_MINUTE, deliveriesPerSecond: null },
      ])
      .onConflictDoNothing();
    const vault = new Vault([MASTER_KEY], machineRandom);
    for (let from = 0; from < seeded.length; from += ROWS_PER_INSERT) {
      const part = seeded.slice(from, from + ROWS_PER_INSERT);
      await db.insert(tenants).values(part.map((tenant) => tenantRow(tenant, shards, createdAt)));
      await db.insert(keys).values(part.map((tenant) => keyRow(tenant, createdAt)));
      const templated = part.flatMap(({ id, template }) => (template === undefined ? [] : [templateRow(id, template)]));
      if (templated.length > 0) await db.insert(templates).values(templated);
      const own = part.filter(hasSender);
      if (own.length === 0) continue;
      await db.insert(domains).values(own.map((tenant) => domainRow(tenant, vault, createdAt)));
      await db.insert(credentials).values(own.map((tenant) => credentialRow(tenant, vault)));
    }
    return seeded.map(({ id, apiKey }) => ({ id, apiKey }));
  } finally {
    await database.close();
  }
}

/** Whether it sends from its own domain, through its own mail server or the platform's. */
function hasSender({ smtpUrl, dkimKeyPem }: SeedTenant): boolean {
  return smtpUrl !== undefined || dkimKeyPem !== undefined;
}

function tenantRow(tenant: SeedTenant, shards: number, createdAt: Date) {
  const { id, plan = "load" } = tenant;
  return {
    id,
    name: id,
    plan,
    channels: [...(tenant.channels ?? ["email" as const])],
    permissions: ["allow_raw_html" as const],
    allowCustom: hasSender(tenant) ? ["email" as const] : [],
    tokens: tenant.tokens ?? 0,
    shard: tenantShard(id, shards),
    version: 1,
    createdAt,
  };
}

function keyRow({ id, apiKey }: SeedTenant & { readonly apiKey: string }, createdAt: Date) {
  return { id: `key-${id}`, tenantId: id, hash: apiKeyHash(apiKey), prefix: apiKeyPrefix(apiKey), createdAt };
}

const formatDomainName = (id: string) => `${id}.example.test`;

function templateRow(tenantId: string, { slug, ...template }: NonNullable<SeedTenant["template"]>) {
  return { tenantId, slug, channel: "email" as const, body: emailTemplateBody(template) };
}

function domainRow({ id, dkimKeyPem }: SeedTenant, vault: Vault, createdAt: Date) {
  const isSigned = dkimKeyPem !== undefined;
  return {
    domain: formatDomainName(id),
    tenantId: id,
    // Without a key, only its own mail server is verified.
    relayEnabled: isSigned,
    smtpEnabled: !isSigned,
    relayStatus: isSigned ? ("verified" as const) : ("pending" as const),
    smtpStatus: isSigned ? ("pending" as const) : ("verified" as const),
    selector: "wbseed",
    privateKey: vault.seal({ tenantId: id, kind: "dkim", field: formatDomainName(id) }, dkimKeyPem ?? "none"),
    publicKey: "none",
    returnPathHost: `bounce.${formatDomainName(id)}`,
    createdAt,
    findings: { all: [] },
  };
}

function credentialRow({ id, smtpUrl }: SeedTenant, vault: Vault) {
  const relay = smtpUrl === undefined ? {} : { smtp_url: smtpUrl };
  const secret = emailSecret(id, { from_address: `mail@${formatDomainName(id)}`, ...relay });
  if (secret.kind !== "done") throw new Error(secret.why);
  const { place, text } = secret.value;
  return { tenantId: id, kind: "email", sealed: vault.seal(place, text) };
}
