import { assert } from "../domain/errors.ts";
import { firstEventIdAt } from "../domain/jobs/event.ts";
import { type MailCounts, type MailHistory, NO_MAIL } from "../domain/tenants/reputation.ts";
import { TENANT_ID } from "../domain/tenants/tenant.ts";
import type { ClickHouse } from "./clickhouse.ts";
import { eventLimits } from "./limits.ts";
import type { EventStoreTarget } from "./schema/table.ts";
import { selectSettings } from "./statement-settings.ts";

const HOUR_MS = 3_600_000;
/** Released tenants in one statement, whose text has a limit of 256 KiB. */
const RELEASES_AT_ONCE = 500;
const COUNTED = "channel = 'email' AND event_type IN ('sent', 'bounced', 'complained')";

type Release = readonly [tenantId: string, atMs: number];

/**
 * Sums tenants' e-mail events from the sums by hour. For a tenant that was released, the rest of the hour of its release
 * is counted from its events, whose ids tell their time.
 */
export class ClickHouseMailCounts implements MailHistory {
  constructor(
    private readonly clickhouse: ClickHouse,
    private readonly target: EventStoreTarget,
  ) {}

  async mailCounts({
    fromMs,
    releases,
    tenantId,
  }: Parameters<MailHistory["mailCounts"]>[0]): Promise<ReadonlyMap<string, MailCounts>> {
    const wanted = tenantId === undefined ? [] : [tenantId];
    assert(
      [...releases.keys(), ...wanted].every((id) => TENANT_ID.test(id)),
      "counts belong to tenants",
    );
    const from = toHour(fromMs);
    const isOfOne = tenantId === undefined ? "1" : `tenant_id = '${tenantId}'`;
    const counts = await this.sums(this.hours(`${isOfOne} AND hour >= ${toTime(from)}`), tenantId === undefined);
    const released = Array.from(releases).filter(([id, atMs]) => atMs >= from && id === (tenantId ?? id));
    for (let at = 0; at < released.length; at += RELEASES_AT_ONCE) {
      const piece = released.slice(at, at + RELEASES_AT_ONCE);
      const since = await this.sums(this.sinceReleases(piece), false);
      for (const [id] of piece) counts.set(id, since.get(id) ?? NO_MAIL);
    }
    return counts;
  }

  private async sums(events: string, isOnlyBad: boolean): Promise<Map<string, MailCounts>> {
    const rows = await this.clickhouse.rows(
      `SELECT tenant_id, sumIf(events, event_type = 'sent'), sumIf(events, event_type = 'bounced') AS bounced,
sumIf(events, event_type = 'complained') AS complained
FROM (${events}) GROUP BY tenant_id${isOnlyBad ? " HAVING bounced + complained > 0" : ""}
SETTINGS ${selectSettings(this.target, eventLimits.eventStoreReadTimeoutMs)}`,
    );
    return new Map(
      rows.map(([id, sent, bounced, complained]) => [
        String(id),
        { sent: Number(sent), bounced: Number(bounced), complained: Number(complained) },
      ]),
    );
  }

  private hours(where: string): string {
    return `SELECT tenant_id, event_type, events FROM ${this.target.database}.events_hourly WHERE ${COUNTED} AND (${where})`;
  }

  private sinceReleases(released: readonly Release[]): string {
    const nextHour = (atMs: number) => toHour(atMs) + HOUR_MS;
    const any = (condition: (release: Release) => string) =>
      released.map((release) => `(tenant_id = '${release[0]}' AND ${condition(release)})`).join(" OR ");
    const later = any(([, atMs]) => `hour >= ${toTime(nextHour(atMs))}`);
    const rest = any(
      ([, atMs]) => `event_id >= ${firstEventIdAt(atMs)} AND event_id < ${firstEventIdAt(nextHour(atMs))}`,
    );
    return `${this.hours(later)} UNION ALL SELECT tenant_id, event_type, toUInt64(1) AS events
FROM ${this.target.database}.events WHERE ${COUNTED} AND (${rest})`;
  }
}

function toHour(unixMs: number): number {
  return Math.floor(unixMs / HOUR_MS) * HOUR_MS;
}

function toTime(unixMs: number): string {
  return `toDateTime(${unixMs / 1000}, 'UTC')`;
}
