import { useEffect, useRef, useState } from "preact/hooks";
import type { Overview } from "../../../clients/typescript/generated.ts";
import { call, type Problem, toProblem } from "./api.ts";

export interface LiveOverview {
  readonly overview: Overview | null;
  /** Whether the last load failed, so that the displayed data is older. */
  readonly problem: Problem | null;
  /** Whether the server pushes changes. */
  readonly isLive: boolean;
  reload(): void;
}

const POLL_MS = 10_000;
/** A stream that is silent for this long is checked: either there was no change, or the server is gone. */
const QUIET_MS = 30_000;

/** Returns the current overview from the server's stream, or by polling every ten seconds while the stream is broken. */
export function useOverview(): LiveOverview {
  const [overview, setOverview] = useState<Overview | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isLive, setLive] = useState(false);
  const heardMs = useRef(Number.NEGATIVE_INFINITY);
  const take = (read: Overview) => {
    heardMs.current = performance.now();
    setOverview(read);
    setProblem(null);
  };
  const poll = () => {
    call("getOverview", {}).then(take, (error: unknown) => setProblem(toProblem(error)));
  };
  useEffect(() => {
    poll();
    const stream = new EventSource("/dash/api/overview/live");
    // The server's own answer.
    stream.addEventListener("message", (event: MessageEvent<string>) => take(JSON.parse(event.data) as Overview));
    stream.addEventListener("open", () => setLive(true));
    stream.addEventListener("error", () => setLive(false));
    const timer = setInterval(() => {
      const isQuiet = performance.now() - heardMs.current > QUIET_MS;
      if (!document.hidden && (stream.readyState !== EventSource.OPEN || isQuiet)) poll();
    }, POLL_MS);
    return () => {
      stream.close();
      clearInterval(timer);
    };
  }, []);
  return { overview, problem, isLive, reload: poll };
}
