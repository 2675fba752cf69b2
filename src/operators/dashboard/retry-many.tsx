import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { callPath } from "./api.ts";
import { Dialog } from "./dialog.tsx";
import type { JobSearch } from "./job-search.ts";
import { useAction, useLoad } from "./load.ts";
import { ProblemBox, Waiting } from "./ui.tsx";
import { counted } from "./words.ts";

interface Retried {
  readonly retried: number;
  readonly skipped: number;
  readonly next_cursor: string | null;
}

/** Sends the failed jobs that a search finds again, once their number was confirmed. */
export function RetryManyDialog({
  search,
  onClose,
  onDone,
}: {
  readonly search: JobSearch;
  onClose(): void;
  onDone(): void;
}): JSX.Element {
  const { tenant, who, channel, template, from, to } = search;
  const path = `/dash/api/tenants/${encodeURIComponent(tenant)}/jobs/retry`;
  const given = Object.entries({ recipient: who, channel, template, from, to }).filter(([, value]) => value !== "");
  const filter = Object.fromEntries(given);
  const counting = useLoad(() => callPath<{ count: number }>("POST", path, { filter, dry_run: true }), path);
  const { isRunning, problem, run } = useAction();
  const [done, setDone] = useState<Omit<Retried, "next_cursor"> | null>(null);
  const retry = async () => {
    let sum = { retried: 0, skipped: 0 };
    let cursor: string | null = null;
    do {
      const answer: Retried = await callPath("POST", path, cursor === null ? { filter } : { filter, cursor });
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
          {given.length === 0
            ? "Of this tenant"
            : `With ${given.map(([name, value]) => `${name} ${value}`).join(", ")}`}
          , <strong>{counted(counting.data.count, "failed message")}</strong> {counting.data.count === 1 ? "is" : "are"}{" "}
          to be sent again. Those whose content is no longer kept are skipped.
        </p>
      )}
      {done === null ? null : (
        <p role="status">
          {counted(done.retried, "message")} queued again, {done.skipped} skipped.
        </p>
      )}
      <ProblemBox problem={problem} />
      {counting.data === null || counting.data.count === 0 || done !== null ? null : (
        <div class="form-actions">
          <button type="button" class="danger" disabled={isRunning} onClick={() => void run(retry)}>
            Send {counted(counting.data.count, "message")} again
          </button>
        </div>
      )}
    </Dialog>
  );
}
