import { and, asc, eq } from "drizzle-orm";
import { emailTemplateBody, parseEmailTemplate } from "../channels/email/stored-template.ts";
import { parseWalletTemplate, walletTemplateBody } from "../channels/wallet/stored-template.ts";
import { TEMPLATE_SLUG } from "../domain/email.ts";
import { ApiError } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";
import type { EmailTemplateRecord, TemplateRecord, WalletTemplateRecord } from "../domain/registry.ts";
import { checkText } from "../storage/check-text.ts";
import type { Database } from "../storage/database.ts";
import type { RegistryChanges } from "../storage/registry-changes.ts";
import { requireTenant, requireTenantId } from "../storage/require-tenant.ts";
import { templates } from "../storage/tables.ts";

export class TemplateRepository {
  constructor(
    private readonly database: Database,
    private readonly changes: RegistryChanges,
  ) {}

  async putEmail(tenantId: string, template: EmailTemplateRecord): Promise<EmailTemplateRecord> {
    checkEmailTemplate(template);
    await this.put(tenantId, { ...template, body: emailTemplateBody(template) });
    return template;
  }

  /** The caller has checked its `pass_data`. */
  async putWallet(tenantId: string, template: WalletTemplateRecord): Promise<WalletTemplateRecord> {
    const { pass_type: passType, style, pass_data: passData } = template;
    await this.put(tenantId, { ...template, body: walletTemplateBody({ passType, style, passData }) });
    return template;
  }

  one(tenantId: string, slug: string): Promise<TemplateRecord> {
    return this.database.read(async (db) => {
      await requireTenant(db, tenantId);
      if (!TEMPLATE_SLUG.test(slug)) throw noSuchTemplate(tenantId);
      const [row] = await db.select().from(templates).where(templateOf(tenantId, slug));
      if (row === undefined) throw noSuchTemplate(tenantId);
      return recordOf(row);
    });
  }

  /** In the order of their slugs. */
  all(tenantId: string): Promise<readonly TemplateRecord[]> {
    return this.database.read(async (db) => {
      await requireTenant(db, tenantId);
      const rows = await db
        .select()
        .from(templates)
        .where(eq(templates.tenantId, tenantId))
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
        .where(templateOf(tenantId, slug))
        .returning({ slug: templates.slug });
      if (deleted.length === 0) throw noSuchTemplate(tenantId);
    });
  }

  private async put(
    tenantId: string,
    { slug, channel, body }: Pick<typeof templates.$inferInsert, "slug" | "channel" | "body">,
  ): Promise<void> {
    requireTenantId(tenantId);
    if (!TEMPLATE_SLUG.test(slug)) {
      throw new ApiError(400, "A template's slug must be 1-100 letters, digits, dots, hyphens or underscores.");
    }
    await this.changes.ofTenant(tenantId, (transaction) =>
      transaction
        .insert(templates)
        .values({ tenantId, slug, channel, body })
        .onConflictDoUpdate({ target: [templates.tenantId, templates.slug], set: { channel, body } }),
    );
  }
}

function templateOf(tenantId: string, slug: string) {
  return and(eq(templates.tenantId, tenantId), eq(templates.slug, slug));
}

function checkEmailTemplate({ subject, html, text }: EmailTemplateRecord): void {
  checkText(subject, { field: "subject", charsMax: limits.subjectCharsMax });
  checkText(html, { field: "html", charsMax: limits.inlineHtmlBytesMax, multiline: true });
  if (text !== null) checkText(text, { field: "text", charsMax: limits.inlineHtmlBytesMax, multiline: true });
}

function recordOf({ slug, channel, body }: Omit<typeof templates.$inferSelect, "tenantId">): TemplateRecord {
  if (channel !== "wallet") return { slug, channel: "email", ...parseEmailTemplate(body) };
  const { passType: pass_type, style, passData: pass_data } = parseWalletTemplate(body);
  return { slug, channel, pass_type, style, pass_data };
}

function noSuchTemplate(tenantId: string): ApiError {
  return new ApiError(404, `The tenant "${tenantId}" has no such template.`);
}
