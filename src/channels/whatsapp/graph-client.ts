import type { WhatsappSender } from "../../domain/channels/whatsapp.ts";
import type { Clock } from "../../domain/clock.ts";
import { isConnectionFailure } from "../../domain/connection-failure.ts";
import { boundedText } from "../../domain/texts/bounded-text.ts";
import { isJsonObject, type JsonObject } from "../../domain/texts/json.ts";
import { Reachability } from "./callbacks/reachability.ts";
import type { GraphError } from "./graph-errors.ts";
import { chatLimits } from "./limits.ts";

/** The result of one call. `waitMs`: how long the provider asked the number to pause; 0 if it did not ask. */
export type GraphReply =
  | { readonly kind: "accepted"; readonly messageId: string; readonly waitMs: number }
  | { readonly kind: "refused"; readonly error: GraphError; readonly waitMs: number }
  /** The request may have reached the provider; its outcome is unknown. */
  | { readonly kind: "unanswered" }
  /** The request was not sent: the connection failed. */
  | { readonly kind: "unreachable" }
  /** Cancelled before it was sent. */
  | { readonly kind: "called_off" };

export interface GraphClientOptions {
  /** Without a trailing slash. If it ends with a version, that version is called. */
  readonly baseUrl: string;
  /** `v25.0` */
  readonly version: string;
  readonly clock: Clock;
  /** Measured from sending the request to the end of the reply. */
  readonly timeoutMs: number;
}

/**
 * Calls the messages endpoint of the Graph API over the runtime's keep-alive connection pool. Each request is sent
 * once: the runtime does not repeat a request whose connection was lost.
 */
export class GraphClient {
  private readonly root: string;
  private readonly reachability: Reachability;

  constructor(private readonly options: GraphClientOptions) {
    const { baseUrl, version, clock } = options;
    this.reachability = new Reachability(new URL(baseUrl), clock);
    this.root = graphRoot(baseUrl, version);
  }

  /** Never rejects. Aborting `signal` acts like a time-out. */
  async send(sender: WhatsappSender, message: JsonObject, signal: AbortSignal): Promise<GraphReply> {
    const { timeoutMs } = this.options;
    if (signal.aborted) return { kind: "called_off" };
    if (!(await this.reachability.isReached(signal))) return { kind: "unreachable" };
    if (signal.aborted) return { kind: "called_off" };
    let response: Response;
    try {
      response = await fetch(`${this.root}/${sender.phoneNumberId}/messages`, {
        method: "POST",
        headers: { authorization: `Bearer ${sender.accessToken}`, "content-type": "application/json" },
        body: JSON.stringify(message),
        // No other host may receive the token.
        redirect: "manual",
        signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      });
    } catch (error) {
      return { kind: isConnectionFailure(error) ? "unreachable" : "unanswered" };
    }
    this.reachability.answered();
    const answer = parseObject(await boundedText(response, chatLimits.chatAnswerBytesMax).catch(() => null));
    return this.toReply(response, answer);
  }

  private toReply({ status, ok, headers }: Response, answer: JsonObject | null): GraphReply {
    const waitMs = Math.max(retryAfterMs(headers.get("retry-after"), this.options.clock.nowMs()), regainMs(headers));
    const messageId = ok ? messageIdIn(answer) : null;
    if (messageId !== null) return { kind: "accepted", messageId, waitMs };
    const said = errorIn(status, answer);
    // The server that accepted the request may not have been the provider: only an error code proves that the message
    // was not sent.
    return ok && said.code === null ? { kind: "unanswered" } : { kind: "refused", error: said, waitMs };
  }
}

const VERSIONED = /\/v\d{1,3}\.\d$/;

/** Returns the prefix of all addresses of the API. */
export function graphRoot(baseUrl: string, version: string): string {
  return VERSIONED.test(baseUrl) ? baseUrl : `${baseUrl}/${version}`;
}

export function parseObject(text: string | null): JsonObject | null {
  if (text === null) return null;
  try {
    const parsed: unknown = JSON.parse(text);
    return isJsonObject(parsed) ? parsed : null;
  } catch {
    return null;
  }
}

/** Returns the first message's id, if it can be stored. */
function messageIdIn(answer: JsonObject | null): string | null {
  const messages = answer?.["messages"];
  const first: unknown = Array.isArray(messages) ? messages[0] : null;
  const id = isJsonObject(first) ? first["id"] : null;
  return typeof id === "string" && id !== "" && id.length <= chatLimits.chatMessageIdCharsMax ? id : null;
}

/**
 * Reads the error of a reply in the provider's form, `{error: {…}}`, or in one that gateways before the API use:
 * `{errors: [{…}]}`, `{error: "…"}`, or the members of the error by themselves.
 */
export function errorIn(status: number, answer: JsonObject | null): GraphError {
  const named = answer?.["error"] ?? answer?.["errors"];
  const first: unknown = Array.isArray(named) ? named[0] : named;
  if (typeof first === "string") return { status, code: null, message: first, details: null };
  const error = isJsonObject(first) ? first : (answer ?? {});
  const { code, message, title, error_data, details, error_user_msg, error_description } = error;
  const words = [message, title, error_description].find(isText) ?? "";
  const more = [isJsonObject(error_data) ? error_data["details"] : null, details, error_user_msg].find(isText);
  return { status, code: parseCode(code), message: words, details: more ?? null };
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

/** Parses a code, which some gateways pass on as text. */
function parseCode(code: unknown): number | null {
  const number = typeof code === "string" && /^\d{1,9}$/.test(code) ? Number(code) : code;
  return typeof number === "number" && Number.isSafeInteger(number) ? number : null;
}

/** Seconds or an HTTP date (RFC 9110, 10.2.3). 0 if absent or unreadable. */
function retryAfterMs(value: string | null, nowMs: number): number {
  if (value === null) return 0;
  if (/^\d{1,9}$/.test(value.trim())) return Number(value) * 1000;
  const atMs = Date.parse(value);
  return Number.isNaN(atMs) ? 0 : Math.max(0, atMs - nowMs);
}

/**
 * `{"<business id>": [{"type": "…", "estimated_time_to_regain_access": <minutes>, …}]}`; the estimate is 0 while there is
 * access. Other types are the limits of advertising, pages and so on, which the same app may have used up.
 */
function regainMs(headers: Headers): number {
  const usage = parseObject(headers.get("x-business-use-case-usage"));
  let minutesMax = 0;
  for (const cases of Object.values(usage ?? {})) {
    for (const one of Array.isArray(cases) ? cases : []) {
      if (!isJsonObject(one) || !isOfChat(one["type"])) continue;
      const minutes = one["estimated_time_to_regain_access"];
      if (typeof minutes === "number" && minutes > minutesMax) minutesMax = minutes;
    }
  }
  return minutesMax * 60_000;
}

function isOfChat(type: unknown): boolean {
  return type === undefined || (typeof type === "string" && /whatsapp/i.test(type));
}
