import type { Clock } from "../domain/clock.ts";
import type { JobIds } from "../domain/ids.ts";
import type { PayloadStore } from "../domain/payload-store.ts";
import type { FrontQueue, IdempotencyKeys } from "../domain/queue.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { TenantDirectory } from "../domain/tenant.ts";
import type { OperatorGatePorts } from "./operator-gate.ts";
import type { ServiceAnswerPorts } from "./service-ports.ts";

/** The dependencies that any endpoint may need. An endpoint receives the dependencies of its own room separately. */
export interface DoorPorts extends ServiceAnswerPorts, OperatorGatePorts {
  readonly queue: Pick<FrontQueue, "admit" | "accept"> & IdempotencyKeys;
  /** Holds payloads that are too large for the queue. */
  readonly payloads: Pick<PayloadStore, "put" | "remove">;
  readonly directory: TenantDirectory;
  readonly clock: Clock;
  readonly jobIds: JobIds;
  readonly telemetry: Telemetry;
  /** How many processes take requests at this address; they share the room for large bodies. Default 1. */
  readonly processes?: number;
  /** Base address shown in the documentation; by default, the address that the request came to. */
  readonly publicUrl?: string;
  readonly version: string;
}
