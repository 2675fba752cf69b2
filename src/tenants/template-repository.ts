import { and, asc, eq } from "drizzle-orm";
import { TEMPLATE_SLUG } from "../domain/email.ts";
import { ApiError } from "../domain/errors.ts";
import type { TemplateKind, TemplateRecord } from "../http/template-kind.ts";
import type { Database } from "../storage/database.ts";
import type { RegistryChanges } from "../storage/registry-changes.ts";
import { requireTenant, requireTenantId } from "../storage/require-tenant.ts";
import { templates } from "./tables.ts";

export interface TemplateRepositoryOptions {
  readonly database: Database;
  readonly changes: RegistryChanges;
  readonly kinds: readonly TemplateKind[];
}

/** Templates of all channels, each stored in its channel's form. */
export class TemplateRepository {
  private readonly kinds: ReadonlyMap<string, TemplateKind>;

  constructor(private readonly options: TemplateRepositoryOptions) {
    this.kinds = new Map(options.kinds.map((kind) => [kind.channel, kind]));
  }

  async put(tenantId: string, template: TemplateRecord): Promise<TemplateRecord> {
    const { slug, channel } = template;
    const body = this.kind(channel).toStored(template);
    requireTenantId(tenantId);
    if (!TEMPLATE_SLUG.test(slug)) {
      throw new ApiError(400, "A template's slug must be 1-100 letters, digits, dots, hyphens or underscores.");
    }
    await this.options.changes.ofTenant(tenantId, (transaction) =>
      transaction
        .insert(templates)
        .values({ tenantId, slug, channel, body })
        .onConflictDoUpdate({ target: [templates.tenantId, templates.slug], set: { channel, body } }),
    );
    return template;
  }

  one(tenantId: string, slug: string): Promise<TemplateRecord> {
    return this.options.database.read(async (db) => {
      await requireTenant(db, tenantId);
      if (!TEMPLATE_SLUG.test(slug)) throw noSuchTemplate(tenantId);
      const [row] = await db.select().from(templates).where(templateOf(tenantId, slug));
      if (row === undefined) throw noSuchTemplate(tenantId);
      return this.recordOf(row);
    });
  }

  /** Ordered by slug. */
  all(tenantId: string): Promise<readonly TemplateRecord[]> {
    return this.options.database.read(async (db) => {
      await requireTenant(db, tenantId);
      const rows = await db
        .select()
        .from(templates)
        .where(eq(templates.tenantId, tenantId))
        .orderBy(asc(templates.slug));
      return rows.map((row) => this.recordOf(row));
    });
  }

  async delete(tenantId: string, slug: string): Promise<void> {
    requireTenantId(tenantId);
    await this.options.changes.ofTenant(tenantId, async (transaction) => {
      if (!TEMPLATE_SLUG.test(slug)) throw noSuchTemplate(tenantId);
      const deleted = await transaction
        .delete(templates)
        .where(templateOf(tenantId, slug))
        .returning({ slug: templates.slug });
      if (deleted.length === 0) throw noSuchTemplate(tenantId);
    });
  }

  private recordOf({ slug, channel, body }: typeof templates.$inferSelect): TemplateRecord {
    return this.kind(channel).fromStored(slug, body);
  }

  private kind(channel: string): TemplateKind {
    const kind = this.kinds.get(channel);
    if (kind === undefined) throw new Error(`the channel ${channel} has no templates`);
    return kind;
  }
}

function templateOf(tenantId: string, slug: string) {
  return and(eq(templates.tenantId, tenantId), eq(templates.slug, slug));
}

function noSuchTemplate(tenantId: string): ApiError {
  return new ApiError(404, `The tenant "${tenantId}" has no such template.`);
}
