import type { Config } from "../config/config.ts";
import type { Clock } from "../domain/clock.ts";
import type { SeriesGauges, Telemetry } from "../domain/telemetry.ts";
import { refreshSeries } from "../operators/metrics/refresh-series.ts";
import { lastBackupMs } from "../storage/backup/last-backup.ts";

const FRESH_MS = 60_000;
const WAIT_MS = 1_000;
const NAME = "last_backup_age_seconds";

interface Ports {
  readonly clock: Clock;
  readonly telemetry: SeriesGauges & Pick<Telemetry, "log">;
}

type Stores = Pick<Config, "home" | "redis" | "databaseUrl" | "clickhouseUrl">;

/** Measures how old the last backup is. Only embedded stores are backed up by us. */
export class BackupMetrics {
  readonly refresh: () => Promise<unknown>;

  constructor(
    private readonly ports: Ports,
    private readonly stores: Stores,
  ) {
    const { redis, databaseUrl, clickhouseUrl } = stores;
    const isEmbedded = redis === null && databaseUrl === null && clickhouseUrl === null;
    const failure = "the last backup could not be looked up";
    const measurement = { series: [NAME], failure, freshMs: FRESH_MS, waitMs: WAIT_MS };
    this.refresh = isEmbedded ? refreshSeries(() => this.measure(), measurement, ports) : () => Promise.resolve();
  }

  private async measure(): Promise<void> {
    const { clock, telemetry } = this.ports;
    const ageMs = clock.nowMs() - (await lastBackupMs(this.stores.home));
    telemetry.series(NAME, [[{}, Math.max(0, Math.round(ageMs / 1_000))]]);
  }
}
