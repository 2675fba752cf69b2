import type { Config } from "../config/config.ts";
import type { Calls } from "../domain/calls.ts";
import type { ClickHouseAddress } from "../domain/jobs/event-store.ts";
import { oneAtATime } from "../domain/one-at-a-time.ts";
import type { RedisAddress } from "../engine/queue/connection.ts";
import type { RedisQueue } from "../engine/queue/redis-queue.ts";
import type { AwayPart, ReadinessState } from "../http/readiness.ts";
import type { ChildProcess } from "../processes/child-process.ts";
import { type ChildRole, listChildren, type ProcessPlan } from "../processes/process-plan.ts";
import { Supervisor } from "../processes/supervisor.ts";
import type { Shutdown } from "../runtime/shutdown.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { systemRandom } from "../runtime/system-random.ts";
import type { ProcessTelemetry } from "../runtime/telemetry/process-telemetry.ts";
import { departedMetrics, type MetricsParts, summedMetrics } from "../runtime/telemetry/summed-metrics.ts";
import { parentDeathSignal } from "../storage/parent-death-signal.ts";
import type { Answers, OwnAnswers } from "./answers.ts";
import {
  ALL_COMPLAINTS,
  ALL_METRICS,
  ALL_READY,
  BEGIN,
  COMPLAINTS,
  ERASE_SANDBOX_MESSAGES,
  METRICS,
  type Peers,
  READY,
  SANDBOX_MESSAGES,
  TELL_WRONG_TOKEN,
  WRONG_TOKEN,
} from "./process-calls.ts";

export type Role = Config["roles"][number];

export interface MainProcessOptions {
  /** The configuration of the whole start. */
  readonly config: Config;
  readonly plan: ProcessPlan<Role>;
  readonly telemetry: ProcessTelemetry;
  readonly version: string;
}

/** Dependencies of children on the main process. */
export interface GivenToChildren {
  readonly stores: {
    readonly queue: RedisQueue;
    readonly redis: RedisAddress;
    readonly eventStoreAddress: ClickHouseAddress | null;
    /** Gives a child access to the registry in the data folder. */
    serveTo(calls: Calls): void;
  };
  /** The configuration for a child, except for its roles. */
  readonly config: Config;
}

/** How long to wait for the other processes, in ms. */
const ASK_MS = 2_500;
/** How often their metrics are saved; anything that a dying process counted since is lost. */
const KEEP_MS = 2_000;

/**
 * The main process's side of its children: what it tells them, and what it knows about all of them.
 *
 * M1. Counts and durations never decrease when a child ends: its last report stays in the sums.
 * M2. The leases of a child that ended are dropped at once: the main process saw it end, so no successor has to wait
 *     until they count as silent.
 */
export class MainProcess {
  private readonly supervisor: Supervisor;
  private readonly children: ReadonlyMap<string, ChildRole>;
  /** Lease owner of each child. */
  private readonly owners = new Map<string, string>();
  private readonly lastMetrics = new Map<string, MetricsParts>();
  private departed: MetricsParts = [];
  private given: GivenToChildren | null = null;
  private answers: Answers | null = null;
  private keeping: Timer | undefined;

  private constructor(
    private readonly options: MainProcessOptions,
    wrapper: readonly string[],
  ) {
    const { plan, telemetry } = options;
    this.children = listChildren(plan);
    // The same program that runs here, with the same runtime options.
    const program = [...wrapper, process.execPath, ...process.execArgv, Bun.main];
    this.supervisor = new Supervisor({
      names: [...this.children.keys()],
      command: (name) => [...program, "child", name],
      begin: (child, name) => this.beginChild(child, name),
      onLost: (name) => this.lost(name),
      clock: systemClock,
      random: systemRandom,
      telemetry,
    });
  }

  /** Starts the child processes, which load the program while the stores open. */
  static async start(options: MainProcessOptions, shutdown: Shutdown): Promise<MainProcess> {
    const main = new MainProcess(options, await parentDeathSignal());
    main.supervisor.start();
    shutdown.add("work", "processes", () => main.stop(shutdown.graceMs));
    // Before the stores that the children use.
    shutdown.add("clients", "processes", () => main.supervisor.end());
    return main;
  }

  get peers(): Peers {
    const { plan } = this.options;
    return { api: plan.api, dispatcher: plan.dispatcher + (plan.mainRoles.includes("dispatcher") ? 1 : 0) };
  }

  get pids(): ReadonlyMap<string, number> {
    return this.supervisor.pids();
  }

  /** Resolves when all children work. Rejects if one does not. */
  async begin(given: GivenToChildren): Promise<void> {
    this.given = given;
    await this.supervisor.begin();
    this.keeping = setInterval(() => void this.collect(), KEEP_MS);
  }

  answersFor(own: OwnAnswers): Answers {
    const answers: Answers = {
      metricsText: async () => {
        await this.collect();
        return summedMetrics([await own.metricsParts(), ...this.lastMetrics.values(), this.departed]);
      },
      readiness: { look: oneAtATime(() => this.readiness(own)) },
      complaints: async (limit) => {
        const all = [...(await this.supervisor.askAll(COMPLAINTS, limit, ASK_MS)).values(), own.complaints(limit)];
        return all.flat().sort(newestFirst).slice(0, limit);
      },
      sandbox: own.inbox,
      wrongTokens: null,
    };
    this.answers = answers;
    return answers;
  }

  private async stop(graceMs: number): Promise<void> {
    clearInterval(this.keeping);
    await this.supervisor.stop(graceMs);
  }

  private async collect(): Promise<void> {
    const parts = await this.supervisor.askAll(METRICS, null, ASK_MS);
    for (const [name, said] of parts) this.lastMetrics.set(name, said);
  }

  private async readiness(own: OwnAnswers): Promise<ReadinessState> {
    const [ours, others] = await Promise.all([own.readiness.look(), this.supervisor.askAll(READY, null, ASK_MS)]);
    const states = [ours, ...others.values()];
    const awayChildren = this.supervisor.away();
    const away = new Map<string, AwayPart>();
    const processes = awayChildren.map(({ name, sinceMs }) => ({ part: `process ${name}`, sinceMs }));
    for (const found of [...states.flatMap((state) => state.away), ...processes]) {
      const known = away.get(found.part);
      if (known === undefined || found.sinceMs < known.sinceMs) away.set(found.part, found);
    }
    const failing = new Set(states.flatMap((state) => state.failing));
    // As long as one process of a role works, it takes over the others' work; without one, the role's work stops.
    for (const role of this.roleless(awayChildren.map(({ name }) => name))) failing.add(role);
    return { failing: [...failing], away: [...away.values()] };
  }

  /** Roles that no running process plays at the moment. */
  private roleless(away: readonly string[]): readonly string[] {
    const { plan } = this.options;
    return (["api", "dispatcher"] as const).filter(
      (role) =>
        plan[role] > 0 &&
        !plan.mainRoles.includes(role) &&
        away.filter((name) => this.children.get(name) === role).length === plan[role],
    );
  }

  private async beginChild({ calls }: ChildProcess, name: string): Promise<void> {
    const { given, answers } = this;
    if (given === null || answers === null) throw new Error("a child began before the main process was ready");
    const { stores, config } = given;
    stores.serveTo(calls);
    calls.serve(ALL_METRICS, () => answers.metricsText());
    calls.serve(ALL_READY, () => answers.readiness.look());
    calls.serve(ALL_COMPLAINTS, (limit) => answers.complaints(limit));
    calls.serve(SANDBOX_MESSAGES, ({ to, limit }) => answers.sandbox?.messages(to, limit) ?? []);
    calls.serve(ERASE_SANDBOX_MESSAGES, (to) => answers.sandbox?.erase(to) ?? 0);
    calls.serve(TELL_WRONG_TOKEN, (caller) => this.supervisor.tellOthers(name, WRONG_TOKEN, caller));
    const owner = crypto.randomUUID();
    this.owners.set(name, owner);
    const role = this.children.get(name);
    const { version } = this.options;
    const { redis, eventStoreAddress: eventStore } = stores;
    const roles = role === undefined ? [] : [role];
    const order = { name, config: { ...config, roles }, redis, eventStore, version, owner, peers: this.peers };
    await calls.call(BEGIN, order);
  }

  private lost(name: string): void {
    const { config, telemetry } = this.options;
    const owner = this.owners.get(name);
    const said = this.lastMetrics.get(name);
    this.lastMetrics.delete(name);
    void this.keepDeparted(said ?? []);
    if (owner === undefined) return;
    this.given?.stores.queue.forgetOwner(owner, config.shards).catch((error: unknown) => {
      // Other processes take them over once they have been unchanged for a lease's term.
      telemetry.log("warn", "the leases of a process that ended run out by themselves", { error: String(error) });
    });
  }

  private async keepDeparted(said: MetricsParts): Promise<void> {
    this.departed = await departedMetrics([this.departed, said]);
  }
}

function newestFirst(a: { readonly logged_at: string }, b: { readonly logged_at: string }): number {
  return Number(b.logged_at > a.logged_at) - Number(b.logged_at < a.logged_at);
}
