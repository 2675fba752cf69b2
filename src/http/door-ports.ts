import type { Clock } from "../domain/clock.ts";
import type { JobIds } from "../domain/ids.ts";
import type { PayloadStore } from "../domain/payload-store.ts";
import type { FrontQueue, IdempotencyKeys } from "../domain/queue.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { TenantDirectory } from "../domain/tenant.ts";
import type { OperatorGatePorts } from "./operator-gate.ts";
import type { ServiceAnswerPorts } from "./service-ports.ts";

/** What every endpoint may need of the service. What belongs to one room, its endpoints are given by themselves. */
export interface DoorPorts extends ServiceAnswerPorts, OperatorGatePorts {
  readonly queue: Pick<FrontQueue, "admit" | "accept"> & IdempotencyKeys;
  /** Where payloads wait that are too large for the queue. */
  readonly payloads: Pick<PayloadStore, "put" | "remove">;
  readonly directory: TenantDirectory;
  readonly clock: Clock;
  readonly jobIds: JobIds;
  readonly telemetry: Telemetry;
  /** How many processes take requests at this address: they share the room for large bodies. Default 1. */
  readonly processes?: number;
  /** Base address that the documentation names; by default the address a request came to. */
  readonly publicUrl?: string;
  readonly version: string;
}
