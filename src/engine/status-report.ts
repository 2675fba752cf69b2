import type { Clock } from "../domain/clock.ts";
import type { ChannelName } from "../domain/jobs/job.ts";
import type { AcceptedCount, ProcessStatus, ProcessStatuses } from "../domain/process-status.ts";
import { Repeated } from "../domain/repeated.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { Dispatcher } from "./dispatch/dispatcher.ts";
import type { Recorder } from "./recorder/recorder.ts";

const TELL_MS = 2_000;
const MINUTE_MS = 60_000;
const BREAKERS_MAX = 50;
const PAUSED_MAX = 50;
const HELD_MAX = 500;
/** A relay's name may be a tenant's. */
const TEXT_CHARS_MAX = 300;
/** Minutes and channels in memory while Redis is away; more are not counted. */
const COUNTS_MAX = 1_000;

export interface StatusReportOptions {
  readonly statuses: ProcessStatuses;
  readonly name: string;
  readonly roles: readonly string[];
  readonly clock: Clock;
  /** By how much the event loop was late since the last call. */
  readonly loop: { start(): void; stop(): void; take(): number };
  readonly telemetry: Telemetry;
}

/**
 * Tells the other processes every two seconds how this one is, and what it has accepted since. Counts are not repeated if the
 * process dies, or if it is unknown whether Redis has them: they are for charts, and never too high.
 */
export class StatusReport {
  private dispatcher: Pick<Dispatcher, "shards" | "away" | "held"> | null = null;
  private recorder: Pick<Recorder, "shards"> | null = null;
  private readonly accepted = new Map<string, AcceptedCount>();
  private readonly startedAtMs: number;
  private readonly reports: Repeated;

  constructor(private readonly options: StatusReportOptions) {
    this.startedAtMs = options.clock.nowMs();
    this.reports = new Repeated(
      () => this.tell(),
      options.clock,
      () => TELL_MS,
    );
  }

  delivers(dispatcher: Pick<Dispatcher, "shards" | "away" | "held">): void {
    this.dispatcher = dispatcher;
  }

  records(recorder: Pick<Recorder, "shards">): void {
    this.recorder = recorder;
  }

  /** Jobs were accepted. Returns at once. */
  noteAccepted(channel: ChannelName, accepted: number): void {
    const minuteMs = Math.floor(this.options.clock.nowMs() / MINUTE_MS) * MINUTE_MS;
    const key = `${minuteMs} ${channel}`;
    const jobs = this.accepted.get(key)?.jobs ?? 0;
    if (jobs === 0 && this.accepted.size >= COUNTS_MAX) return;
    this.accepted.set(key, { minuteMs, channel, jobs: jobs + accepted });
  }

  /** Call once only. */
  start(): void {
    this.options.loop.start();
    this.reports.start();
  }

  /** Takes the report back. Safe to repeat. */
  async stop(): Promise<void> {
    this.options.loop.stop();
    await this.reports.stop();
    await this.tell();
    await this.options.statuses.withdrawStatus(this.options.name).catch(() => undefined);
  }

  /** Never rejects. */
  async tell(): Promise<void> {
    const { statuses, telemetry } = this.options;
    const counts = [...this.accepted.values()];
    this.accepted.clear();
    try {
      await statuses.tellStatus(this.status(), counts);
    } catch (error) {
      telemetry.log("debug", "this process could not tell how it is", { error: String(error) });
    }
  }

  private status(): ProcessStatus {
    const { clock, name, roles, loop } = this.options;
    const nowMs = clock.nowMs();
    const away = this.dispatcher?.away() ?? [];
    const held = this.dispatcher?.held(HELD_MAX) ?? [];
    return {
      name,
      roles,
      startedAtMs: this.startedAtMs,
      toldAtMs: nowMs,
      delivers: this.dispatcher?.shards ?? [],
      records: this.recorder?.shards ?? [],
      loopDelayMs: Math.round(loop.take() * 10) / 10,
      breakers: away
        .toSorted((a, b) => b.waitingJobs - a.waitingJobs)
        .slice(0, BREAKERS_MAX)
        .map(({ channel, relay, forMs, state, why, waitingJobs }) => {
          return { channel, relay: cut(relay), sinceMs: nowMs - forMs, state, why: cut(why), waitingJobs };
        }),
      paused: held
        .filter(({ waits }) => waits === "paused")
        .slice(0, PAUSED_MAX)
        .map(({ tenantId, channel }) => ({ tenantId, channel })),
      held,
    };
  }
}

function cut(text: string): string {
  return text.slice(0, TEXT_CHARS_MAX);
}
