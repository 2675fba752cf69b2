import { assert } from "../domain/errors.ts";
import type { TenantHistory } from "../domain/tenants/erasure.ts";
import { TENANT_ID } from "../domain/tenants/tenant.ts";
import type { ClickHouse, QueryParams } from "./clickhouse.ts";
import { sealedTarget } from "./failed-payloads.ts";
import { eventLimits } from "./limits.ts";
import { type EventStoreTarget, localName, onCluster } from "./schema/table.ts";
import { selectSettings } from "./statement-settings.ts";

/** Tables that contain a tenant's messages. The sums by hour and day stay: they are billed, and contain no personal data. */
const TABLES = ["jobs", "events", "events_by_type", "refused_rows", "failed_payloads"] as const;

/** Removes a deleted tenant's history: each round checks what is left, and requests the mutations that are not running yet. */
export class TenantRemoval implements TenantHistory {
  constructor(
    private readonly clickhouse: { readonly reading: ClickHouse; readonly writing: ClickHouse },
    private readonly target: EventStoreTarget,
  ) {}

  async removeHistory(tenantId: string): Promise<boolean> {
    assert(TENANT_ID.test(tenantId), "a name becomes part of a statement");
    const { cluster } = this.target;
    let isGone = true;
    for (const table of TABLES) {
      const { database } = this.findTarget(table);
      const rows = await this.rows(`SELECT 1 FROM ${database}.${table} WHERE tenant_id = {tenant:String} LIMIT 1`, {
        tenant: tenantId,
      });
      if (rows.length === 0) continue;
      isGone = false;
      if (await this.isAsked(table, tenantId)) continue;
      const name = `${database}.${localName(this.target, table)}${onCluster(cluster)}`;
      await this.clickhouse.writing.command(
        `ALTER TABLE ${name} DELETE WHERE tenant_id = '${tenantId}' SETTINGS mutations_sync = 0`,
      );
    }
    return isGone;
  }

  private async isAsked(table: string, tenantId: string): Promise<boolean> {
    const { cluster } = this.target;
    const { database } = this.findTarget(table);
    const mutations = cluster === null ? "system.mutations" : `clusterAllReplicas('${cluster}', system.mutations)`;
    // The server lists it in its own form.
    const command = `%DELETE WHERE tenant_id = '${tenantId}'%`;
    const rows = await this.rows(
      `SELECT 1 FROM ${mutations} WHERE database = '${database}' AND table = '${localName(this.target, table)}'
AND NOT is_done AND command LIKE {command:String} LIMIT 1`,
      { command },
    );
    return rows.length > 0;
  }

  private findTarget(table: string): EventStoreTarget {
    return table === "failed_payloads" ? sealedTarget(this.target) : this.target;
  }

  private rows(sql: string, params: QueryParams) {
    const settings = selectSettings(this.target, eventLimits.eventStoreReadTimeoutMs);
    return this.clickhouse.reading.rows(`${sql} SETTINGS ${settings}`, params);
  }
}
