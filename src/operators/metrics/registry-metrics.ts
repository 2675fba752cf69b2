import type { Clock } from "../../domain/clock.ts";
import type { ChannelName } from "../../domain/jobs/job.ts";
import type { SeriesGauges, Telemetry } from "../../domain/telemetry.ts";
import { GOVERNED_LEVELS } from "../../domain/tenants/reputation.ts";
import type { Registry } from "../../storage/registry.ts";
import { refreshSeries } from "./refresh-series.ts";

const FRESH_MS = 60_000;
const WAIT_MS = 1_000;
const SERIES = ["tenants_paused", "tenants_on_hold", "tenants_governed", "api_key_expiry_seconds", "webhooks_disabled"];

export interface RegistryMetricsPorts {
  readonly registry: Pick<Registry, "attention" | "reputations">;
  readonly webhookDeliveries: {
    disabled(): Promise<readonly { readonly tenantId: string; readonly webhookId: string }[]>;
  };
  readonly channels: readonly ChannelName[];
  readonly clock: Clock;
  readonly telemetry: SeriesGauges & Pick<Telemetry, "log">;
}

/** Shows what of all tenants needs an operator's eye. While the registry is away the series are gone, rather than old. */
export class RegistryMetrics {
  readonly refresh: () => Promise<unknown>;

  constructor(private readonly ports: RegistryMetricsPorts) {
    const measurement = {
      series: SERIES,
      failure: "the registry could not be measured",
      freshMs: FRESH_MS,
      waitMs: WAIT_MS,
    };
    this.refresh = refreshSeries(() => this.measure(), measurement, ports);
  }

  private async measure(): Promise<void> {
    const { registry, webhookDeliveries, channels, clock, telemetry } = this.ports;
    const { paused, held, expiringKeys } = await registry.attention();
    const reputations = Array.from((await registry.reputations()).values());
    telemetry.series(
      "tenants_governed",
      GOVERNED_LEVELS.map((level) => [{ level }, reputations.filter((one) => one.level === level).length]),
    );
    const disabled = await webhookDeliveries.disabled();
    telemetry.series(
      "webhooks_disabled",
      disabled.map(({ tenantId: tenant, webhookId: webhook }) => [{ tenant, webhook }, 1]),
    );
    const byChannel = (counts: ReadonlyMap<ChannelName, number>) =>
      channels.map((channel) => [{ channel }, counts.get(channel) ?? 0] as const);
    telemetry.series("tenants_paused", byChannel(paused));
    telemetry.series("tenants_on_hold", byChannel(held));
    const nowMs = clock.nowMs();
    telemetry.series(
      "api_key_expiry_seconds",
      expiringKeys.map(({ tenantId: tenant, name, expiresAtMs }) => [
        { tenant, name },
        Math.floor((expiresAtMs - nowMs) / 1000),
      ]),
    );
  }
}
