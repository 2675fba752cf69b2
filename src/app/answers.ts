import type { Calls } from "../domain/calls.ts";
import type { DeviceComplaint, SandboxInbox, SandboxView } from "../domain/jobs/report.ts";
import { oneAtATime } from "../domain/one-at-a-time.ts";
import type { WrongTokens } from "../http/operator-gate.ts";
import type { Readiness } from "../http/readiness.ts";
import type { MetricsParts } from "../runtime/telemetry/summed-metrics.ts";
import {
  ALL_COMPLAINTS,
  ALL_METRICS,
  ALL_READY,
  COMPLAINTS,
  ERASE_SANDBOX_MESSAGES,
  METRICS,
  READY,
  SANDBOX_MESSAGES,
  TELL_WRONG_TOKEN,
  WRONG_TOKEN,
} from "./process-calls.ts";

/** A process's reports about itself. */
export interface OwnAnswers {
  metricsText(): Promise<string>;
  metricsParts(): Promise<MetricsParts>;
  readonly readiness: Pick<Readiness, "look">;
  /** Of people's devices, newest first. */
  complaints(limit: number): readonly DeviceComplaint[];
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
  return { ...own, sandbox: own.inbox, wrongTokens: null };
}

/** Reports on this process to the main process, and passes on the main process's answers about all of them. */
export function answersOfChild(own: OwnAnswers, main: Calls): Answers {
  main.serve(METRICS, () => own.metricsParts());
  main.serve(READY, () => own.readiness.look());
  main.serve(COMPLAINTS, (limit) => own.complaints(limit));
  return {
    metricsText: () => main.call(ALL_METRICS, null),
    // Coalesced: a stranger's requests must not load the other processes.
    readiness: { look: oneAtATime(() => main.call(ALL_READY, null)) },
    complaints: (limit) => main.call(ALL_COMPLAINTS, limit),
    // The sandboxes run in the main process.
    sandbox: own.inbox && {
      messages: (to, limit) => main.call(SANDBOX_MESSAGES, { to, limit }),
      erase: (to) => main.call(ERASE_SANDBOX_MESSAGES, to),
    },
    wrongTokens: {
      tell: (caller) => void main.call(TELL_WRONG_TOKEN, caller).catch(() => undefined),
      hear: (listener) => main.serve(WRONG_TOKEN, listener),
    },
  };
}
