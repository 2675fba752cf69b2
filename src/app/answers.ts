import type { DeviceComplaint, DeviceLog } from "../channels/wallet/devices/device-log.ts";
import type { SandboxInbox, SandboxView } from "../domain/report.ts";
import type { WrongTokens } from "../http/operator-gate.ts";
import type { Readiness } from "../http/readiness.ts";
import type { MetricsParts } from "../runtime/telemetry/summed-metrics.ts";

/** What a process can report about itself. */
export interface OwnAnswers {
  metricsText(): Promise<string>;
  metricsParts(): Promise<MetricsParts>;
  readonly readiness: Pick<Readiness, "look">;
  /** Complaints from devices. */
  readonly log: Pick<DeviceLog, "latest">;
  /** Messages that reached the sandboxes in this process; null if real providers are in use. */
  readonly inbox: SandboxInbox | null;
}

/** Answers about all processes of a start, the same from whichever process is asked. */
export interface Answers {
  metricsText(): Promise<string>;
  readonly readiness: Pick<Readiness, "look">;
  /** Newest first. */
  complaints(limit: number): readonly DeviceComplaint[] | Promise<readonly DeviceComplaint[]>;
  readonly sandbox: SandboxView | null;
  readonly wrongTokens: WrongTokens | null;
}

/** The answers of a lone process. */
export function answersAlone(own: OwnAnswers): Answers {
  return { ...own, complaints: (limit) => own.log.latest(limit), sandbox: own.inbox, wrongTokens: null };
}
