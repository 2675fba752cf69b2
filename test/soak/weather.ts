import { Dice } from "../simulation/dice.ts";
import type { FaultKind } from "./fault.ts";
import { processFaults } from "./process-faults.ts";
import { providerFaults } from "./provider-faults.ts";
import type { Resources } from "./resources.ts";
import type { SoakWorld } from "./soak-world.ts";
import { storeFaults } from "./store-faults.ts";

const FAULT_KINDS: readonly FaultKind[] = [...processFaults, ...storeFaults, ...providerFaults];

/** How often a fault is joined by one of another group. */
const TWO_AT_ONCE = 0.25;
/** How long the service may take to be ready after a fault, on a machine with other load. */
const READY_MS = 90_000;
/** The interval of minutes without a fault, at whose end resources are measured. */
const QUIET_EVERY_MS = 8 * 60_000;
const QUIET_MS = 75_000;
const SETTLE_MS = 30_000;

/** Draws faults from the seed, one after the other, with quiet minutes between them, until it is stopped. */
export class Weather {
  private readonly dice: Dice;
  private readonly kinds: readonly FaultKind[];
  private readonly over = new AbortController();
  private running: Promise<void> | null = null;

  constructor(
    private readonly world: SoakWorld,
    private readonly resources: Resources,
    private readonly say: (text: string) => void,
  ) {
    const { seed, only, without } = world.options;
    this.dice = new Dice(seed ^ 0x5eed);
    this.kinds = FAULT_KINDS.filter(
      (kind) => (only === null || only.has(kind.name)) && !without.has(kind.name) && kind.isPossible?.(world) !== false,
    );
    const unknown = [...(only ?? []), ...without].filter((name) => !FAULT_KINDS.some((kind) => kind.name === name));
    if (unknown.some((name) => name !== "none")) throw new Error(`no faults named ${unknown.join(", ")}`);
  }

  start(): void {
    this.running = this.run();
  }

  /** Lets the current fault come to its end. */
  async stop(): Promise<void> {
    this.over.abort();
    await this.running;
  }

  private async run(): Promise<void> {
    let quietAtMs = performance.now() + QUIET_EVERY_MS / 2;
    while (!this.over.signal.aborted) {
      await this.pause(this.dice.skewed(2_000 * this.world.options.gapSeconds) + 2_000);
      if (this.over.signal.aborted) return;
      if (performance.now() > quietAtMs || this.kinds.length === 0) {
        await this.pause(SETTLE_MS);
        await this.resources.measure(QUIET_MS - SETTLE_MS, this.over.signal);
        quietAtMs = performance.now() + QUIET_EVERY_MS;
        continue;
      }
      await this.trouble();
    }
  }

  private async trouble(): Promise<void> {
    const { world, dice } = this;
    const first = this.draw(this.kinds);
    const others = this.kinds.filter(({ group }) => group !== first.group);
    const second = dice.chance(TWO_AT_ONCE) && others.length > 0 ? [this.draw(others)] : [];
    const [count, fromMs] = [world.faults.spans.length, performance.now()];
    await Promise.all(
      [first, ...second].map((kind) =>
        kind.run(world, dice.fork()).catch((error: unknown) => {
          world.book.misdeed(
            "the soak itself works",
            `${kind.name}: ${error instanceof Error ? error.stack : String(error)}`,
          );
        }),
      ),
    );
    const lastedMs = performance.now() - fromMs;
    const recoveryMs = await this.recovered();
    const spans = world.faults.spans.slice(count);
    for (const span of spans) span.recoveryMs = recoveryMs;
    const names = spans.map(({ kind, target }) => `${kind} (${target})`).join(" and ");
    this.say(
      `${names}: ${(lastedMs / 1_000).toFixed(1)} s, ready again after ${((recoveryMs ?? READY_MS) / 1_000).toFixed(1)} s`,
    );
  }

  private draw(kinds: readonly FaultKind[]): FaultKind {
    const total = kinds.reduce((sum, { weight }) => sum + weight, 0);
    let drawn = this.dice.next() * total;
    const found = kinds.find(({ weight }) => (drawn -= weight) < 0) ?? kinds[0];
    if (found === undefined) throw new Error("there is no fault to draw");
    return found;
  }

  /** Until all starts are ready; null: they are not in time. */
  private async recovered(): Promise<number | null> {
    const { service, side, book } = this.world;
    const fromMs = performance.now();
    try {
      for (const one of [service, side]) await one?.untilReady(READY_MS);
      return performance.now() - fromMs;
    } catch (error) {
      book.misdeed("the service is ready again after each fault", `${new Date().toISOString()}: ${String(error)}`);
      return null;
    }
  }

  private async pause(ms: number): Promise<void> {
    const { signal } = this.over;
    if (signal.aborted) return;
    await Promise.race([
      Bun.sleep(ms),
      new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true })),
    ]);
  }
}
