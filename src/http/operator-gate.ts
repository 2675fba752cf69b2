import type { Clock } from "../domain/clock.ts";
import { ApiError } from "../domain/errors.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import { BearerToken } from "./bearer-token.ts";
import { RecentFailures } from "./recent-failures.ts";

const WINDOW_MS = 60_000;
const WRONG_TOKENS_MAX = 10;
const CALLERS_MAX = 10_000;

export interface OperatorGatePorts {
  readonly operatorToken: string;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Shares wrong tokens with the other processes behind the same address; null or absent if there are none. */
  readonly wrongTokens?: WrongTokens | null | undefined;
}

/** What processes behind one address tell each other. */
export interface WrongTokens {
  tell(caller: string): void;
  hear(listener: (caller: string) => void): void;
}

/**
 * Admits every request with the operator's token, always and at once: an attacker who guesses, perhaps behind the same proxy,
 * must not lock the operators out. Each address may try ten wrong tokens per minute, then it is told to wait. A request without
 * a token is not a guess and is not counted.
 */
export class OperatorGate {
  private readonly token: BearerToken;
  private readonly failures = new RecentFailures({
    windowMs: WINDOW_MS,
    failuresMax: WRONG_TOKENS_MAX,
    callersMax: CALLERS_MAX,
  });

  constructor(private readonly ports: OperatorGatePorts) {
    this.token = new BearerToken(ports.operatorToken);
    ports.wrongTokens?.hear((caller) => this.failures.add(caller, ports.clock.monotonicMs()));
  }

  /** Throws 401, or 429 after too many wrong tokens. `addressOf` finds the address the request came from. */
  require(authorization: string | null, addressOf: () => string | null): void {
    const fits = this.token.fits(authorization);
    if (fits === true) return;
    if (fits === false) this.countWrong(addressOf());
    throw new ApiError(401, "the operator token is missing or wrong: send it as Authorization: Bearer");
  }

  private countWrong(address: string | null): void {
    const { clock, telemetry } = this.ports;
    const nowMs = clock.monotonicMs();
    const caller = networkOf(address);
    const waitMs = this.failures.waitMs(caller, nowMs);
    if (waitMs > 0) {
      telemetry.count("operator_tokens_refused", { how: "slowed" });
      throw new ApiError(429, "too many wrong operator tokens from this address", {}, Math.ceil(waitMs / 1000));
    }
    telemetry.count("operator_tokens_refused", { how: "wrong" });
    this.ports.wrongTokens?.tell(caller);
    if (this.failures.add(caller, nowMs) < WRONG_TOKENS_MAX) return;
    telemetry.log("warn", "many wrong operator tokens came from one address, which has to wait now", { address });
  }
}

/** The network that counts as one caller: an IPv6 caller owns a whole /64. */
function networkOf(address: string | null): string {
  const plain = address?.replace(/^::ffff:(?=\d+\.)/i, "") ?? "";
  if (!plain.includes(":")) return plain;
  const [head = ""] = plain.split("::");
  const groups = head.split(":").filter((group) => group !== "");
  return [...groups, "0", "0", "0", "0"].slice(0, 4).join(":");
}
