import type { EmailCredentials } from "../../../src/channels/email/credentials.ts";
import type { EmailTemplateRecord } from "../../../src/channels/email/template-kind.ts";
import type { WhatsappAliasRecord } from "../../../src/channels/whatsapp/alias-repository.ts";
import type { WhatsappCredentials } from "../../../src/channels/whatsapp/credentials.ts";
import { ApiError } from "../../../src/domain/errors.ts";
import type { SuppressionReason } from "../../../src/domain/job.ts";
import type { Page } from "../../../src/domain/page.ts";
import type { Suppression, SuppressionRecord } from "../../../src/domain/suppressions.ts";
import {
  FREE_QUEUE_SHARE,
  type Plan,
  QUEUE_SHARE,
  type Tenant,
  type TenantDirectory,
} from "../../../src/domain/tenant.ts";
import type { AppleSigner, GoogleIssuer } from "../../../src/domain/wallet.ts";
import type { TemplateRecord } from "../../../src/http/template-kind.ts";
import type { Registry } from "../../../src/storage/registry.ts";
import type { KeyRecord, NewTenant, TenantChange, TenantRecord, TokenMovement } from "../../../src/tenants/registry.ts";

const CREATED_AT = "2026-11-21T07:30:00.000Z";

interface Entry {
  record: TenantRecord;
  readonly keys: Map<string, string>;
  readonly templates: Map<string, TemplateRecord>;
  readonly movements: TokenMovement[];
  readonly suppressed: Map<string, SuppressionReason>;
  readonly aliases: Map<string, WhatsappAliasRecord>;
  credentials: EmailCredentials | null;
  whatsapp: WhatsappCredentials | null;
  apple: AppleSigner | null;
  google: GoogleIssuer | null;
  webhookUrl: string | null;
}

/** A registry in memory, and the directory over it. */
export class FakeRegistry implements Registry, TenantDirectory {
  readonly entries = new Map<string, Entry>();
  /** Answers look-ups as a cold snapshot does: by a promise. */
  isCold = false;
  /** Rejects look-ups, as an unreachable registry does. */
  failure: Error | null = null;
  private readonly plansByName = new Map<string, Plan>([
    ["free", { name: "free", requestsPerMinute: 100, deliveriesPerSecond: null, ...FREE_QUEUE_SHARE }],
    ["pro", { name: "pro", requestsPerMinute: 1000, deliveriesPerSecond: null, ...QUEUE_SHARE }],
  ]);
  private nextKey = 1;

  byApiKey(apiKey: string): Tenant | null | Promise<Tenant | null> {
    const entry = [...this.entries.values()].find(({ keys }) => [...keys.values()].includes(apiKey));
    return this.remembered(entry);
  }

  byId(tenantId: string): Tenant | null | Promise<Tenant | null> {
    return this.remembered(this.entries.get(tenantId));
  }

  private remembered(entry: Entry | undefined): Tenant | null | Promise<Tenant | null> {
    if (this.failure !== null) return Promise.reject(this.failure);
    const tenant = entry === undefined ? null : this.toTenant(entry);
    return this.isCold ? new Promise((resolve) => setImmediate(() => resolve(tenant))) : tenant;
  }

  private toTenant({ record, templates, aliases, whatsapp }: Entry): Tenant {
    const own = record.allow_custom.includes("whatsapp") ? whatsapp : null;
    return {
      tenantId: record.id,
      shard: record.shard,
      name: record.name,
      plan: this.plan(record.plan),
      channels: new Set(record.channels),
      permissions: new Set(record.permissions),
      allowCustom: new Set(record.allow_custom),
      emailTemplates: new Map([...templates].filter(isOfEmail)),
      emailSender: null,
      domains: new Map(),
      whatsapp: {
        sender: own === null ? null : { phoneNumberId: own.phone_number_id, accessToken: own.access_token },
        aliases: new Map(
          Array.from(aliases, ([alias, { meta_name, language_code, params, header }]) => [
            alias,
            { metaName: meta_name, languageCode: language_code, params, header },
          ]),
        ),
      },
      wallet: { apple: null, google: null, templates: new Map(), webhookUrl: null },
    };
  }

  async createTenant(tenant: NewTenant): Promise<TenantRecord> {
    const id = tenant.id ?? `tenant-${this.entries.size + 1}`;
    if (this.entries.has(id)) throw new ApiError(409, `there is a tenant ${id} already`);
    const record: TenantRecord = {
      id,
      name: tenant.name,
      plan: this.plan(tenant.plan ?? "free").name,
      channels: tenant.channels ?? ["email", "whatsapp", "wallet"],
      permissions: tenant.permissions ?? [],
      allow_custom: tenant.allow_custom ?? [],
      tokens: tenant.tokens ?? 0,
      shard: 3,
      created_at: CREATED_AT,
    };
    this.entries.set(id, {
      record,
      keys: new Map(),
      templates: new Map(),
      movements: [],
      suppressed: new Map(),
      aliases: new Map(),
      credentials: null,
      whatsapp: null,
      apple: null,
      google: null,
      webhookUrl: null,
    });
    return record;
  }

  async tenant(tenantId: string): Promise<TenantRecord> {
    return this.entry(tenantId).record;
  }

  async tenants(cursor: string | null, limit: number): Promise<Page<TenantRecord>> {
    const all = [...this.entries.values()]
      .map(({ record }) => record)
      .filter(({ id }) => cursor === null || id > cursor);
    const items = all.sort((one, other) => (one.id < other.id ? -1 : 1)).slice(0, limit);
    return { items, nextCursor: all.length > limit ? (items.at(-1)?.id ?? null) : null };
  }

  async changeTenant(tenantId: string, change: TenantChange): Promise<TenantRecord> {
    const entry = this.entry(tenantId);
    if (change.plan !== undefined) this.plan(change.plan);
    entry.record = { ...entry.record, ...change };
    return entry.record;
  }

  async createKey(tenantId: string): Promise<{ key_id: string; api_key: string }> {
    const key_id = `k${this.nextKey++}`;
    const api_key = `wb_test_${key_id}_${tenantId}`;
    this.entry(tenantId).keys.set(key_id, api_key);
    return { key_id, api_key };
  }

  async keys(tenantId: string): Promise<readonly KeyRecord[]> {
    return Array.from(this.entry(tenantId).keys, ([key_id, key]) => ({
      key_id,
      prefix: key.slice(0, 8),
      created_at: CREATED_AT,
    }));
  }

  async revokeKey(tenantId: string, keyId: string): Promise<void> {
    if (!this.entry(tenantId).keys.delete(keyId)) throw new ApiError(404, "there is no such key");
  }

  async plans(): Promise<readonly Plan[]> {
    return [...this.plansByName.values()];
  }

  async putPlan(plan: Plan): Promise<Plan> {
    this.plansByName.set(plan.name, plan);
    return plan;
  }

  async putTemplate(tenantId: string, template: TemplateRecord): Promise<TemplateRecord> {
    this.entry(tenantId).templates.set(template.slug, template);
    return template;
  }

  async template(tenantId: string, slug: string): Promise<TemplateRecord> {
    const template = this.entry(tenantId).templates.get(slug);
    if (template === undefined) throw new ApiError(404, "there is no such template");
    return template;
  }

  async templates(tenantId: string): Promise<readonly TemplateRecord[]> {
    return [...this.entry(tenantId).templates.values()];
  }

  async deleteTemplate(tenantId: string, slug: string): Promise<void> {
    if (!this.entry(tenantId).templates.delete(slug)) throw new ApiError(404, "there is no such template");
  }

  async putEmailCredentials(tenantId: string, credentials: EmailCredentials): Promise<void> {
    this.entry(tenantId).credentials = credentials;
  }

  readonly aliases = {
    put: async (tenantId: string, alias: WhatsappAliasRecord): Promise<WhatsappAliasRecord> => {
      this.entry(tenantId).aliases.set(alias.alias, alias);
      return alias;
    },
    one: async (tenantId: string, name: string): Promise<WhatsappAliasRecord> => {
      const alias = this.entry(tenantId).aliases.get(name);
      if (alias === undefined) throw new ApiError(404, "there is no such alias");
      return alias;
    },
    all: async (tenantId: string): Promise<readonly WhatsappAliasRecord[]> => [
      ...this.entry(tenantId).aliases.values(),
    ],
    delete: async (tenantId: string, name: string): Promise<void> => {
      if (!this.entry(tenantId).aliases.delete(name)) throw new ApiError(404, "there is no such alias");
    },
  };

  async putWhatsappCredentials(tenantId: string, credentials: WhatsappCredentials): Promise<void> {
    this.entry(tenantId).whatsapp = credentials;
  }

  async putAppleCredentials(tenantId: string, signer: AppleSigner): Promise<void> {
    this.entry(tenantId).apple = signer;
  }

  async putGoogleCredentials(tenantId: string, issuer: GoogleIssuer): Promise<void> {
    this.entry(tenantId).google = issuer;
  }

  async putWalletWebhook(tenantId: string, url: string | null): Promise<void> {
    this.entry(tenantId).webhookUrl = url;
  }

  async addTokens(tenantId: string, amount: number, reason: string): Promise<{ balance: number }> {
    const entry = this.entry(tenantId);
    const balance = entry.record.tokens + amount;
    if (balance < 0) throw new ApiError(409, "the balance would fall below zero");
    entry.record = { ...entry.record, tokens: balance };
    entry.movements.unshift({ amount, reason, job_id: null, balance, created_at: CREATED_AT });
    return { balance };
  }

  async tokenMovements(tenantId: string, _cursor: string | null, limit: number): Promise<Page<TokenMovement>> {
    return { items: this.entry(tenantId).movements.slice(0, limit), nextCursor: null };
  }

  async putSuppression(tenantId: string, address: string, reason: SuppressionReason): Promise<SuppressionRecord> {
    if (this.failure !== null) throw this.failure;
    this.entry(tenantId).suppressed.set(address, reason);
    return { address, reason, created_at: CREATED_AT };
  }

  async deleteSuppression(tenantId: string, address: string): Promise<boolean> {
    return this.entry(tenantId).suppressed.delete(address);
  }

  async suppressionReason(tenantId: string, address: string): Promise<SuppressionReason | null> {
    return this.entry(tenantId).suppressed.get(address) ?? null;
  }

  async suppressions(tenantId: string, cursor: string | null, limit: number): Promise<Page<SuppressionRecord>> {
    const all = [...this.entry(tenantId).suppressed]
      .map(([address, reason]) => ({ address, reason, created_at: CREATED_AT }))
      .filter(({ address }) => cursor === null || address > cursor)
      .sort((one, other) => (one.address < other.address ? -1 : 1));
    return { items: all.slice(0, limit), nextCursor: all.length > limit ? (all[limit - 1]?.address ?? null) : null };
  }

  async suppressionsOfShard(): Promise<readonly Suppression[]> {
    return [];
  }

  private entry(tenantId: string): Entry {
    const entry = this.entries.get(tenantId);
    if (entry === undefined) throw new ApiError(404, `there is no tenant ${tenantId}`);
    return entry;
  }

  private plan(name: string): Plan {
    const plan = this.plansByName.get(name);
    if (plan === undefined) throw new ApiError(400, `there is no plan ${name}`);
    return plan;
  }
}

function isOfEmail(entry: [string, TemplateRecord]): entry is [string, EmailTemplateRecord] {
  return entry[1].channel === "email";
}
