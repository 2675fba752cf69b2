import { TransportError, UnavailableError } from "../../src/core/errors.ts";
import type { Dice } from "./dice.ts";
import type { SimClock } from "./sim-clock.ts";
import type { SimProcess } from "./sim-process.ts";
import type { Trace } from "./trace.ts";
import { CALM, type Weather } from "./weather.ts";

/** What processes call. */
export interface Server {
  readonly name: string;
  isUp: boolean;
  /** After this time a caller hears that its call did not come back. */
  readonly timeoutMs: number;
}

export interface Call<T> {
  readonly from: SimProcess;
  readonly to: Server;
  readonly name: string;
  /** Takes place at one instant, if it does. Its error is the answer. */
  effect(): T;
}

/** `late`: it takes effect so much later than its caller has given it up. */
export type Mishap = "lost request" | "lost reply" | { readonly lateMs: number };

/**
 * The wire between processes and servers. A call is a request, an effect at one instant, and a reply.
 *
 * N1. Each leg can be late or lost. N2. A request on the wire may take effect although its caller is dead or has given it
 * up; then also after what the caller did next. N3. Otherwise a process's calls to a server arrive in their order.
 * N4. A caller gets one answer, or a failure that says how much it may conclude: `TransportError` nothing at all,
 * `UnavailableError` that there was no effect.
 */
export class Network {
  weather: Weather = CALM;
  /** What a story has happen to a call, instead of chance. */
  plot: (name: string, from: SimProcess) => Mishap | null = () => null;
  /** Calls that got no answer, or one that their effect does not agree with. */
  lostCalls = 0;
  /** Requests on the wire that nobody waits for. */
  straying = 0;
  private readonly lastArrival = new Map<string, number>();

  constructor(
    private readonly clock: SimClock,
    private readonly dice: Dice,
    private readonly trace: Trace,
  ) {}

  call<T>(call: Call<T>): Promise<T> {
    const mishap = this.plot(call.name, call.from);
    if (mishap !== null) return this.callWith(mishap, call);
    return new Promise((resolve, reject) => {
      const { dice, weather } = this;
      const { from, to } = call;
      const answer = once(from, resolve, reject);
      const isLost = dice.chance(weather.lostRequest);
      const isLate = dice.chance(weather.lateRequest);
      const isDoubled = dice.chance(weather.doubledRequest) && call.name !== "accept";
      if (isLost || isLate) {
        this.lostCalls += 1;
        this.clock.at(this.silenceMs(to), () => answer.fail(new TransportError(`${to.name} did not answer`)));
        if (isLost) return;
      }
      const legMs = isLate ? this.lateLegMs(to) : this.legInOrderMs(from, to);
      if (isLate) this.stray(legMs, () => this.arrive(call, answer));
      else this.clock.at(legMs, () => this.arrive(call, answer));
      if (isDoubled) this.stray(legMs + dice.between(0, 2_000), () => this.arrive(call, NOBODY));
    });
  }

  private callWith<T>(mishap: Mishap, { from, to, name, effect }: Call<T>): Promise<T> {
    return new Promise((_, reject) => {
      const takeEffect = () => {
        this.trace.note(name, from.name, "without an answer");
        effect();
      };
      if (mishap === "lost reply") this.clock.at(1, takeEffect);
      else if (mishap !== "lost request") this.clock.at(mishap.lateMs, takeEffect);
      this.clock.at(10, () => from.enter(() => reject(new TransportError(`${to.name} did not answer`)), "answer"));
    });
  }

  /** A message that nobody answers, and that nobody misses. */
  hint(to: SimProcess, hear: () => void): void {
    const isLost = this.dice.chance(this.weather.lostHint);
    const legMs = this.legMs();
    if (!isLost) this.clock.at(legMs, () => to.enter(hear, "answer"));
  }

  legMs(): number {
    return this.dice.skewed(this.weather.legMsMax);
  }

  private arrive<T>(call: Call<T>, answer: Answer<T>): void {
    const { dice, weather, trace } = this;
    const { from, to, name } = call;
    if (from.isDead && dice.chance(0.5)) return;
    if (!to.isUp) {
      const error = dice.chance(0.5)
        ? new UnavailableError(`${to.name} is away`)
        : new TransportError(`${to.name} broke`);
      this.clock.at(this.legMs(), () => answer.fail(error));
      return;
    }
    trace.note(name, from.name);
    let give: () => void;
    try {
      const value = call.effect();
      give = () => answer.give(value);
    } catch (error) {
      give = () => answer.fail(error);
    }
    if (dice.chance(weather.lostReply)) {
      this.lostCalls += 1;
      give = () => answer.fail(new TransportError(`the answer of ${to.name} was lost`));
      this.clock.at(this.silenceMs(to), give);
    } else this.clock.at(this.legMs(), give);
  }

  private stray(legMs: number, arrive: () => void): void {
    this.straying += 1;
    this.clock.at(legMs, () => {
      this.straying -= 1;
      arrive();
    });
  }

  /** Often just behind what the caller does next, sometimes long after. */
  private lateLegMs(to: Server): number {
    return this.dice.chance(0.4) ? this.dice.between(50, 500) : this.dice.between(0, 2 * to.timeoutMs);
  }

  /** A broken connection is noticed at once, a silent one by its timeout. */
  private silenceMs(to: Server): number {
    return this.dice.chance(0.7) ? this.dice.between(1, 100) : to.timeoutMs;
  }

  private legInOrderMs(from: SimProcess, to: Server): number {
    const key = `${from.name}>${to.name}`;
    const arrival = Math.max(this.clock.nowMs + this.legMs(), (this.lastArrival.get(key) ?? -1) + 1);
    this.lastArrival.set(key, arrival);
    return arrival - this.clock.nowMs;
  }
}

interface Answer<T> {
  give(value: T): void;
  fail(error: unknown): void;
}

const NOBODY: Answer<unknown> = { give: () => {}, fail: () => {} };

/** The first answer counts, and is heard only where the process can hear. */
function once<T>(process: SimProcess, resolve: (value: T) => void, reject: (error: unknown) => void): Answer<T> {
  let isOver = false;
  const end = (settle: () => void) => {
    if (isOver) return;
    process.enter(() => {
      if (isOver) return;
      isOver = true;
      settle();
    }, "answer");
  };
  return { give: (value) => end(() => resolve(value)), fail: (error) => end(() => reject(error)) };
}
