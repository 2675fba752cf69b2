import type { Config } from "../config/config.ts";
import { callName } from "../domain/calls.ts";
import type { ClickHouseAddress } from "../domain/jobs/event-store.ts";
import type { DeviceComplaint, SandboxMessage } from "../domain/jobs/report.ts";
import type { RedisAddress } from "../engine/queue/connection.ts";
import type { ReadinessState } from "../http/readiness.ts";
import type { MetricsParts } from "../runtime/telemetry/summed-metrics.ts";

/** A child process's configuration and addresses. */
export interface ChildOrder {
  /** Like `api-1`. */
  readonly name: string;
  /** The configuration of the start, with the child's own roles, and where the sandboxes are. */
  readonly config: Config;
  readonly redis: RedisAddress;
  /** Null: the start has none. */
  readonly eventStore: ClickHouseAddress | null;
  readonly version: string;
  /** The owner name of its leases. */
  readonly owner: string;
  readonly peers: Peers;
}

/** How many processes of the start play each role, including this one; they share the bounds that apply to all of them. */
export interface Peers {
  readonly api: number;
  readonly dispatcher: number;
}

/** Main process → child. Answered once the child works. */
export const BEGIN = callName<ChildOrder, void>("app.begin");
export const METRICS = callName<null, MetricsParts>("app.metrics");
export const READY = callName<null, ReadinessState>("app.ready");
export const COMPLAINTS = callName<number, readonly DeviceComplaint[]>("app.complaints");
/** Tells another process that an address sent a wrong operator token. */
export const WRONG_TOKEN = callName<string, void>("app.wrong-token");

/** Child → main process: metrics of all processes together. */
export const ALL_METRICS = callName<null, string>("app.all-metrics");
export const ALL_READY = callName<null, ReadinessState>("app.all-ready");
export const ALL_COMPLAINTS = callName<number, readonly DeviceComplaint[]>("app.all-complaints");
export const SANDBOX_MESSAGES = callName<
  { readonly to: string | null; readonly limit: number },
  readonly SandboxMessage[]
>("app.sandbox-messages");
/** Returns how many there were. */
export const ERASE_SANDBOX_MESSAGES = callName<string, number>("app.erase-sandbox-messages");
/** Asks the main process to tell the other processes. */
export const TELL_WRONG_TOKEN = callName<string, void>("app.tell-wrong-token");
