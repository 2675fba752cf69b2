import type { Calls } from "../domain/calls.ts";
import { oneAtATime } from "../domain/one-at-a-time.ts";
import type { Answers, OwnAnswers } from "./answers.ts";
import {
  ALL_COMPLAINTS,
  ALL_METRICS,
  ALL_READY,
  COMPLAINTS,
  METRICS,
  READY,
  SANDBOX_MESSAGES,
  TELL_WRONG_TOKEN,
  WRONG_TOKEN,
} from "./process-calls.ts";

/** Reports on this process to the main process, and passes on the main process's answers about all of them. */
export function answersOfChild(own: OwnAnswers, main: Calls): Answers {
  main.serve(METRICS, () => own.metricsParts());
  main.serve(READY, () => own.readiness.look());
  main.serve(COMPLAINTS, (limit) => own.log.latest(limit));
  return {
    metricsText: () => main.call(ALL_METRICS, null),
    // Coalesced: a stranger's requests must not load the other processes.
    readiness: { look: oneAtATime(() => main.call(ALL_READY, null)) },
    complaints: (limit) => main.call(ALL_COMPLAINTS, limit),
    // The sandboxes run in the main process.
    sandbox: own.inbox && { messages: (to, limit) => main.call(SANDBOX_MESSAGES, { to, limit }) },
    wrongTokens: {
      tell: (caller) => void main.call(TELL_WRONG_TOKEN, caller).catch(() => undefined),
      hear: (listener) => main.serve(WRONG_TOKEN, listener),
    },
  };
}
