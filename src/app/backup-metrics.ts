import type { Config } from "../config/config.ts";
import type { Clock } from "../domain/clock.ts";
import { recently } from "../domain/recently.ts";
import type { SeriesGauges, Telemetry } from "../domain/telemetry.ts";
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
    const times = { freshMs: FRESH_MS, waitMs: WAIT_MS, clock: ports.clock };
    this.refresh = isEmbedded ? recently(() => this.measure(), times) : () => Promise.resolve();
  }

  private async measure(): Promise<true> {
    const { clock, telemetry } = this.ports;
    try {
      const ageMs = clock.nowMs() - (await lastBackupMs(this.stores.home));
      telemetry.series(NAME, [[{}, Math.max(0, Math.round(ageMs / 1_000))]]);
    } catch (error) {
      telemetry.log("debug", "the last backup could not be looked up", { error: String(error) });
      telemetry.series(NAME, []);
    }
    return true;
  }
}
