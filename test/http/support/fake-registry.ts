import type { EmailCredentials } from "../../../src/channels/email/credentials.ts";
import type { EmailTemplateRecord } from "../../../src/channels/email/template-kind.ts";
import type { WhatsappAliasRecord } from "../../../src/channels/whatsapp/alias-repository.ts";
import type { WhatsappCredentials } from "../../../src/channels/whatsapp/credentials.ts";
import type { SuppressionReason } from "../../../src/domain/job.ts";
import type { Page } from "../../../src/domain/page.ts";
import {
  type AllOfTenant,
  type Done,
  done,
  type Missing,
  missing,
  type PageOfTenant,
} from "../../../src/domain/store-result.ts";
import type { Suppression, SuppressionRecord } from "../../../src/domain/suppressions.ts";
import type { TemplateRecord } from "../../../src/domain/template-record.ts";
import {
  FREE_QUEUE_SHARE,
  type Plan,
  QUEUE_SHARE,
  type Tenant,
  type TenantDirectory,
} from "../../../src/domain/tenant.ts";
import type { AppleSigner, GoogleIssuer } from "../../../src/domain/wallet.ts";
import type { Registry } from "../../../src/storage/registry.ts";
import type {
  CreatedTenant,
  KeyRecord,
  MovedTokens,
  NewKey,
  NewTenant,
  NoSuchPlan,
  TenantChange,
  TenantRecord,
  TokenMovement,
} from "../../../src/tenants/registry.ts";

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

  async createTenant(tenant: NewTenant): Promise<CreatedTenant> {
    const { id = `tenant-${this.entries.size + 1}`, plan = "free" } = tenant;
    if (this.entries.has(id)) return { kind: "taken", by: "id" };
    if (!this.plansByName.has(plan)) return { kind: "no_such_plan", plan };
    const record: TenantRecord = {
      id,
      name: tenant.name,
      plan,
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
    return done(record);
  }

  async tenant(tenantId: string): Promise<Done<TenantRecord> | Missing<"tenant">> {
    return this.of(tenantId, ({ record }) => done(record));
  }

  async tenants(cursor: string | null, limit: number): Promise<Done<Page<TenantRecord>>> {
    const all = [...this.entries.values()]
      .map(({ record }) => record)
      .filter(({ id }) => cursor === null || id > cursor);
    const items = all.sort((one, other) => (one.id < other.id ? -1 : 1)).slice(0, limit);
    return done({ items, nextCursor: all.length > limit ? (items.at(-1)?.id ?? null) : null });
  }

  async changeTenant(
    tenantId: string,
    change: TenantChange,
  ): Promise<Done<TenantRecord> | Missing<"tenant"> | NoSuchPlan> {
    return this.of(tenantId, (entry) => {
      if (change.plan !== undefined && !this.plansByName.has(change.plan)) {
        return { kind: "no_such_plan", plan: change.plan } as const;
      }
      entry.record = { ...entry.record, ...change };
      return done(entry.record);
    });
  }

  async createKey(tenantId: string): Promise<Done<NewKey> | Missing<"tenant">> {
    return this.of(tenantId, ({ keys }) => {
      const key_id = `k${this.nextKey++}`;
      const api_key = `wb_test_${key_id}_${tenantId}`;
      keys.set(key_id, api_key);
      return done({ key_id, api_key });
    });
  }

  async keys(tenantId: string): Promise<AllOfTenant<KeyRecord>> {
    return this.of(tenantId, ({ keys }) =>
      done(Array.from(keys, ([key_id, key]) => ({ key_id, prefix: key.slice(0, 8), created_at: CREATED_AT }))),
    );
  }

  async revokeKey(tenantId: string, keyId: string): Promise<Done | Missing<"tenant" | "key">> {
    return this.of(tenantId, ({ keys }) => (keys.delete(keyId) ? done(null) : missing("key")));
  }

  async plans(): Promise<readonly Plan[]> {
    return [...this.plansByName.values()];
  }

  async putPlan(plan: Plan): Promise<Done<Plan>> {
    this.plansByName.set(plan.name, plan);
    return done(plan);
  }

  async putTemplate(tenantId: string, template: TemplateRecord): Promise<Done<TemplateRecord> | Missing<"tenant">> {
    return this.of(tenantId, ({ templates }) => {
      templates.set(template.slug, template);
      return done(template);
    });
  }

  async template(tenantId: string, slug: string): Promise<Done<TemplateRecord> | Missing<"tenant" | "template">> {
    return this.of(tenantId, ({ templates }) => {
      const template = templates.get(slug);
      return template === undefined ? missing("template") : done(template);
    });
  }

  async templates(tenantId: string): Promise<AllOfTenant<TemplateRecord>> {
    return this.of(tenantId, ({ templates }) => done([...templates.values()]));
  }

  async deleteTemplate(tenantId: string, slug: string): Promise<Done | Missing<"tenant" | "template">> {
    return this.of(tenantId, ({ templates }) => (templates.delete(slug) ? done(null) : missing("template")));
  }

  async putEmailCredentials(tenantId: string, email: EmailCredentials): Promise<Done | Missing<"tenant">> {
    return this.set(tenantId, { credentials: email });
  }

  readonly aliases = {
    put: async (tenantId: string, alias: WhatsappAliasRecord): Promise<Done<WhatsappAliasRecord> | Missing<"tenant">> =>
      this.of(tenantId, ({ aliases }) => {
        aliases.set(alias.alias, alias);
        return done(alias);
      }),
    one: async (tenantId: string, name: string): Promise<Done<WhatsappAliasRecord> | Missing<"tenant" | "alias">> =>
      this.of(tenantId, ({ aliases }) => {
        const alias = aliases.get(name);
        return alias === undefined ? missing("alias") : done(alias);
      }),
    all: async (tenantId: string): Promise<AllOfTenant<WhatsappAliasRecord>> =>
      this.of(tenantId, ({ aliases }) => done([...aliases.values()])),
    delete: async (tenantId: string, name: string): Promise<Done | Missing<"tenant" | "alias">> =>
      this.of(tenantId, ({ aliases }) => (aliases.delete(name) ? done(null) : missing("alias"))),
  };

  async putWhatsappCredentials(tenantId: string, whatsapp: WhatsappCredentials): Promise<Done | Missing<"tenant">> {
    return this.set(tenantId, { whatsapp });
  }

  async putAppleCredentials(tenantId: string, apple: AppleSigner): Promise<Done | Missing<"tenant">> {
    return this.set(tenantId, { apple });
  }

  async putGoogleCredentials(tenantId: string, google: GoogleIssuer): Promise<Done | Missing<"tenant">> {
    return this.set(tenantId, { google });
  }

  async putWalletWebhook(tenantId: string, webhookUrl: string | null): Promise<Done | Missing<"tenant">> {
    return this.set(tenantId, { webhookUrl });
  }

  async addTokens(tenantId: string, amount: number, reason: string): Promise<MovedTokens> {
    return this.of(tenantId, (entry) => {
      const { tokens } = entry.record;
      const balance = tokens + amount;
      if (balance < 0) return { kind: "out_of_range", balance: tokens } as const;
      entry.record = { ...entry.record, tokens: balance };
      entry.movements.unshift({ amount, reason, job_id: null, balance, created_at: CREATED_AT });
      return done({ balance });
    });
  }

  async tokenMovements(tenantId: string, _cursor: string | null, limit: number): Promise<PageOfTenant<TokenMovement>> {
    return this.of(tenantId, ({ movements }) => done({ items: movements.slice(0, limit), nextCursor: null }));
  }

  async putSuppression(
    tenantId: string,
    address: string,
    reason: SuppressionReason,
  ): Promise<Done<SuppressionRecord> | Missing<"tenant">> {
    if (this.failure !== null) throw this.failure;
    return this.of(tenantId, ({ suppressed }) => {
      suppressed.set(address, reason);
      return done({ address, reason, created_at: CREATED_AT });
    });
  }

  async deleteSuppression(tenantId: string, address: string): Promise<Done<boolean> | Missing<"tenant">> {
    return this.of(tenantId, ({ suppressed }) => done(suppressed.delete(address)));
  }

  async suppressionReason(tenantId: string, address: string): Promise<SuppressionReason | null> {
    return this.entries.get(tenantId)?.suppressed.get(address) ?? null;
  }

  async suppressions(tenantId: string, cursor: string | null, limit: number): Promise<PageOfTenant<SuppressionRecord>> {
    return this.of(tenantId, ({ suppressed }) => {
      const all = [...suppressed]
        .map(([address, reason]) => ({ address, reason, created_at: CREATED_AT }))
        .filter(({ address }) => cursor === null || address > cursor)
        .sort((one, other) => (one.address < other.address ? -1 : 1));
      const nextCursor = all.length > limit ? (all[limit - 1]?.address ?? null) : null;
      return done({ items: all.slice(0, limit), nextCursor });
    });
  }

  async suppressionsOfShard(): Promise<readonly Suppression[]> {
    return [];
  }

  private of<R>(tenantId: string, act: (entry: Entry) => R): R | Missing<"tenant"> {
    const entry = this.entries.get(tenantId);
    return entry === undefined ? missing("tenant") : act(entry);
  }

  private set(tenantId: string, values: Partial<Entry>): Done | Missing<"tenant"> {
    return this.of(tenantId, (entry) => {
      Object.assign(entry, values);
      return done(null);
    });
  }

  private plan(name: string): Plan {
    const plan = this.plansByName.get(name);
    if (plan === undefined) throw new Error(`there is no plan ${name}`);
    return plan;
  }
}

function isOfEmail(entry: [string, TemplateRecord]): entry is [string, EmailTemplateRecord] {
  return entry[1].channel === "email";
}
