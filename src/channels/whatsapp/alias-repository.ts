import { and, asc, count, eq, ne } from "drizzle-orm";
import { ApiError } from "../../domain/errors.ts";
import type { JsonObject } from "../../domain/json.ts";
import { HEADER_MEDIA_TYPES, type HeaderMedia, TEMPLATE_ALIAS, type WhatsappAlias } from "../../domain/whatsapp.ts";
import { checkText } from "../../storage/check-text.ts";
import type { Database } from "../../storage/database.ts";
import type { RegistryChanges } from "../../storage/registry-changes.ts";
import { requireTenant, requireTenantId } from "../../storage/require-tenant.ts";
import { chatLimits } from "./limits.ts";
import { aliases } from "./tables.ts";

/** A tenant's own name for one of the chat provider's templates, as the operator sees it. */
export interface WhatsappAliasRecord {
  readonly alias: string;
  /** The provider's name of the template. */
  readonly meta_name: string;
  /** Null: the service's default language. */
  readonly language_code: string | null;
  /** Describes each position, for people. */
  readonly params: readonly string[];
  /** Media of the template's header, or null. */
  readonly header: HeaderMedia | null;
}

/** Tenants' own names for the chat provider's templates. */
export class AliasRepository {
  constructor(
    private readonly database: Database,
    private readonly changes: RegistryChanges,
  ) {}

  async put(tenantId: string, record: WhatsappAliasRecord): Promise<WhatsappAliasRecord> {
    requireTenantId(tenantId);
    const { alias, meta_name, params } = record;
    if (!TEMPLATE_ALIAS.test(alias)) {
      throw new ApiError(400, "An alias must be 1-100 letters, digits, dots, hyphens or underscores.");
    }
    checkText(meta_name, { field: "meta_name", charsMax: chatLimits.chatTemplateNameCharsMax });
    for (const text of params) checkText(text, { field: "params", charsMax: PARAM_CHARS_MAX });
    const content = {
      metaName: meta_name,
      languageCode: record.language_code,
      params: [...params],
      header: record.header === null ? null : headerJson(record.header),
    };
    await this.changes.ofTenant(tenantId, async (transaction) => {
      // The tenant's row is locked by now, so no alias is added concurrently.
      const [others] = await transaction
        .select({ number: count() })
        .from(aliases)
        .where(and(eq(aliases.tenantId, tenantId), ne(aliases.alias, alias)));
      if ((others?.number ?? 0) >= chatLimits.aliasesMax) {
        throw new ApiError(409, `A tenant has at most ${chatLimits.aliasesMax} aliases: delete one that is not used.`);
      }
      await transaction
        .insert(aliases)
        .values({ tenantId, alias, ...content })
        .onConflictDoUpdate({ target: [aliases.tenantId, aliases.alias], set: content });
    });
    return recordOf({ alias, ...content });
  }

  one(tenantId: string, alias: string): Promise<WhatsappAliasRecord> {
    return this.database.read(async (db) => {
      await requireTenant(db, tenantId);
      if (!TEMPLATE_ALIAS.test(alias)) throw noSuchAlias();
      const [row] = await db.select().from(aliases).where(named(tenantId, alias));
      if (row === undefined) throw noSuchAlias();
      return recordOf(row);
    });
  }

  /** Ordered by name. */
  all(tenantId: string): Promise<readonly WhatsappAliasRecord[]> {
    return this.database.read(async (db) => {
      await requireTenant(db, tenantId);
      const rows = await db.select().from(aliases).where(eq(aliases.tenantId, tenantId)).orderBy(asc(aliases.alias));
      return rows.map(recordOf);
    });
  }

  async delete(tenantId: string, alias: string): Promise<void> {
    requireTenantId(tenantId);
    await this.changes.ofTenant(tenantId, async (transaction) => {
      if (!TEMPLATE_ALIAS.test(alias)) throw noSuchAlias();
      const deleted = await transaction
        .delete(aliases)
        .where(named(tenantId, alias))
        .returning({ alias: aliases.alias });
      if (deleted.length === 0) throw noSuchAlias();
    });
  }
}

/** An alias in the form that tenant snapshots hold. */
export function aliasOf({ metaName, languageCode, params, header }: AliasContent): WhatsappAlias {
  return { metaName, languageCode, params, header: header === null ? null : parseHeader(header) };
}

const PARAM_CHARS_MAX = 200;

type AliasContent = Omit<typeof aliases.$inferSelect, "tenantId">;

function recordOf({ alias, metaName, languageCode, params, header }: AliasContent): WhatsappAliasRecord {
  return {
    alias,
    meta_name: metaName,
    language_code: languageCode,
    params,
    header: header === null ? null : parseHeader(header),
  };
}

function headerJson({ type, link, id, filename }: HeaderMedia): JsonObject {
  return {
    type,
    ...(link === undefined ? null : { link }),
    ...(id === undefined ? null : { id }),
    ...(filename === undefined ? null : { filename }),
  };
}

/** The header that `headerJson` wrote. */
function parseHeader(stored: JsonObject): HeaderMedia {
  const type = HEADER_MEDIA_TYPES.find((known) => known === stored["type"]);
  if (type === undefined) throw new Error("a stored alias has a header of no known type");
  const [link, id, filename] = [stored["link"], stored["id"], stored["filename"]];
  return {
    type,
    ...(typeof link === "string" ? { link } : null),
    ...(typeof id === "string" ? { id } : null),
    ...(typeof filename === "string" ? { filename } : null),
  };
}

function named(tenantId: string, alias: string) {
  return and(eq(aliases.tenantId, tenantId), eq(aliases.alias, alias));
}

function noSuchAlias(): ApiError {
  return new ApiError(404, "The tenant has no such alias.");
}
