import { timingSafeEqual } from "node:crypto";
import type { Clock } from "../domain/clock.ts";
import { remember } from "../domain/remember.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import { type Operator, type OperatorAccount, type OperatorDirectory, ROOT } from "../domain/tenants/operator.ts";
import { ApiError } from "./api-error.ts";
import { readBearerToken, secretDigest } from "./bearer-token.ts";
import { type OperatorSessions, requireOwnPage } from "./operator-sessions.ts";

const WINDOW_MS = 60_000;
const WRONG_TOKENS_MAX = 10;
const CALLERS_MAX = 10_000;

export interface OperatorGatePorts {
  /** The root operator's token. */
  readonly operatorToken: string;
  /** The other operators. */
  readonly operators: OperatorDirectory;
  /** Sessions of operators in a browser. */
  readonly sessions: OperatorSessions;
  /** The address at which browsers reach the service, if known. */
  readonly publicUrl?: string | undefined;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Shares wrong tokens with the other processes behind the same address; null or absent if there are none. */
  readonly wrongTokens?: WrongTokens | null | undefined;
}

/** The wrong tokens that processes behind one address share. */
export interface WrongTokens {
  tell(caller: string): void;
  hear(listener: (caller: string) => void): void;
}

/**
 * Admits every request with an operator's token or session, always and at once: an attacker who guesses, perhaps behind the
 * same proxy, must not lock the operators out. Ten wrong tokens per minute of an address are counted; every further one is
 * answered with a wait and no other work. A request without a token is not a guess and is not counted, nor is an expired
 * session: the pages that show it keep polling.
 */
export class OperatorGate {
  private readonly root: OperatorAccount;
  private readonly rootDigest: Buffer;
  private readonly failures = new RecentFailures({
    windowMs: WINDOW_MS,
    failuresMax: WRONG_TOKENS_MAX,
    callersMax: CALLERS_MAX,
  });

  constructor(private readonly ports: OperatorGatePorts) {
    this.rootDigest = secretDigest(ports.operatorToken);
    this.root = { operator: ROOT, tokenHash: this.rootDigest.toString("hex") };
    ports.wrongTokens?.hear((caller) => this.failures.add(caller, ports.clock.monotonicMs()));
  }

  /**
   * Returns the operator whose token or session the request carries; the token takes precedence. Throws 401, with the time to
   * wait after too many wrong tokens, 403 for a session that another site's page uses, or `UnavailableError` if the token
   * cannot be looked up at the moment. `addressOf` finds the address the request came from.
   */
  require(request: Request, addressOf: () => string | null): Operator {
    const token = readBearerToken(request.headers.get("authorization"));
    if (token !== null) return this.ofToken(token, addressOf).operator;
    const { sessions, clock, publicUrl } = this.ports;
    const account = sessions.findOperator(request, clock.nowMs(), (id) => this.byId(id));
    if (account === null) throw unknownOperator();
    requireOwnPage(request, publicUrl);
    return account.operator;
  }

  /** Begins a session for the token's operator. Throws as `require` does. */
  signIn(token: string, addressOf: () => string | null): { readonly operator: Operator; readonly session: string } {
    const account = this.ofToken(token, addressOf);
    return { operator: account.operator, session: this.ports.sessions.begin(account, this.ports.clock.nowMs()) };
  }

  private ofToken(token: string, addressOf: () => string | null): OperatorAccount {
    const isRoots = timingSafeEqual(secretDigest(token), this.rootDigest);
    const account = isRoots ? this.root : this.ports.operators.byToken(token);
    if (account !== null) return account;
    this.countWrong(addressOf());
    throw unknownOperator();
  }

  private byId(id: string): OperatorAccount | null {
    return id === ROOT.id ? this.root : this.ports.operators.byId(id);
  }

  private countWrong(address: string | null): void {
    const { clock, telemetry } = this.ports;
    const nowMs = clock.monotonicMs();
    const caller = toNetwork(address);
    const waitMs = this.failures.waitMs(caller, nowMs);
    if (waitMs > 0) {
      telemetry.count("operator_tokens_refused", { how: "slowed" });
      throw new ApiError("invalid_operator_token", SLOWED, {}, Math.ceil(waitMs / 1000));
    }
    telemetry.count("operator_tokens_refused", { how: "wrong" });
    this.ports.wrongTokens?.tell(caller);
    if (this.failures.add(caller, nowMs) < WRONG_TOKENS_MAX) return;
    telemetry.log("warn", "many wrong operator tokens came from one address, which has to wait now", { address });
  }
}

const SLOWED =
  "the operator token is wrong, as many from this address were: wait for the seconds that Retry-After names";

function unknownOperator(): ApiError {
  return new ApiError(
    "invalid_operator_token",
    "the operator token is missing or wrong: send it as Authorization: Bearer",
  );
}

/** Returns the network that counts as one caller: an IPv6 caller owns a whole /64. */
export function toNetwork(address: string | null): string {
  const plain = address?.replace(/^::ffff:(?=\d+\.)/i, "") ?? "";
  if (!plain.includes(":")) return plain;
  const [head = ""] = plain.split("::");
  const groups = head.split(":").filter((group) => group !== "");
  return [...groups, "0", "0", "0", "0"].slice(0, 4).join(":");
}

interface RecentFailuresOptions {
  readonly windowMs: number;
  /** The most failures that one caller may have within a window. */
  readonly failuresMax: number;
  readonly callersMax: number;
}

/** Recent failures by caller. Bounded: the caller whose last failure is oldest is forgotten first. */
export class RecentFailures {
  /** Each caller's failure times, oldest first. Callers are ordered by their latest failure. */
  private readonly timesMs = new Map<string, readonly number[]>();

  constructor(private readonly options: RecentFailuresOptions) {}

  get size(): number {
    return this.timesMs.size;
  }

  /** Returns the milliseconds that the caller must wait before it may fail again; 0 if it may now. */
  waitMs(caller: string, nowMs: number): number {
    const { windowMs, failuresMax } = this.options;
    const recent = this.recent(caller, nowMs);
    const [oldest] = recent;
    return oldest === undefined || recent.length < failuresMax ? 0 : oldest + windowMs - nowMs;
  }

  /** Returns the caller's number of failures, including this one. */
  add(caller: string, nowMs: number): number {
    const recent = [...this.recent(caller, nowMs), nowMs];
    const { windowMs, callersMax } = this.options;
    const isOver = (times: readonly number[]) => (times.at(-1) ?? 0) + windowMs <= nowMs;
    remember(this.timesMs, { key: caller, value: recent, max: callersMax, isOver });
    return recent.length;
  }

  private recent(caller: string, nowMs: number): readonly number[] {
    const times = this.timesMs.get(caller) ?? [];
    return times.filter((time) => time + this.options.windowMs > nowMs);
  }
}
