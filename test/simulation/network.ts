import type { Timer } from "../../src/domain/clock.ts";
import { TransportError, UnavailableError } from "../../src/domain/errors.ts";
import type { Dice } from "./dice.ts";
import type { SimClock } from "./sim-clock.ts";
import type { SimProcess } from "./sim-process.ts";
import type { Trace } from "./trace.ts";
import { CALM, type Weather } from "./weather.ts";

/** A server that processes call. */
export interface Server {
  readonly name: string;
  isUp: boolean;
  /** After this time a caller hears that its call did not come back. */
  readonly timeoutMs: number;
}

/** When a process hears that the queue has not answered. */
export const QUEUE_CALL_MS_MAX = 5_000;

/** The connections that a process has to a server. The queue has one for each kind of call, all others one alone. */
export type Line = "accept" | "leases" | "bulk" | "small" | "only";

export const QUEUE_LINES: readonly Line[] = ["accept", "leases", "bulk", "small"];

export interface Call<T> {
  readonly from: SimProcess;
  readonly to: Server;
  readonly name: string;
  /** Bytes of the request; absent: too few to matter. */
  readonly bytes?: number;
  /** Bytes of the reply; absent: too few to matter. */
  replyBytes?(value: T): number;
  /** Takes place at one instant, if it does. Its error is the answer. */
  effect(): T;
}

/** `late`: it takes effect so much later than its caller has given it up. */
export type Mishap = "lost request" | "lost reply" | { readonly lateMs: number };

/** All messages are dropped until then. */
interface Silence {
  readonly to: Server;
  /** Null: every process. */
  readonly from: SimProcess | null;
  /** Null: every connection. */
  readonly line: Line | null;
  readonly untilMs: number;
  /** The other end of the connection is gone: whatever was sent into it never arrives. */
  readonly isHalfOpen: boolean;
}

/**
 * The wire between processes and servers. A call is a request, an effect at one instant, and a reply.
 *
 * N1. Each leg can be late or lost. N2. A request on the wire may take effect although its caller is dead or has given
 * it up; then also after what the caller did next. N3. Otherwise the calls on one connection arrive in their order;
 * those on different connections overtake each other. N4. A caller gets one answer, or a failure that says how much it
 * may conclude: after `TransportError` the effect is unknown, after `UnavailableError` there was none. N5. A connection
 * moves so many bytes a second in each direction, one message after the other; a reply that is not complete in time is
 * lost. N6. A silence holds everything up; a half-open connection swallows what is sent into it until its process
 * replaces it.
 */
export class Network {
  weather: Weather = CALM;
  /** A mishap that a story plots for a call, instead of chance. */
  plot: (name: string, from: SimProcess) => Mishap | null = () => null;
  /** Calls that got no answer, or one that their effect does not agree with. */
  lostCalls = 0;
  /** Requests on the wire whose callers have given up. */
  straying = 0;
  private readonly lastArrival = new Map<string, number>();
  /** When the last reply on a connection is through. */
  private readonly busyUntil = new Map<string, number>();
  private silences: Silence[] = [];

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
      const silence = this.silenceOn(call);
      if (silence !== null) return this.fallSilent(silence, call, answer);
      // Whatever the wire does, the caller waits no longer than this.
      if (weather.bytesPerMs > 0 || this.silences.length > 0) this.giveUpAt(call, answer);
      const isLost = dice.chance(weather.lostRequest);
      const isLate = dice.chance(weather.lateRequest);
      // An accept comes again only as a repeat that says so: its script relies on that.
      const isDoubled = dice.chance(weather.doubledRequest) && !call.name.startsWith("accept");
      if (isLost || isLate) {
        this.lostCalls += 1;
        this.clock.at(this.silenceMs(to), () => answer.fail(new TransportError(`${to.name} did not answer`)));
        if (isLost) return;
      }
      const legMs = isLate ? this.lateLegMs(to) : this.legInOrderMs(call);
      if (isLate) this.stray(legMs, () => this.arrive(call, answer));
      else this.clock.at(legMs, () => this.arrive(call, answer));
      if (isDoubled) this.stray(legMs + dice.between(0, 2_000), () => this.arrive(call, nobody()));
    });
  }

  /** Drops all messages between the server and the process (null: all of them) for this long. */
  silence(to: Server, from: SimProcess | null, forMs: number): void {
    this.trace.note("silence", from?.name ?? "all", `${to.name} ${forMs}`);
    this.silences.push({ to, from, line: null, untilMs: this.clock.nowMs + forMs, isHalfOpen: false });
  }

  /** One of the process's connections is dead, and its process finds out after this long. */
  breakHalf(to: Server, from: SimProcess, { line, forMs }: { readonly line: Line; readonly forMs: number }): void {
    this.trace.note("half-open", from.name, `${line} ${forMs}`);
    this.silences.push({ to, from, line, untilMs: this.clock.nowMs + forMs, isHalfOpen: true });
  }

  endSilences(): void {
    this.silences = [];
  }

  private silenceOn({ from, to, name }: Pick<Call<unknown>, "from" | "to" | "name">): Silence | null {
    if (this.silences.length === 0) return null;
    this.silences = this.silences.filter(({ untilMs }) => untilMs > this.clock.nowMs);
    const line = findLine(to, name);
    const meets = (silence: Silence) =>
      silence.to === to &&
      (silence.from === null || silence.from === from) &&
      (silence.line === null || silence.line === line);
    return this.silences.find(meets) ?? null;
  }

  /** The request waits on the wire for the end of the silence, or is gone. */
  private fallSilent<T>({ untilMs, isHalfOpen }: Silence, call: Call<T>, answer: Answer<T>): void {
    this.lostCalls += 1;
    this.giveUpAt(call, answer);
    const waits = !isHalfOpen && this.dice.chance(0.7);
    if (waits) this.stray(untilMs - this.clock.nowMs + this.legMs(), () => this.arrive(call, answer));
  }

  private giveUpAt<T>({ to }: Call<T>, answer: Answer<T>): void {
    answer.deadline ??= this.clock.at(to.timeoutMs, () =>
      answer.fail(new TransportError(`${to.name} did not answer in time`)),
    );
  }

  private callWith<T>(mishap: Mishap, { from, to, name, effect }: Call<T>): Promise<T> {
    return new Promise((_, reject) => {
      const takeEffect = () => {
        this.trace.note(name, from.name, "without an answer");
        try {
          effect();
        } catch {
          // Its error is the answer, too.
        }
      };
      if (mishap === "lost reply") this.clock.at(1, takeEffect);
      else if (mishap !== "lost request") this.clock.at(mishap.lateMs, takeEffect);
      this.clock.at(10, () => from.enter(() => reject(new TransportError(`${to.name} did not answer`)), "answer"));
    });
  }

  /** A message without an answer, whose loss goes unnoticed. */
  hint(to: SimProcess, hear: () => void): void {
    const isLost = this.dice.chance(this.weather.lostHint);
    const legMs = this.legMs();
    const isSilent = this.silences.some(
      ({ from, untilMs }) => (from === null || from === to) && untilMs > this.clock.nowMs,
    );
    if (!isLost && !isSilent) this.clock.at(legMs, () => to.enter(hear, "answer"));
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
    let wireMs = 0;
    try {
      const value = call.effect();
      give = () => answer.give(value);
      wireMs = this.wireMs(call, call.replyBytes?.(value) ?? 0, "down");
    } catch (error) {
      give = () => answer.fail(error);
    }
    if (this.silenceOn(call) !== null) {
      this.lostCalls += 1;
      this.giveUpAt(call, answer);
    } else if (dice.chance(weather.lostReply)) {
      this.lostCalls += 1;
      give = () => answer.fail(new TransportError(`the answer of ${to.name} was lost`));
      this.clock.at(this.silenceMs(to), give);
    } else this.clock.at(wireMs + this.legMs(), give);
  }

  /** How long a message of so many bytes takes on its connection, behind those that are on it already. */
  private wireMs({ from, to, name }: Call<unknown>, bytes: number, way: "up" | "down"): number {
    const { bytesPerMs } = this.weather;
    if (bytesPerMs === 0) return 0;
    const key = `${from.name}>${to.name} ${findLine(to, name)} ${way}`;
    const { nowMs } = this.clock;
    const throughMs = Math.max(nowMs, this.busyUntil.get(key) ?? 0) + bytes / bytesPerMs;
    this.busyUntil.set(key, throughMs);
    return throughMs - nowMs;
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

  private legInOrderMs(call: Call<unknown>): number {
    const { from, to, name, bytes = 0 } = call;
    const key = `${from.name}>${to.name} ${findLine(to, name)}`;
    const earliest = this.clock.nowMs + this.wireMs(call, bytes, "up") + this.legMs();
    const arrival = Math.max(earliest, (this.lastArrival.get(key) ?? -1) + 1);
    this.lastArrival.set(key, arrival);
    return arrival - this.clock.nowMs;
  }
}

/** The connection that a call goes by, by the first word of its name. */
function findLine(to: Server, name: string): Line {
  if (to.name !== "queue") return "only";
  const space = name.indexOf(" ");
  return LINES[space === -1 ? name : name.slice(0, space)] ?? "small";
}

const LINES: Readonly<Record<string, Line>> = {
  admit: "accept",
  accept: "accept",
  job: "accept",
  observe: "accept",
  leases: "leases",
  acquire: "leases",
  renew: "leases",
  release: "leases",
  heartbeat: "leases",
  resign: "leases",
  pull: "bulk",
  record: "bulk",
};

interface Answer<T> {
  give(value: T): void;
  fail(error: unknown): void;
  /** When its caller gives the call up. */
  deadline: Timer | null;
}

function nobody(): Answer<unknown> {
  return { give: () => {}, fail: () => {}, deadline: null };
}

/** The first answer counts, and is heard only where the process can hear. */
function once<T>(process: SimProcess, resolve: (value: T) => void, reject: (error: unknown) => void): Answer<T> {
  let isOver = false;
  const end = (settle: () => void) => {
    if (isOver) return;
    answer.deadline?.cancel();
    process.enter(() => {
      if (isOver) return;
      isOver = true;
      settle();
    }, "answer");
  };
  const answer: Answer<T> = {
    give: (value) => end(() => resolve(value)),
    fail: (error) => end(() => reject(error)),
    deadline: null,
  };
  return answer;
}
