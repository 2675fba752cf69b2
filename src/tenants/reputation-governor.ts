import type { Clock } from "../domain/clock.ts";
import { Repeated } from "../domain/repeated.ts";
import { logFailure, type Telemetry } from "../domain/telemetry.ts";
import {
  computeRates,
  judge,
  type MailCounts,
  type MailHistory,
  NO_MAIL,
  REPUTATION_WINDOW_MS,
  type Reputation,
  type ReputationRules,
  UNGOVERNED,
} from "../domain/tenants/reputation.ts";
import type { TenantNewsDesk } from "../domain/tenants/tenant-news.ts";
import type { JsonObject } from "../domain/texts/json.ts";
import type { TenantRegistry } from "./registry.ts";

const ROUND_MS = 60_000;

export interface ReputationGovernorPorts {
  readonly registry: Pick<TenantRegistry, "reputations" | "changeReputation">;
  readonly history: MailHistory;
  readonly news: Pick<TenantNewsDesk, "tell">;
  /** Adds a change that no operator made to the audit log. Rejects with `UnavailableError` or `TransportError`. */
  audit(tenantId: string, detail: JsonObject): Promise<void>;
  readonly rules: ReputationRules;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/**
 * Governs tenants' e-mail by the bounces and complaints of the last 24 hours, once a minute.
 *
 * Invariants:
 * G1. A level changes only by counts that were read: while the event store or the registry is away, all levels stay.
 * G2. Counts from before an operator's release change no level, also if the release came while they were read.
 * G3. A change is stored before it is reported, and reported until that has succeeded. Several processes may govern: the
 *     one whose change was stored reports it, and the others only if it did not for two minutes.
 */
export class ReputationGovernor {
  private readonly rounds: Repeated;

  constructor(private readonly ports: ReputationGovernorPorts) {
    this.rounds = new Repeated(
      () => this.round(),
      ports.clock,
      () => ROUND_MS,
    );
  }

  /** Call once only. */
  start(): void {
    this.rounds.start();
  }

  /** Safe to repeat. */
  stop(): Promise<void> {
    return this.rounds.stop();
  }

  /** Never rejects. */
  async round(): Promise<void> {
    const { registry, clock } = this.ports;
    try {
      const states = await registry.reputations();
      const nowMs = clock.nowMs();
      const counts = await this.count(states, nowMs);
      for (const tenantId of new Set([...states.keys(), ...counts.keys()])) {
        if (this.rounds.isStopping) return;
        const state = states.get(tenantId) ?? UNGOVERNED;
        const evidence = { counts: counts.get(tenantId) ?? NO_MAIL, nowMs };
        await this.govern(tenantId, state, evidence).catch((error: unknown) => this.noteFailure(error, tenantId));
      }
    } catch (error) {
      this.noteFailure(error);
    }
  }

  private noteFailure(error: unknown, tenantId?: string): void {
    const fields = tenantId === undefined ? {} : { tenant_id: tenantId };
    logFailure(this.ports.telemetry, "a reputation could not be judged", error, fields);
  }

  private async count(
    states: ReadonlyMap<string, Reputation>,
    nowMs: number,
  ): Promise<ReadonlyMap<string, MailCounts>> {
    const { history, rules } = this.ports;
    const isOff = rules.mode === "off" && Array.from(states.values()).every(({ mode }) => (mode ?? "off") === "off");
    if (isOff) return new Map();
    const releases = new Map(
      Array.from(states).flatMap(([tenantId, { releasedAtMs: atMs }]) => (atMs === null ? [] : [[tenantId, atMs]])),
    );
    return history.mailCounts({ fromMs: nowMs - REPUTATION_WINDOW_MS, releases });
  }

  private async govern(
    tenantId: string,
    known: Reputation,
    { counts, nowMs }: { readonly counts: MailCounts; readonly nowMs: number },
  ): Promise<void> {
    const { registry, rules } = this.ports;
    const { untold } = known;
    if (untold !== null && untold.atMs <= nowMs) await this.tell(tenantId, known);
    if (judge(known, { counts, rules, nowMs }) === known) return;
    const changed = await registry.changeReputation(tenantId, (state) =>
      state.releasedAtMs === known.releasedAtMs ? judge(state, { counts, rules, nowMs }) : state,
    );
    if (changed.kind !== "done" || !changed.value.isChanged) return;
    const { state } = changed.value;
    if (state.untold !== null && state.sinceMs === nowMs) await this.tell(tenantId, state);
  }

  private async tell(tenantId: string, { untold, ...reputation }: Reputation): Promise<void> {
    if (untold === null) return;
    const { registry, news, audit, telemetry } = this.ports;
    const { level, sinceMs, counts } = reputation;
    const rates = counts === null ? null : computeRates(counts);
    const data = {
      level,
      former_level: untold.from,
      ...(counts !== null && {
        ...counts,
        bounce_rate: rates?.bounces ?? null,
        complaint_rate: rates?.complaints ?? null,
      }),
    };
    await news.tell([
      {
        tenantId,
        id: `reputation ${level} ${sinceMs}`,
        type: level === "good" ? "reputation.released" : `reputation.${level}`,
        channel: "email",
        atMs: sinceMs ?? untold.atMs,
        data,
      },
    ]);
    if (!untold.isAudited) await audit(tenantId, data);
    telemetry.log("warn", "the level of a tenant's e-mail has changed", {
      tenant_id: tenantId,
      level,
      from: untold.from,
    });
    await registry.changeReputation(tenantId, (state) =>
      state.sinceMs === sinceMs && state.untold !== null ? { ...state, untold: null } : state,
    );
  }
}
