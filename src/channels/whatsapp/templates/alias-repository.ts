import { and, asc, count, eq, sql } from "drizzle-orm";
import {
  HEADER_MEDIA_TYPES,
  type HeaderMedia,
  TEMPLATE_ALIAS,
  type WhatsappAlias,
} from "../../../domain/channels/whatsapp.ts";
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
} from "../../../domain/store-result.ts";
import type { JsonObject } from "../../../domain/texts/json.ts";
import { checkText } from "../../../storage/postgres/check-text.ts";
import type { Database } from "../../../storage/postgres/database.ts";
import { listOfTenant, readOfTenant } from "../../../storage/postgres/of-tenant.ts";
import { type RegistryChanges, Undone } from "../../../storage/registry-changes.ts";
import { chatLimits } from "../limits.ts";
import { aliases } from "../tables.ts";

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

/** A row's size: its texts, and the overhead in a process's memory for the row and each of its params. */
const ALIAS_BYTES = sql`200 + octet_length(${aliases.alias}) + octet_length(${aliases.metaName})
  + octet_length(array_to_string(${aliases.params}, '')) + 32 * cardinality(${aliases.params})
  + coalesce(octet_length(${aliases.header}::text), 0)`;

export type StoredAlias = Done<WhatsappAliasRecord> | Missing<"tenant"> | Invalid | Full;

/** Tenants' own names for the chat provider's templates. */
export class AliasRepository {
  constructor(
    private readonly database: Database,
    private readonly changes: RegistryChanges,
  ) {}

  async put(tenantId: string, record: WhatsappAliasRecord): Promise<StoredAlias> {
    const fault = findFault(record);
    if (fault !== null) return fault;
    const { alias, meta_name, params } = record;
    const content = {
      metaName: meta_name,
      languageCode: record.language_code,
      params: [...params],
      header: record.header === null ? null : headerJson(record.header),
    };
    return this.changes.ofTenant(tenantId, async (transaction) => {
      await transaction
        .insert(aliases)
        .values({ tenantId, alias, ...content })
        .onConflictDoUpdate({ target: [aliases.tenantId, aliases.alias], set: content });
      // The tenant's row is locked by now, so no alias is added concurrently.
      const [has] = await transaction
        .select({ number: count(), bytes: sql<string | null>`sum(${ALIAS_BYTES})` })
        .from(aliases)
        .where(eq(aliases.tenantId, tenantId));
      if ((has?.number ?? 0) > chatLimits.aliasesMax) return new Undone(full(chatLimits.aliasesMax, "aliases"));
      if (Number(has?.bytes ?? 0) > chatLimits.aliasBytesMax)
        return new Undone(full(chatLimits.aliasBytesMax, "bytes of aliases"));
      return done(toRecord({ alias, ...content }));
    });
  }

  one(tenantId: string, alias: string): Promise<Done<WhatsappAliasRecord> | Missing<"tenant" | "alias">> {
    return readOfTenant(this.database, tenantId, async (db) => {
      if (!TEMPLATE_ALIAS.test(alias)) return missing("alias");
      const [row] = await db.select().from(aliases).where(named(tenantId, alias));
      return row === undefined ? missing("alias") : done(toRecord(row));
    });
  }

  /** Lists all aliases of a tenant, ordered by name. */
  all(tenantId: string): Promise<AllOfTenant<WhatsappAliasRecord>> {
    return listOfTenant(this.database, tenantId, {
      rows: (db) => db.select().from(aliases).where(eq(aliases.tenantId, tenantId)).orderBy(asc(aliases.alias)),
      item: toRecord,
    });
  }

  delete(tenantId: string, alias: string): Promise<Done | Missing<"tenant" | "alias">> {
    return this.changes.ofTenant(tenantId, async (transaction) => {
      if (!TEMPLATE_ALIAS.test(alias)) return new Undone(missing("alias"));
      const deleted = await transaction
        .delete(aliases)
        .where(named(tenantId, alias))
        .returning({ alias: aliases.alias });
      return deleted.length === 0 ? new Undone(missing("alias")) : done(null);
    });
  }
}

function findFault({ alias, meta_name, params }: WhatsappAliasRecord): Invalid | null {
  if (!TEMPLATE_ALIAS.test(alias))
    return invalid("An alias must be 1-100 letters, digits, dots, hyphens or underscores.");
  const ofName = checkText(meta_name, { field: "meta_name", charsMax: chatLimits.chatTemplateNameCharsMax });
  if (ofName !== null) return ofName;
  const ofParams = params.map((text) => checkText(text, { field: "params", charsMax: PARAM_CHARS_MAX }));
  return ofParams.find((fault) => fault !== null) ?? null;
}

/** Converts an alias to the form of tenant snapshots. */
export function toAlias({ metaName, languageCode, params, header }: AliasContent): WhatsappAlias {
  return { metaName, languageCode, params, header: header === null ? null : parseHeader(header) };
}

const PARAM_CHARS_MAX = 200;

type AliasContent = Omit<typeof aliases.$inferSelect, "tenantId">;

function toRecord({ alias, metaName, languageCode, params, header }: AliasContent): WhatsappAliasRecord {
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

/** Parses the output of `headerJson`. */
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
