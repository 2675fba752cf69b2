import { CHANNELS } from "../../src/app/channels.ts";
import { type OpenRegistry, openRegistry } from "../../src/app/open-registry.ts";
import type { Telemetry } from "../../src/domain/telemetry.ts";
import type { ChangeFeed } from "../../src/domain/tenants/tenant.ts";
import type { OpenDatabase } from "../../src/storage/postgres/database.ts";
import { Vault } from "../../src/storage/vault.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";
import { deadFeed, machineRandom, SkippingClock } from "./machine.ts";

/** The number of shards of a test's registry. */
export const SHARDS = 16;
export const MASTER_KEY = new Uint8Array(32).fill(7);

interface OpenOptions {
  readonly shards?: number;
  readonly masterKeys?: readonly Uint8Array[];
  readonly feed?: ChangeFeed;
  readonly telemetry?: Telemetry;
}

/** A registry on this database. By default it receives no notifications and learns of changes only by its polls. */
export function openTestRegistry({ db }: OpenDatabase, options: OpenOptions = {}): Promise<OpenRegistry> {
  const { shards = SHARDS, masterKeys = [MASTER_KEY], feed = deadFeed, telemetry = new QuietTelemetry() } = options;
  const vault = new Vault(masterKeys, machineRandom);
  return openRegistry({
    channels: CHANNELS,
    db,
    shards,
    senderDomain: "waybill.test",
    vault,
    clock: new SkippingClock(),
    random: machineRandom,
    feed,
    telemetry,
  });
}
