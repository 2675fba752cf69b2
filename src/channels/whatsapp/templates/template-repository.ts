import { and, eq, ne } from "drizzle-orm";
import { type Done, done, type Full, full, type Missing } from "../../../domain/store-result.ts";
import type { AnyDb, Database } from "../../../storage/postgres/database.ts";
import { readOfTenant } from "../../../storage/postgres/of-tenant.ts";
import { type RegistryChanges, Undone } from "../../../storage/registry-changes.ts";
import { chatLimits } from "../limits.ts";
import { chatTemplates } from "../tables.ts";
import { parseTemplates, storedTemplates, type TemplateList, type TemplateVersion } from "./template-list.ts";

type Row = typeof chatTemplates.$inferSelect;

/** A template's state as reported by a provider's call. */
export interface TemplateNews {
  readonly name: string;
  readonly language: string;
  readonly status: string;
}

/** The lists of templates in tenants' own accounts. Rejects with `UnavailableError` while the registry is unavailable. */
export class TemplateRepository {
  constructor(
    private readonly database: Database,
    private readonly changes: RegistryChanges,
  ) {}

  /** Replaces the tenant's list, even of another account. */
  async put(tenantId: string, list: TemplateList): Promise<Done<TemplateList> | Full | Missing<"tenant">> {
    const { accountId, readAtMs, isComplete } = list;
    const templates = storedTemplates(list.templates);
    const { templateListBytesMax: bytesMax } = chatLimits;
    if (Buffer.byteLength(JSON.stringify(templates)) > bytesMax) return full(bytesMax, "bytes of chat templates");
    const content = { readAt: new Date(readAtMs), isComplete, templates };
    return this.changes.ofTenant(tenantId, async (transaction) => {
      await transaction
        .delete(chatTemplates)
        .where(and(eq(chatTemplates.tenantId, tenantId), ne(chatTemplates.accountId, accountId)));
      await transaction
        .insert(chatTemplates)
        .values({ tenantId, accountId, ...content })
        .onConflictDoUpdate({ target: [chatTemplates.tenantId, chatTemplates.accountId], set: content });
      return done(list);
    });
  }

  /** Reads the tenant's list of this account, or null. */
  one(tenantId: string, accountId: string): Promise<Done<TemplateList | null> | Missing<"tenant">> {
    return readOfTenant(this.database, tenantId, async (db) => {
      const [row] = await db.select().from(chatTemplates).where(listed(tenantId, accountId));
      return done(row === undefined ? null : toTemplateList(row));
    });
  }

  /** Corrects one template of a list, if there is such a list. */
  async correct(
    tenantId: string,
    accountId: string,
    name: string,
    versions: readonly TemplateVersion[],
  ): Promise<void> {
    await this.change(tenantId, accountId, (known) => {
      const changed = new Map(known);
      if (versions.length === 0) changed.delete(name);
      else changed.set(name, versions);
      return changed;
    });
  }

  /** Updates the state of a template in every list that has it. */
  async note(accountId: string, { name, language, status }: TemplateNews): Promise<void> {
    const rows = await this.database.read((db) =>
      db.select({ tenantId: chatTemplates.tenantId }).from(chatTemplates).where(eq(chatTemplates.accountId, accountId)),
    );
    for (const { tenantId } of rows) {
      await this.change(tenantId, accountId, (known) => {
        const versions = known.get(name);
        if (versions?.some((one) => one.language === language && one.status !== status) !== true) return null;
        const noted = versions.map((one) => (one.language === language ? { ...one, status } : one));
        return new Map(known).set(name, noted);
      });
    }
  }

  /** Changes a stored list; `edit` returns null if it is unchanged. */
  private async change(
    tenantId: string,
    accountId: string,
    edit: (known: TemplateList["templates"]) => TemplateList["templates"] | null,
  ): Promise<void> {
    await this.changes.ofTenant(tenantId, async (transaction: AnyDb) => {
      const [row] = await transaction.select().from(chatTemplates).where(listed(tenantId, accountId));
      const changed = row === undefined ? null : edit(parseTemplates(row.templates));
      if (changed === null) return new Undone(null);
      await transaction
        .update(chatTemplates)
        .set({ templates: storedTemplates(changed) })
        .where(listed(tenantId, accountId));
      return done(null);
    });
  }
}

/** Converts a row to the form of tenant snapshots. */
export function toTemplateList({ accountId, readAt, isComplete, templates }: Omit<Row, "tenantId">): TemplateList {
  return { accountId, readAtMs: readAt.getTime(), isComplete, templates: parseTemplates(templates) };
}

function listed(tenantId: string, accountId: string) {
  return and(eq(chatTemplates.tenantId, tenantId), eq(chatTemplates.accountId, accountId));
}
