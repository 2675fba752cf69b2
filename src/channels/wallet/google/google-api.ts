import type { GoogleIssuer, Unusable } from "../../../domain/channels/wallet.ts";
import { TransportError } from "../../../domain/errors.ts";
import { type Health, HealthWatch } from "../../../domain/health.ts";
import type { RuntimePorts } from "../../../domain/runtime-ports.ts";
import { type JsonObject, parseJsonObject, parseWritten } from "../../../domain/texts/json.ts";
import { walletLimits } from "../limits.ts";
import { AccessTokens } from "./access-tokens.ts";
import { boundedFetch, type HttpAnswer, UnreachedError } from "./bounded-fetch.ts";
import { type GoogleCause, parseRefusal, quotable, retryAfterMs } from "./google-replies.ts";
import { IssuerPace, type Urgency } from "./issuer-pace.ts";

export interface GoogleApiOptions extends RuntimePorts {
  /** Includes the version path: `https://walletobjects.googleapis.com/walletobjects/v1`. */
  readonly apiUrl: string;
  readonly tokenUrl: string;
}

export interface GoogleCall {
  readonly method: "GET" | "POST" | "PATCH";
  /** Kind of resource, its id and the operation; each part is escaped. */
  readonly path: readonly string[];
  readonly body?: JsonObject;
}

export type GoogleAnswer =
  | { readonly kind: "done"; readonly body: JsonObject }
  /** Google did not execute the call; `unanswered`: it may have executed it. */
  | {
      readonly kind: "refused";
      readonly cause: GoogleCause;
      readonly said: string;
      readonly afterMs: number | null;
    }
  /** The pace allowed no call, or the caller gave up: no call was made. */
  | { readonly kind: "unasked"; readonly afterMs: number };

export type Refused = Exclude<GoogleAnswer, { kind: "done" }>;

export const NO_CREDENTIALS: Unusable = {
  why: "the channel wallet has no Google credentials: set them with PUT /dash/api/tenants/{id}/credentials/google",
};

/** Returns the error for an API caller whose call failed through no fault of the caller. */
export function unusable(answer: Refused): Unusable {
  const cause = answer.kind === "refused" ? answer.cause : null;
  if (cause === "credentials") {
    return { why: "Google did not accept the service account of the channel wallet: check its credentials" };
  }
  if (cause === "forbidden") {
    return { why: "the service account of the channel wallet may not act for its Google issuer" };
  }
  return { why: "Google's wallet does not answer as it should at the moment: try again" };
}

/** Set if the call got no response. */
interface Silent {
  readonly isSilence?: true;
}

/** `token`: the one that the call used. */
type Tried = GoogleAnswer & Silent & { readonly token?: string };

/** The issuer on whose behalf a call is made, and the signal that aborts it. */
export interface Caller {
  readonly issuer: GoogleIssuer;
  readonly urgency: Urgency;
  readonly signal: AbortSignal;
}

/**
 * The wallet's REST API: tokens, pace, deadlines and bounds. It repeats only a call whose token was refused. While
 * Google is unavailable, calls fail at once: waiting would occupy slots that other passes could use.
 */
export class GoogleApi {
  private readonly tokens: AccessTokens;
  /** By issuer. */
  private readonly paces = new Map<string, IssuerPace>();

  private readonly watch: HealthWatch;

  constructor(private readonly options: GoogleApiOptions) {
    const { clock, random, telemetry } = options;
    this.tokens = new AccessTokens(options.tokenUrl);
    const messages = { down: "Google's wallet is away: its passes wait", up: "Google's wallet is back" };
    const gauge = "google_wallet_up";
    this.watch = new HealthWatch({ clock, random, telemetry, gauge, messages, failuresMin: STRIKES_MAX });
  }

  health(): Health {
    return this.watch.health;
  }

  /** Never rejects because of Google or the network. */
  async call(caller: Caller, call: GoogleCall): Promise<GoogleAnswer> {
    const answer = this.watch.mayTry() ? await this.tryWatched(caller, call) : AWAY;
    const outcome = answer.kind === "refused" ? answer.cause : answer.kind;
    this.options.telemetry.count("google_calls", { call: `${call.method} ${call.path[0] ?? ""}`, outcome });
    return answer;
  }

  close(): void {
    this.tokens.close();
  }

  /**
   * Makes the call and tracks availability. Any response proves that the service is up: an error may be this caller's
   * own fault.
   */
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
    // The token may have been revoked early.
    this.tokens.drop(caller.issuer, first.token);
    return this.try(caller, call);
  }

  private async try({ issuer, urgency, signal }: Caller, call: GoogleCall): Promise<Tried> {
    const granted = await this.getToken(issuer, signal);
    if ("kind" in granted) return granted;
    const pace = this.getPace(issuer);
    if (!(await pace.take(urgency, signal))) return { kind: "unasked", afterMs: pace.waitMs };
    const { token } = granted;
    try {
      return { ...this.read(await this.send(call, token, signal), call), token };
    } catch (error) {
      if (!(error instanceof TransportError)) throw error;
      const cause = error instanceof UnreachedError ? "away" : "unanswered";
      return { kind: "refused", cause, said: error.message, afterMs: null, isSilence: true };
    }
  }

  private async getToken(issuer: GoogleIssuer, signal: AbortSignal): Promise<{ token: string } | (Refused & Silent)> {
    try {
      const granted = await Promise.race([this.tokens.of(issuer), aborted(signal)]);
      if (granted.kind === "token") return { token: granted.token };
      return { kind: "refused", cause: "credentials", said: quotable(granted.said), afterMs: null };
    } catch (error) {
      if (!(error instanceof TransportError)) throw error;
      // Without a token, no call reached the wallet.
      if (signal.aborted) return { kind: "unasked", afterMs: 0 };
      this.options.telemetry.log("warn", "no access token for Google's wallet", { error: error.message });
      return { kind: "refused", cause: "away", said: NO_TOKENS, afterMs: null, isSilence: true };
    }
  }

  private send({ method, path, body }: GoogleCall, token: string, signal: AbortSignal): Promise<HttpAnswer> {
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
      timeoutMs: walletLimits.googleCallTimeoutMs,
      answerBytesMax: walletLimits.googleAnswerBytesMax,
    });
  }

  private read({ status, headers, text }: HttpAnswer, { path }: GoogleCall): GoogleAnswer {
    if (status < 200 || status >= 300) {
      const afterMs = retryAfterMs(headers.get("retry-after"), this.options.clock.nowMs());
      const { cause, said } = parseRefusal(status, text);
      // Only an insertion can find an existing object; otherwise another call was changing the same object.
      return { kind: "refused", cause: cause === "exists" && path.length > 1 ? "busy" : cause, said, afterMs };
    }
    return { kind: "done", body: parseJsonObject(text, parseWritten) ?? {} };
  }

  private getPace({ issuerId }: GoogleIssuer): IssuerPace {
    const pace = this.paces.get(issuerId) ?? new IssuerPace(this.options.clock);
    this.paces.set(issuerId, pace);
    if (this.paces.size > walletLimits.googleAccountsMax) {
      for (const [id, { isIdle }] of this.paces) if (isIdle && id !== issuerId) this.paces.delete(id);
    }
    return pace;
  }
}

/** Consecutive calls without a response. */
const STRIKES_MAX = 3;
const NO_TOKENS = "its access tokens could not be had";
const AWAY: Refused = { kind: "refused", cause: "away", said: "", afterMs: null };

/** Rejects once the caller gives up; the token request continues, because others wait for the same token. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const onAbort = () => reject(new TransportError("the caller gave up"));
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
}
