import { Dice } from "../simulation/dice.ts";
import { sendChat, write } from "./load-chat.ts";
import { open, sendBatch, sendEmail, sendScheduled, sendWithFallback, suppress, unsubscribe } from "./load-email.ts";
import { erase } from "./load-erasure.ts";
import { attack } from "./load-hostile.ts";
import { change } from "./load-operator.ts";
import { ReadLoad } from "./load-reads.ts";
import { submit } from "./load-smtp.ts";
import { WalletLoad } from "./load-wallet.ts";
import type { LoadContext, SoakWorld } from "./soak-world.ts";

/** An action, and its weight among the others. */
type Action = readonly [weight: number, run: () => Promise<unknown>];

const TICK_MS = 50;
/** With more than this in flight the load pauses: a slow service gets fewer requests. */
const IN_FLIGHT_MAX = 128;

/** The mixed load of all channels and all other callers. */
export class SoakLoad {
  readonly wallet = new WalletLoad();
  readonly done = new Map<string, number>();
  /** Actions that were due while too many were in flight. */
  skipped = 0;
  private readonly reads = new ReadLoad();
  private readonly open = new Set<Promise<void>>();
  private readonly context: LoadContext;
  private readonly actions: readonly Action[];
  private isOver = false;
  private isAbandoned = false;
  private running: Promise<void> | null = null;

  constructor(private readonly world: SoakWorld) {
    const dice = new Dice(world.options.seed);
    const context: LoadContext = {
      ...world,
      dice,
      later: (ms, run) => this.track(this.later(ms, run)),
      did: (what) => this.done.set(what, (this.done.get(what) ?? 0) + 1),
    };
    this.context = context;
    this.actions = [
      [48, () => sendEmail(context)],
      [1.5, () => sendBatch(context)],
      [4, () => sendScheduled(context)],
      [1.5, () => sendWithFallback(context)],
      [1, () => suppress(context)],
      [0.5, () => unsubscribe(context)],
      [0.7, () => open(context)],
      [3, () => submit(context)],
      [14, () => sendChat(context)],
      [1, () => write(context)],
      [4, () => this.wallet.create(context)],
      [3, () => this.wallet.update(context)],
      [1, () => this.wallet.carry(context)],
      [0.5, () => erase(context)],
      [20, () => this.reads.read(context)],
      [1, () => change(context)],
      [2, () => attack(context)],
    ];
  }

  start(): void {
    this.running = this.run();
  }

  /** Starts no new actions, and waits for those in flight, their repeats included. */
  async stop(withinMs: number): Promise<void> {
    this.isOver = true;
    await this.running;
    const giveUpAt = performance.now() + withinMs;
    while (this.open.size > 0 && performance.now() < giveUpAt) await Bun.sleep(100);
    this.isAbandoned = true;
  }

  private async run(): Promise<void> {
    const { rate } = this.world.options;
    let due = 0;
    let lastMs = performance.now();
    while (!this.isOver) {
      await Bun.sleep(TICK_MS);
      const nowMs = performance.now();
      due += ((nowMs - lastMs) / 1_000) * rate;
      lastMs = nowMs;
      for (; due >= 1; due -= 1) this.begin();
    }
  }

  private begin(): void {
    if (this.open.size > 20 * IN_FLIGHT_MAX || this.world.api.inFlight > IN_FLIGHT_MAX) {
      this.skipped += 1;
      return;
    }
    const total = this.actions.reduce((sum, [weight]) => sum + weight, 0);
    let drawn = this.context.dice.next() * total;
    const action = this.actions.find(([weight]) => (drawn -= weight) < 0) ?? this.actions[0];
    if (action !== undefined) this.track(action[1]());
  }

  private track(work: Promise<unknown>): void {
    const tracked = work.then(
      () => undefined,
      (error: unknown) =>
        this.context.book.misdeed("the soak itself works", String(error instanceof Error ? error.stack : error)),
    );
    this.open.add(tracked);
    void tracked.then(() => this.open.delete(tracked));
  }

  private async later(ms: number, run: () => Promise<void>): Promise<void> {
    await Bun.sleep(ms);
    if (!this.isAbandoned) await run();
  }
}
