import { type Clock, within } from "../domain/clock.ts";
import { PartsAwayError, type ReadinessProbe } from "../domain/jobs/report.ts";
import { oneAtATime } from "../domain/one-at-a-time.ts";
import { Repeated } from "../domain/repeated.ts";
import type { Telemetry } from "../domain/telemetry.ts";

/** An unavailable part of the service, and when it became so (unix ms). */
export interface AwayPart {
  readonly part: string;
  readonly sinceMs: number;
  /** The reason, for the public: without addresses or secrets. */
  readonly why?: string;
}

export interface ReadinessState {
  /** Names of the unavailable parts that this process cannot work without. Empty: it is ready. */
  readonly failing: readonly string[];
  /** All unavailable parts, including those that the process can work without. */
  readonly away: readonly AwayPart[];
}

export interface ReadinessOptions {
  /** The process is not ready unless all of these are available. */
  readonly needed: readonly ReadinessProbe[];
  /** The process is ready without these, and reports them as unavailable. */
  readonly noticed?: readonly ReadinessProbe[];
  /**
   * Other unavailable parts, such as relays and the spam filter, that do not stop the work. They write their own logs and
   * metrics.
   */
  readonly beside?: () => readonly AwayPart[];
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

const PROBE_TIMEOUT_MS = 2_000;
/** How often the parts are probed when no request asks. */
const LOOK_MS = 2_000;

/**
 * Tracks which parts are unavailable. It also probes on its own schedule, so the log and the gauge `part_up` show an outage
 * that no request noticed: one line when a part fails, one when it recovers.
 *
 * Probes never run concurrently, however many requests ask: a stranger's requests must not load a dependency.
 */
export class Readiness {
  readonly look: () => Promise<ReadinessState>;
  private readonly away = new Map<string, number>();
  private readonly looks: Repeated;

  constructor(private readonly options: ReadinessOptions) {
    this.look = oneAtATime(() => this.ask());
    this.looks = new Repeated(this.look, options.clock, () => LOOK_MS);
  }

  start(): void {
    this.looks.start();
  }

  stop(): Promise<void> {
    return this.looks.stop();
  }

  private async ask(): Promise<ReadinessState> {
    const { needed, noticed = [], beside, clock } = this.options;
    const askAll = async (probes: readonly ReadinessProbe[]) =>
      (await Promise.all(probes.map((probe) => this.askOne(probe)))).flat();
    const [down, missing] = await Promise.all([askAll(needed), askAll(noticed)]);
    // A stopping process closes its stores one by one; that is no outage.
    if (!this.looks.isStopping) this.note([...down, ...missing]);
    const sinceMs = (part: string) => this.away.get(part) ?? clock.nowMs();
    const parts = [...down, ...missing].map(({ part }) => ({ part, sinceMs: sinceMs(part) }));
    return { failing: down.map(({ part }) => part), away: [...parts, ...(beside?.() ?? [])] };
  }

  private async askOne(probe: ReadinessProbe): Promise<readonly PartAway[]> {
    const late = () => [{ part: probe.name, why: `no answer within ${PROBE_TIMEOUT_MS} ms` }];
    return within({ clock: this.options.clock, ms: PROBE_TIMEOUT_MS, late }, async () => {
      try {
        await probe.check();
        return [];
      } catch (error) {
        return listParts(probe, error);
      }
    });
  }

  /** Logs and records what changed since the last probe. */
  private note(down: readonly PartAway[]): void {
    const { clock, telemetry, needed, noticed = [] } = this.options;
    const now = new Set(down.map(({ part }) => part));
    for (const { part, why } of down) {
      telemetry.gauge("part_up", 0, { part });
      if (this.away.has(part)) continue;
      this.away.set(part, clock.nowMs());
      telemetry.log("warn", "a part is away", { part, error: why });
    }
    for (const { name } of [...needed, ...noticed]) {
      if (!down.some(({ part }) => part === name || part.startsWith(`${name} `))) {
        telemetry.gauge("part_up", 1, { part: name });
      }
    }
    for (const [part, sinceMs] of this.away) {
      if (now.has(part)) continue;
      this.away.delete(part);
      telemetry.gauge("part_up", 1, { part });
      telemetry.log("info", "a part is back", { part, seconds: Math.round((clock.nowMs() - sinceMs) / 1000) });
    }
  }
}

interface PartAway {
  readonly part: string;
  /** For the log only: it may contain addresses. */
  readonly why: string;
}

function listParts(probe: ReadinessProbe, error: unknown): readonly PartAway[] {
  const why = error instanceof Error ? error.message : String(error);
  const parts = error instanceof PartsAwayError ? error.parts : [probe.name];
  return parts.map((part) => ({ part, why }));
}
