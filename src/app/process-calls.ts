import type { DeviceComplaint } from "../channels/wallet/devices/device-log.ts";
import type { Config } from "../config/config.ts";
import { callName } from "../domain/calls.ts";
import type { SandboxMessage } from "../domain/report.ts";
import type { RedisAddress } from "../engine/queue/connection.ts";
import type { ReadinessState } from "../http/readiness.ts";
import type { MetricsParts } from "../runtime/telemetry/summed-metrics.ts";

/** What a child process works with. */
export interface ChildOrder {
  /** Like `api-1`. */
  readonly name: string;
  /** The configuration of the start, with the child's own roles, and where the sandboxes are. */
  readonly config: Config;
  readonly redis: RedisAddress;
  readonly version: string;
  /** Whose leases it holds. */
  readonly owner: string;
  readonly peers: Peers;
}

/** How many processes of the start play a role, this one included: they share what is bounded for all of them. */
export interface Peers {
  readonly api: number;
  readonly dispatcher: number;
}

/** The main process → a child. Answers when it works. */
export const BEGIN = callName<ChildOrder, void>("house.begin");
export const METRICS = callName<null, MetricsParts>("house.metrics");
export const READY = callName<null, ReadinessState>("house.ready");
export const COMPLAINTS = callName<number, readonly DeviceComplaint[]>("house.complaints");
/** An address sent a wrong operator token to another process. */
export const WRONG_TOKEN = callName<string, void>("house.wrong-token");

/** A child → the main process: of all processes together. */
export const ALL_METRICS = callName<null, string>("house.all-metrics");
export const ALL_READY = callName<null, ReadinessState>("house.all-ready");
export const ALL_COMPLAINTS = callName<number, readonly DeviceComplaint[]>("house.all-complaints");
export const SANDBOX_MESSAGES = callName<
  { readonly to: string | null; readonly limit: number },
  readonly SandboxMessage[]
>("house.sandbox-messages");
/** For the other processes to hear of. */
export const TELL_WRONG_TOKEN = callName<string, void>("house.tell-wrong-token");
