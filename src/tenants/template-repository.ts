import { and, asc, eq } from "drizzle-orm";
import { TEMPLATE_SLUG } from "../domain/email.ts";
import {
  type AllOfTenant,
  type Done,
  done,
  type Invalid,
  invalid,
  type Missing,
  missing,
} from "../domain/store-result.ts";
import type { TemplateForm, TemplateRecord } from "../domain/template-record.ts";
import type { Database } from "../storage/database.ts";
import { listOfTenant, readOfTenant } from "../storage/of-tenant.ts";
import { type RegistryChanges, Undone } from "../storage/registry-changes.ts";
import { templates } from "./tables.ts";

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
    const { slug, channel } = template;
    const stored = this.kind(channel).toStored(template);
    if (stored.kind === "invalid") return stored;
    if (!TEMPLATE_SLUG.test(slug)) {
      return invalid("A template's slug must be 1-100 letters, digits, dots, hyphens or underscores.");
    }
    const body = stored.value;
    return this.options.changes.ofTenant(tenantId, async (transaction) => {
      await transaction
        .insert(templates)
        .values({ tenantId, slug, channel, body })
        .onConflictDoUpdate({ target: [templates.tenantId, templates.slug], set: { channel, body } });
      return done(template);
    });
  }

  one(tenantId: string, slug: string): Promise<Done<TemplateRecord> | Missing<"tenant" | "template">> {
    return readOfTenant(this.options.database, tenantId, async (db) => {
      if (!TEMPLATE_SLUG.test(slug)) return missing("template");
      const [row] = await db.select().from(templates).where(templateOf(tenantId, slug));
      return row === undefined ? missing("template") : done(this.recordOf(row));
    });
  }

  /** Ordered by slug. */
  all(tenantId: string): Promise<AllOfTenant<TemplateRecord>> {
    return listOfTenant(this.options.database, tenantId, {
      rows: (db) => db.select().from(templates).where(eq(templates.tenantId, tenantId)).orderBy(asc(templates.slug)),
      item: (row) => this.recordOf(row),
    });
  }

  delete(tenantId: string, slug: string): Promise<Done | Missing<"tenant" | "template">> {
    return this.options.changes.ofTenant(tenantId, async (transaction) => {
      if (!TEMPLATE_SLUG.test(slug)) return new Undone(missing("template"));
      const deleted = await transaction
        .delete(templates)
        .where(templateOf(tenantId, slug))
        .returning({ slug: templates.slug });
      return deleted.length === 0 ? new Undone(missing("template")) : done(null);
    });
  }

  private recordOf({ slug, channel, body }: typeof templates.$inferSelect): TemplateRecord {
    return this.kind(channel).fromStored(slug, body);
  }

  private kind(channel: string): TemplateForm {
    const kind = this.kinds.get(channel);
    if (kind === undefined) throw new Error(`the channel ${channel} has no templates`);
    return kind;
  }
}

function templateOf(tenantId: string, slug: string) {
  return and(eq(templates.tenantId, tenantId), eq(templates.slug, slug));
}
