import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { RetriedJobs, RetryCount } from "../../../clients/typescript/generated.ts";
import { call } from "./api.ts";
import { Dialog } from "./dialog.tsx";
import type { JobSearch } from "./job-search.ts";
import { knownCause } from "./job-words.ts";
import { useAction, useLoad } from "./load.ts";
import { ProblemBox, Waiting } from "./ui.tsx";
import { CHANNELS, counted } from "./words.ts";

/** Retries the failed jobs that a search finds, once their number was confirmed. */
export function RetryManyDialog({
  search,
  onClose,
  onDone,
}: {
  readonly search: JobSearch;
  onClose(): void;
  onDone(): void;
}): JSX.Element {
  const { tenant } = search;
  const path = { id: tenant };
  const filter = toFilter(search);
  const given = Object.entries(filter).map(([name, value]) => `${name.replace("_", " ")} ${value}`);
  const counting = useLoad(async (signal) => {
    const answer = await call("retryJobs", { path, body: { filter, dry_run: true } }, { signal });
    return "count" in answer ? answer.count : 0;
  }, tenant);
  const { isRunning, problem, run } = useAction();
  const [done, setDone] = useState<Omit<RetriedJobs, "next_cursor"> | null>(null);
  const retry = async () => {
    let sum = { retried: 0, skipped: 0 };
    let cursor: string | null = null;
    do {
      const answer: RetryCount | RetriedJobs = await call("retryJobs", { path, body: { filter, cursor } });
      if ("count" in answer) break;
      sum = { retried: sum.retried + answer.retried, skipped: sum.skipped + answer.skipped };
      setDone(sum);
      cursor = answer.next_cursor;
    } while (cursor !== null);
    onDone();
  };
  return (
    <Dialog title={`Send failed messages of ${tenant} again`} onClose={onClose}>
      <ProblemBox problem={counting.problem} retry={counting.reload} />
      {counting.data === null && counting.problem === null ? <Waiting what="Counting" /> : null}
      {counting.data === null ? null : (
        <p>
          {given.length === 0 ? "Of this tenant" : `With ${given.join(", ")}`},{" "}
          <strong>{counted(counting.data, "failed message")}</strong> {counting.data === 1 ? "is" : "are"} to be sent
          again. Those whose content is no longer kept are skipped.
        </p>
      )}
      {done === null ? null : (
        <p role="status">
          {counted(done.retried, "message")} queued again, {done.skipped} skipped.
        </p>
      )}
      <ProblemBox problem={problem} />
      {counting.data === null || counting.data === 0 || done !== null ? null : (
        <div class="form-actions">
          <button type="button" class="danger" disabled={isRunning} onClick={() => void run(retry)}>
            Send {counted(counting.data, "message")} again
          </button>
        </div>
      )}
    </Dialog>
  );
}

/** Converts a search to the filter of a retry, which supports only some of its members. */
function toFilter({ who, channel, template, failureClass, from, to }: JobSearch) {
  const cause = knownCause(failureClass);
  const knownChannel = CHANNELS.find((each) => each === channel);
  return {
    ...(who === "" ? {} : { recipient: who }),
    ...(knownChannel === undefined ? {} : { channel: knownChannel }),
    ...(template === "" ? {} : { template }),
    ...(cause === undefined ? {} : { failure_class: cause }),
    ...(from === "" ? {} : { from }),
    ...(to === "" ? {} : { to }),
  };
}
