import { and, asc, eq } from "drizzle-orm";
import { TEMPLATE_SLUG } from "../core/email.ts";
import { ApiError } from "../core/errors.ts";
import { limits } from "../core/limits.ts";
import type { EmailTemplateRecord } from "../core/registry.ts";
import { checkText } from "./check-text.ts";
import type { Database } from "./database.ts";
import { emailTemplateBody, parseEmailTemplate } from "./email-template.ts";
import type { RegistryChanges } from "./registry-changes.ts";
import { requireTenant, requireTenantId } from "./require-tenant.ts";
import { templates } from "./schema.ts";

export class TemplateRepository {
  constructor(
    private readonly database: Database,
    private readonly changes: RegistryChanges,
  ) {}

  async putEmail(tenantId: string, template: EmailTemplateRecord): Promise<EmailTemplateRecord> {
    requireTenantId(tenantId);
    checkTemplate(template);
    const { slug, channel } = template;
    const content = { channel, body: emailTemplateBody(template) };
    await this.changes.ofTenant(tenantId, (transaction) =>
      transaction
        .insert(templates)
        .values({ tenantId, slug, ...content })
        .onConflictDoUpdate({ target: [templates.tenantId, templates.slug], set: content }),
    );
    return recordOf({ slug, body: content.body });
  }

  one(tenantId: string, slug: string): Promise<EmailTemplateRecord> {
    return this.database.read(async (db) => {
      await requireTenant(db, tenantId);
      if (!TEMPLATE_SLUG.test(slug)) throw noSuchTemplate(tenantId);
      const [row] = await db.select().from(templates).where(emailTemplate(tenantId, slug));
      if (row === undefined) throw noSuchTemplate(tenantId);
      return recordOf(row);
    });
  }

  /** In the order of their slugs. */
  all(tenantId: string): Promise<readonly EmailTemplateRecord[]> {
    return this.database.read(async (db) => {
      await requireTenant(db, tenantId);
      const rows = await db
        .select()
        .from(templates)
        .where(and(eq(templates.tenantId, tenantId), eq(templates.channel, "email")))
        .orderBy(asc(templates.slug));
      return rows.map(recordOf);
    });
  }

  async delete(tenantId: string, slug: string): Promise<void> {
    requireTenantId(tenantId);
    await this.changes.ofTenant(tenantId, async (transaction) => {
      if (!TEMPLATE_SLUG.test(slug)) throw noSuchTemplate(tenantId);
      const deleted = await transaction
        .delete(templates)
        .where(emailTemplate(tenantId, slug))
        .returning({ slug: templates.slug });
      if (deleted.length === 0) throw noSuchTemplate(tenantId);
    });
  }
}

function emailTemplate(tenantId: string, slug: string) {
  return and(eq(templates.tenantId, tenantId), eq(templates.slug, slug), eq(templates.channel, "email"));
}

function checkTemplate({ slug, subject, html, text }: EmailTemplateRecord): void {
  if (!TEMPLATE_SLUG.test(slug)) {
    throw new ApiError(400, "A template's slug must be 1-100 letters, digits, dots, hyphens or underscores.");
  }
  checkText(subject, { field: "subject", charsMax: limits.subjectCharsMax });
  checkText(html, { field: "html", charsMax: limits.inlineHtmlBytesMax, multiline: true });
  if (text !== null) checkText(text, { field: "text", charsMax: limits.inlineHtmlBytesMax, multiline: true });
}

function recordOf({ slug, body }: Pick<typeof templates.$inferSelect, "slug" | "body">): EmailTemplateRecord {
  return { slug, channel: "email", ...parseEmailTemplate(body) };
}

function noSuchTemplate(tenantId: string): ApiError {
  return new ApiError(404, `The tenant "${tenantId}" has no such e-mail template.`);
}
