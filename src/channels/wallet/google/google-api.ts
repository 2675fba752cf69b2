import type { Clock } from "../../../domain/clock.ts";
import { TransportError } from "../../../domain/errors.ts";
import { type Health, HealthWatch } from "../../../domain/health.ts";
import { type JsonObject, parseJsonObject } from "../../../domain/json.ts";
import { limits } from "../../../domain/limits.ts";
import type { Telemetry } from "../../../domain/telemetry.ts";
import type { GoogleIssuer } from "../../../domain/wallet.ts";
import { AccessTokens } from "./access-tokens.ts";
import { type Answer, boundedFetch, UnreachedError } from "./bounded-fetch.ts";
import { type Cause, quotable, refusalOf, retryAfterMs } from "./google-replies.ts";
import { IssuerPace, type Urgency } from "./issuer-pace.ts";

export interface GoogleApiOptions {
  /** With the path of its version: `https://walletobjects.googleapis.com/walletobjects/v1`. */
  readonly apiUrl: string;
  readonly tokenUrl: string;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

export interface GoogleCall {
  readonly method: "GET" | "POST" | "PATCH";
  /** Kind of resource, its id and what is done with it; each is escaped. */
  readonly path: readonly string[];
  readonly body?: JsonObject;
}

export type GoogleAnswer =
  | { readonly kind: "done"; readonly body: JsonObject }
  /** Google answered, and did not do it; `unanswered`: it may have done it. */
  | {
      readonly kind: "refused";
      readonly cause: Cause | "unanswered";
      readonly said: string;
      readonly afterMs: number | null;
    }
  /** The pace left no room, or the caller gave up: nothing was asked. */
  | { readonly kind: "unasked"; readonly afterMs: number };

export type Refused = Exclude<GoogleAnswer, { kind: "done" }>;

/** Whether nobody answered. */
interface Silent {
  readonly isSilence?: true;
}

/** `token`: the one that was used. */
type Tried = GoogleAnswer & Silent & { readonly token?: string };

/** For whom a call is made, and what ends it. */
export interface Caller {
  readonly issuer: GoogleIssuer;
  readonly urgency: Urgency;
  readonly signal: AbortSignal;
}

/**
 * The wallet's REST API: tokens, pace, deadlines and bounds. It repeats nothing but a call whose token had gone bad. While
 * Google is away callers hear so at once: their waiting would take the place of passes that need no Google.
 */
export class GoogleApi {
  private readonly tokens: AccessTokens;
  /** By issuer. */
  private readonly paces = new Map<string, IssuerPace>();

  private readonly watch: HealthWatch;

  constructor(private readonly options: GoogleApiOptions) {
    const { clock, telemetry } = options;
    this.tokens = new AccessTokens(options.tokenUrl);
    const messages = { down: "Google's wallet is away: its passes wait", up: "Google's wallet is back" };
    this.watch = new HealthWatch({ clock, telemetry, gauge: "google_wallet_up", messages, failuresMin: STRIKES_MAX });
  }

  health(): Health {
    return this.watch.health;
  }

  /** Never rejects for what Google or the network does. */
  async call(caller: Caller, call: GoogleCall): Promise<GoogleAnswer> {
    const answer = this.watch.mayTry() ? await this.tryWatched(caller, call) : AWAY;
    const outcome = answer.kind === "refused" ? answer.cause : answer.kind;
    this.options.telemetry.count("google_calls", { call: `${call.method} ${call.path[0] ?? ""}`, outcome });
    return answer;
  }

  close(): void {
    this.tokens.close();
  }

  /** An answer of any kind shows that somebody is there: what it is may be this caller's own doing. */
  private async tryWatched(caller: Caller, call: GoogleCall): Promise<GoogleAnswer> {
    const { isSilence, ...answer } = await this.tryTwice(caller, call);
    if (answer.kind === "unasked" || (isSilence && caller.signal.aborted)) this.watch.calledOff();
    else if (isSilence) this.watch.failed(answer.kind === "refused" ? answer.said : "");
    else this.watch.succeeded();
    return answer;
  }

  private async tryTwice(caller: Caller, call: GoogleCall): Promise<Tried> {
    const first = await this.try(caller, call);
    if (first.kind !== "refused" || first.cause !== "credentials" || first.token === undefined) return first;
    // It may have been withdrawn before its time.
    this.tokens.drop(caller.issuer, first.token);
    return this.try(caller, call);
  }

  private async try({ issuer, urgency, signal }: Caller, call: GoogleCall): Promise<Tried> {
    const granted = await this.tokenOf(issuer, signal);
    if ("kind" in granted) return granted;
    const pace = this.paceOf(issuer);
    if (!(await pace.take(urgency, signal))) return { kind: "unasked", afterMs: pace.waitMs };
    const { token } = granted;
    try {
      return { ...this.read(await this.send(call, token, signal)), token };
    } catch (error) {
      if (!(error instanceof TransportError)) throw error;
      const cause = error instanceof UnreachedError ? "away" : "unanswered";
      return { kind: "refused", cause, said: error.message, afterMs: null, isSilence: true };
    }
  }

  private async tokenOf(issuer: GoogleIssuer, signal: AbortSignal): Promise<{ token: string } | (Refused & Silent)> {
    try {
      const granted = await Promise.race([this.tokens.of(issuer), aborted(signal)]);
      if (granted.kind === "token") return { token: granted.token };
      return { kind: "refused", cause: "credentials", said: quotable(granted.said), afterMs: null };
    } catch (error) {
      if (!(error instanceof TransportError)) throw error;
      // Without a token nothing was asked of the wallet.
      if (signal.aborted) return { kind: "unasked", afterMs: 0 };
      this.options.telemetry.log("warn", "no access token for Google's wallet", { error: error.message });
      return { kind: "refused", cause: "away", said: NO_TOKENS, afterMs: null, isSilence: true };
    }
  }

  private send({ method, path, body }: GoogleCall, token: string, signal: AbortSignal): Promise<Answer> {
    const url = `${this.options.apiUrl}/${path.map(encodeURIComponent).join("/")}`;
    return boundedFetch({
      url,
      method,
      headers: {
        authorization: `Bearer ${token}`,
        accept: "application/json",
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      body: body === undefined ? null : JSON.stringify(body),
      signal,
      timeoutMs: limits.googleCallTimeoutMs,
      answerBytesMax: limits.googleAnswerBytesMax,
    });
  }

  private read({ status, headers, text }: Answer): GoogleAnswer {
    if (status < 200 || status >= 300) {
      const afterMs = retryAfterMs(headers.get("retry-after"), this.options.clock.nowMs());
      return { kind: "refused", ...refusalOf(status, text), afterMs };
    }
    return { kind: "done", body: parseJsonObject(text) ?? {} };
  }

  private paceOf({ issuerId }: GoogleIssuer): IssuerPace {
    const pace = this.paces.get(issuerId) ?? new IssuerPace(this.options.clock);
    this.paces.set(issuerId, pace);
    if (this.paces.size > limits.googleAccountsMax) {
      for (const [id, { isIdle }] of this.paces) if (isIdle && id !== issuerId) this.paces.delete(id);
    }
    return pace;
  }
}

/** Calls in a row without an answer. */
const STRIKES_MAX = 3;
const NO_TOKENS = "its access tokens could not be had";
const AWAY: Refused = { kind: "refused", cause: "away", said: "", afterMs: null };

/** Rejects once the caller gives up: others wait for the same token, so asking for it goes on. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const onAbort = () => reject(new TransportError("the caller gave up"));
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
}
