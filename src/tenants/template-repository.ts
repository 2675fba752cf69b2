import { and, asc, count, eq, sql } from "drizzle-orm";
import { TEMPLATE_SLUG } from "../domain/channels/email.ts";
import {
  type AllOfTenant,
  type Done,
  done,
  type Full,
  full,
  type Invalid,
  invalid,
  type Missing,
  missing,
} from "../domain/store-result.ts";
import type { TemplateForm, TemplateRecord } from "../domain/tenants/template-record.ts";
import type { JsonObject } from "../domain/texts/json.ts";
import type { AnyDb, Database } from "../storage/postgres/database.ts";
import { listOfTenant, readOfTenant } from "../storage/postgres/of-tenant.ts";
import { type RegistryChanges, Undone } from "../storage/registry-changes.ts";
import { ownLimits } from "./limits.ts";
import { TEMPLATE_COLUMNS, templates } from "./tables.ts";

export interface TemplateRepositoryOptions {
  readonly database: Database;
  readonly changes: RegistryChanges;
  readonly kinds: readonly TemplateForm[];
}

/** Templates of all channels, each stored in its channel's form. */
export class TemplateRepository {
  private readonly kinds: ReadonlyMap<string, TemplateForm>;

  constructor(private readonly options: TemplateRepositoryOptions) {
    this.kinds = new Map(options.kinds.map((kind) => [kind.channel, kind]));
  }

  async put(tenantId: string, template: TemplateRecord): Promise<Done<TemplateRecord> | Missing<"tenant"> | Invalid> {
    const stored = this.storedForm(template);
    if (stored.kind === "invalid") return stored;
    return this.options.changes.ofTenant(tenantId, async (transaction) => {
      await write(transaction, tenantId, template, stored.value);
      return done(template);
    });
  }

  /** Within the tenant's share. */
  async putOwn(
    tenantId: string,
    template: TemplateRecord,
  ): Promise<Done<TemplateRecord> | Missing<"tenant"> | Invalid | Full> {
    const stored = this.storedForm(template);
    if (stored.kind === "invalid") return stored;
    return this.options.changes.ofTenant(
      tenantId,
      async (transaction): Promise<Done<TemplateRecord> | Undone<Full>> => {
        await write(transaction, tenantId, template, stored.value);
        // The tenant's row is locked by now, so no template is added concurrently.
        const [has] = await transaction
          .select({ number: count(), bytes: sql<string | null>`sum(${templates.bytes})` })
          .from(templates)
          .where(eq(templates.tenantId, tenantId));
        if ((has?.number ?? 0) > ownLimits.templatesMax) return new Undone(full(ownLimits.templatesMax, "templates"));
        if (Number(has?.bytes ?? 0) > ownLimits.templateBytesMax) {
          return new Undone(full(ownLimits.templateBytesMax, "bytes of templates"));
        }
        return done(template);
      },
    );
  }

  private storedForm(template: TemplateRecord): Done<JsonObject> | Invalid {
    const stored = this.kind(template.channel).toStored(template);
    if (stored.kind === "invalid" || TEMPLATE_SLUG.test(template.slug)) return stored;
    return invalid("A template's slug must be 1-100 letters, digits, dots, hyphens or underscores.");
  }

  one(tenantId: string, slug: string): Promise<Done<TemplateRecord> | Missing<"tenant" | "template">> {
    return readOfTenant(this.options.database, tenantId, async (db) => {
      if (!TEMPLATE_SLUG.test(slug)) return missing("template");
      const [row] = await db.select(TEMPLATE_COLUMNS).from(templates).where(matchTemplate(tenantId, slug));
      return row === undefined ? missing("template") : done(this.toRecord(row));
    });
  }

  /** Ordered by slug. */
  all(tenantId: string): Promise<AllOfTenant<TemplateRecord>> {
    return listOfTenant(this.options.database, tenantId, {
      rows: (db) =>
        db
          .select(TEMPLATE_COLUMNS)
          .from(templates)
          .where(eq(templates.tenantId, tenantId))
          .orderBy(asc(templates.slug)),
      item: (row) => this.toRecord(row),
    });
  }

  delete(tenantId: string, slug: string): Promise<Done | Missing<"tenant" | "template">> {
    return this.options.changes.ofTenant(tenantId, async (transaction) => {
      if (!TEMPLATE_SLUG.test(slug)) return new Undone(missing("template"));
      const deleted = await transaction
        .delete(templates)
        .where(matchTemplate(tenantId, slug))
        .returning({ slug: templates.slug });
      return deleted.length === 0 ? new Undone(missing("template")) : done(null);
    });
  }

  private toRecord({ slug, channel, body }: typeof templates.$inferSelect): TemplateRecord {
    return this.kind(channel).fromStored(slug, body);
  }

  private kind(channel: string): TemplateForm {
    const kind = this.kinds.get(channel);
    if (kind === undefined) throw new Error(`the channel ${channel} has no templates`);
    return kind;
  }
}

async function write(
  transaction: AnyDb,
  tenantId: string,
  { slug, channel }: TemplateRecord,
  body: JsonObject,
): Promise<void> {
  await transaction
    .insert(templates)
    .values({ tenantId, slug, channel, body })
    .onConflictDoUpdate({ target: [templates.tenantId, templates.slug], set: { channel, body } });
}

function matchTemplate(tenantId: string, slug: string) {
  return and(eq(templates.tenantId, tenantId), eq(templates.slug, slug));
}
