import { and, asc, count, eq, gt, inArray, isNull, lte } from "drizzle-orm";
import type { CredentialForm, Expiring } from "../domain/channels/credentials.ts";
import type { Clock } from "../domain/clock.ts";
import { among } from "../storage/analysts/statement-texts.ts";
import type { Database } from "../storage/postgres/database.ts";
import { tenants } from "../storage/tables.ts";
import type { Vault } from "../storage/vault.ts";
import { soonestKeys } from "./soonest-keys.ts";
import { credentials, keys } from "./tables.ts";

/** Bound on the keys listed, and on the credentials: neither displaces the other. */
const LISTED_MAX = 100;
/** Bound on the credentials tracked. */
const FOLLOWED_MAX = 20_000;
/** Credentials opened by one call; the next call continues. */
const OPENED_MAX = 200;

export interface ExpiringRepositoryOptions {
  readonly database: Database;
  readonly vault: Vault;
  readonly clock: Clock;
  readonly kinds: readonly CredentialForm[];
}

/** The expiry of one stored secret, as of its last change. */
interface Known {
  readonly changedAtMs: number;
  readonly expiring: Expiring | null;
}

/**
 * Finds tenants' keys and credentials that expire. The credentials' dates are inside the sealed text, so each is opened once,
 * and again after a change; only the date and the name stay in memory.
 */
export class ExpiringRepository {
  private known = new Map<string, Known>();

  constructor(private readonly options: ExpiringRepositoryOptions) {}

  async tenantCount(): Promise<number> {
    const [row] = await this.options.database.read((db) =>
      db.select({ all: count() }).from(tenants).where(isNull(tenants.deletedAt)),
    );
    return row?.all ?? 0;
  }

  /**
   * Returns keys and credentials, soonest first. Expired credentials are included because they are still in use; expired keys
   * are not.
   */
  async expiring(before: Date): Promise<readonly Expiring[]> {
    const ofCredentials = [...(await this.credentials(before))].sort(bySoonest).slice(0, LISTED_MAX);
    return [...(await this.keys(before)), ...ofCredentials].sort(bySoonest);
  }

  private async keys(before: Date): Promise<readonly Expiring[]> {
    const now = new Date(this.options.clock.nowMs());
    const inTime = and(gt(keys.expiresAt, now), lte(keys.expiresAt, before));
    const soonest = await this.options.database.read((db) => soonestKeys(db, inTime, LISTED_MAX));
    return soonest.map((key) => ({ kind: "api_key", ...key }));
  }

  /** Returns the credentials in use. */
  private async credentials(before: Date): Promise<readonly Expiring[]> {
    const forms = this.options.kinds.filter((kind) => kind.expires !== undefined);
    if (forms.length === 0) return [];
    const rows = await this.options.database.read((db) =>
      db
        .select({
          tenantId: credentials.tenantId,
          kind: credentials.kind,
          changedAt: credentials.changedAt,
          allowCustom: tenants.allowCustom,
        })
        .from(credentials)
        .innerJoin(tenants, eq(tenants.id, credentials.tenantId))
        .where(
          inArray(
            credentials.kind,
            forms.map(({ kind }) => kind),
          ),
        )
        .orderBy(asc(credentials.tenantId), asc(credentials.kind))
        .limit(FOLLOWED_MAX),
    );
    const channelOf = new Map(forms.map(({ kind, channel }) => [kind, channel]));
    const used = rows.filter(({ kind, allowCustom }) => allowCustom.includes(channelOf.get(kind) ?? ""));
    const current = new Map<string, Known>();
    const unread: { readonly tenantId: string; readonly kind: string; readonly changedAtMs: number }[] = [];
    for (const { tenantId, kind, changedAt } of used) {
      const changedAtMs = changedAt?.getTime() ?? 0;
      const known = this.known.get(`${tenantId}/${kind}`);
      if (known?.changedAtMs === changedAtMs) current.set(`${tenantId}/${kind}`, known);
      else unread.push({ tenantId, kind, changedAtMs });
    }
    for (const [key, known] of await this.open(unread.slice(0, OPENED_MAX), forms)) current.set(key, known);
    this.known = current;
    const listed = Array.from(current.values(), ({ expiring }) => expiring);
    return listed.filter((one) => one !== null).filter(({ expiresAtMs }) => expiresAtMs <= before.getTime());
  }

  private async open(
    wanted: readonly { readonly tenantId: string; readonly kind: string; readonly changedAtMs: number }[],
    forms: readonly CredentialForm[],
  ): Promise<ReadonlyMap<string, Known>> {
    const opened = new Map<string, Known>();
    if (wanted.length === 0) return opened;
    const tenantIds = [...new Set(wanted.map(({ tenantId }) => tenantId))];
    const rows = await this.options.database.read((db) =>
      db.select().from(credentials).where(among(credentials.tenantId, tenantIds)),
    );
    for (const { tenantId, kind, changedAtMs } of wanted) {
      const sealed = rows.find((row) => row.tenantId === tenantId && row.kind === kind)?.sealed;
      const form = forms.find((one) => one.kind === kind);
      if (sealed === undefined || form === undefined) continue;
      opened.set(`${tenantId}/${kind}`, { changedAtMs, expiring: this.toExpiring(form, tenantId, sealed) });
    }
    return opened;
  }

  /** Null: it does not expire, or its date cannot be read. */
  private toExpiring({ kind, expires, show }: CredentialForm, tenantId: string, sealed: string): Expiring | null {
    if (expires === undefined) return null;
    try {
      const shown = show(this.options.vault.open({ tenantId, kind, field: "credentials" }, sealed));
      if (shown.expires_at === null) return null;
      const expiresAtMs = Date.parse(shown.expires_at);
      return { kind: expires.as, tenantId, name: shown[expires.namedBy] ?? kind, expiresAtMs };
    } catch {
      // `waybill doctor` names secrets that do not open.
      return null;
    }
  }
}

function bySoonest(one: Expiring, other: Expiring): number {
  return one.expiresAtMs - other.expiresAtMs;
}
