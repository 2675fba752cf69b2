import { useEffect, useRef, useState } from "preact/hooks";
import { callPath, type Problem, problemOf } from "./api.ts";

/** What `GET /dash/api/overview` answers; a part is null while the store that knows it is away. */
export interface Overview {
  readonly at: string;
  readonly totals: {
    readonly tenants: number | null;
    readonly accepted_today: number | null;
    readonly delivered_today: number | null;
    readonly failed_today: number | null;
  } | null;
  readonly queue: {
    readonly depth: number | null;
    readonly oldest_seconds: number | null;
    readonly outbox_oldest_seconds: number | null;
    readonly redis_memory_bytes: number | null;
    readonly redis_memory_limit_bytes: number | null;
  } | null;
  readonly rates: Rates | null;
  readonly shards: readonly Shard[] | null;
  readonly tenants: readonly TenantQueue[] | null;
  readonly processes: readonly ProcessState[] | null;
  readonly expiring: readonly Expiring[] | null;
  readonly alarms: readonly Alarm[];
}

export interface Rates {
  /** When the first interval began. */
  readonly from: string;
  readonly interval_seconds: number;
  readonly series: readonly {
    readonly channel: string;
    readonly outcome: string;
    readonly counts: readonly number[];
  }[];
}

export interface Shard {
  readonly shard: number;
  readonly depth: number;
  readonly oldest_seconds: number | null;
  readonly process: string | null;
}

export interface TenantQueue {
  readonly tenant_id: string;
  readonly channel: string;
  readonly depth: number;
  readonly oldest_seconds: number | null;
}

export interface ProcessState {
  readonly name: string;
  readonly roles: readonly string[];
  readonly started_at: string;
  readonly shards: readonly number[];
  readonly loop_delay_ms: number | null;
  readonly event_store_lag_seconds: number | null;
  readonly breakers: readonly Breaker[];
  readonly paused: readonly { readonly tenant_id: string; readonly channel: string }[];
}

export interface Breaker {
  readonly channel: string;
  readonly relay: string;
  readonly state: string;
  readonly since: string;
  readonly waiting_jobs: number;
}

export interface Expiring {
  readonly kind: string;
  readonly tenant_id: string | null;
  readonly name: string;
  readonly expires_at: string;
}

export interface Alarm {
  readonly severity: string;
  readonly title: string;
  readonly detail: string;
  readonly runbook: string | null;
}

export interface LiveOverview {
  readonly overview: Overview | null;
  /** The last reading failed. What is shown is older. */
  readonly problem: Problem | null;
  readonly isLive: boolean;
  reload(): void;
}

const POLL_MS = 10_000;

/** The overview as it is, from the server's stream; while that is broken, it is asked for every ten seconds. */
export function useOverview(): LiveOverview {
  const [overview, setOverview] = useState<Overview | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isLive, setLive] = useState(false);
  const heardMs = useRef(0);
  const poll = () => {
    callPath<Overview>("GET", "/dash/api/overview").then(
      (read) => {
        setOverview(read);
        setProblem(null);
      },
      (error: unknown) => setProblem(problemOf(error)),
    );
  };
  useEffect(() => {
    poll();
    const stream = new EventSource("/dash/api/overview/live");
    const hear = (event: MessageEvent<string>) => {
      heardMs.current = performance.now();
      // The server's own answer.
      setOverview(JSON.parse(event.data) as Overview);
      setProblem(null);
      setLive(true);
    };
    stream.addEventListener("message", hear);
    stream.addEventListener("overview", hear);
    stream.addEventListener("error", () => setLive(false));
    const timer = setInterval(() => {
      if (document.hidden || performance.now() - heardMs.current < POLL_MS) return;
      setLive(false);
      poll();
    }, POLL_MS);
    return () => {
      stream.close();
      clearInterval(timer);
    };
  }, []);
  return { overview, problem, isLive, reload: poll };
}
