import { domainToASCII } from "node:url";
import { UnavailableError } from "../../../domain/errors.ts";
import { boundedText } from "../../../domain/texts/bounded-text.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../domain/texts/json.ts";
import { splitAddress } from "../../../domain/texts/split-address.ts";
import type { ScoredMessage, SpamFilter, SpamVerdict, TriggeredRule } from "./spam.ts";
import { spamVerdict } from "./spam-verdict.ts";

export interface RspamdOptions {
  /** Time limit for one request, excluding building the message. */
  readonly timeoutMs: number;
  /** Size limit for rspamd's answer. A typical one has 1 to 5 KB. */
  readonly answerBytesMax: number;
}

const DEFAULTS: RspamdOptions = { timeoutMs: 15_000, answerBytesMax: 1024 * 1024 };

/**
 * Queries an rspamd worker (`POST /checkv2`, https://rspamd.com/doc/developers/protocol.html) over keep-alive
 * connections. Uses rspamd's score and ignores its recommended `action`.
 */
export class RspamdFilter implements SpamFilter {
  private readonly endpoint: string;
  private readonly password: string | null;
  private readonly options: RspamdOptions;

  /** @param url of a worker, controller or proxy; a password in it is sent as rspamd's `Password` header */
  constructor(url: string, options: Partial<RspamdOptions> = {}) {
    const { origin, pathname, password } = new URL(url);
    const base = pathname.replace(/\/+$/, "");
    this.endpoint = origin + (base.endsWith("/checkv2") ? base : `${base}/checkv2`);
    this.password = password === "" ? null : decoded(password);
    this.options = { ...DEFAULTS, ...options };
  }

  async score(message: ScoredMessage, signal: AbortSignal): Promise<SpamVerdict> {
    const raw = await message.raw();
    try {
      return parseVerdict(await this.ask(raw, this.headersFor(message, raw), signal));
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new UnavailableError(`the spam filter at ${this.endpoint} gave no verdict: ${why}`, { cause: error });
    }
  }

  private headersFor(message: ScoredMessage, raw: Uint8Array): Headers {
    const headers = new Headers();
    const add = (name: string, value: string | null) => value === null || headers.set(name, value);
    add("From", envelopeAddress(extractAddress(message.from)));
    add("Rcpt", envelopeAddress(message.to));
    add("Queue-Id", readQueueId(raw));
    add("Password", this.password);
    return headers;
  }

  private async ask(raw: Uint8Array, headers: Headers, signal: AbortSignal): Promise<unknown> {
    const { timeoutMs, answerBytesMax } = this.options;
    // One deadline for the whole exchange: an answer that trickles in would outlast any limit between two bytes.
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    const response = await fetch(this.endpoint, {
      method: "POST",
      headers,
      body: raw,
      redirect: "manual",
      signal: deadline,
    });
    const answer = await boundedText(response, answerBytesMax);
    if (answer === null) throw new Error(`its answer is longer than ${answerBytesMax} bytes`);
    if (response.status !== 200) throw new Error(`it answered with status ${response.status}`);
    return JSON.parse(answer);
  }
}

function parseVerdict(answer: unknown): SpamVerdict {
  if (!isJsonObject(answer)) throw new Error("its answer is no object");
  const { score, symbols = {} } = answer;
  if (!isScore(score)) throw new Error("its answer has no score");
  if (!isJsonObject(symbols)) throw new Error("its answer has symbols that are no object");
  const verdict = spamVerdict(score, Object.entries(symbols).map(parseRule));
  const unexplained = verdict.rules.length === 0 && verdict.score !== 0;
  return unexplained ? spamVerdict(score, [forcedBy(symbols, answer["messages"], score)]) : verdict;
}

/**
 * Accounts for a score that the symbols do not explain: some modules end a scan early, set its result themselves, and
 * give the reason in the message for the SMTP client (GTUBE does so).
 */
function forcedBy(symbols: JsonObject, messages: Json | undefined, score: number): TriggeredRule {
  const [name = "FORCED_RESULT"] = Object.keys(symbols);
  const why = isJsonObject(messages) ? messages["smtp_message"] : undefined;
  return parseRule([name, { score, description: why ?? "" }]);
}

function parseRule([name, symbol]: readonly [string, Json]): TriggeredRule {
  if (!isJsonObject(symbol) || !isScore(symbol["score"])) throw new Error("its answer has a symbol without a score");
  return {
    rule: name.slice(0, NAME_CHARS_MAX).toWellFormed(),
    score: symbol["score"],
    description: readDescription(symbol).slice(0, DESCRIPTION_CHARS_MAX).toWellFormed(),
  };
}

/** Symbols of an operator's own rules often have no description. */
function readDescription({ description }: JsonObject): string {
  return typeof description === "string" ? description : "";
}

const NAME_CHARS_MAX = 100;
const DESCRIPTION_CHARS_MAX = 300;

/** Whether the value is a finite number: JSON has no infinity, but `1e999` parses to it. */
function isScore(value: Json | undefined): value is number {
  return typeof value === "number" && Number.isFinite(value);
}

/** Undoes URL encoding; returns the text unchanged if it is not validly encoded. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Extracts the address from `Name <address>`, or returns the whole text. */
function extractAddress(mailbox: string): string {
  const open = mailbox.lastIndexOf("<");
  return open === -1 || !mailbox.endsWith(">") ? mailbox : mailbox.slice(open + 1, -1);
}

/**
 * Returns the address in a form that rspamd can parse, with its domain in ASCII, or null if there is none. rspamd
 * counts an address that it cannot parse as BROKEN_HEADERS, ten points against an honest message, but ignores a missing
 * one.
 */
function envelopeAddress(address: string): string | null {
  const parts = splitAddress(address);
  const ascii = parts === null ? "" : `${parts.local}@${domainToASCII(parts.domain)}`;
  return /^[!-~]+@[!-~]+$/.test(ascii) ? ascii : null;
}

const QUEUE_ID = /^message-id:\s*<([\w.-]{1,200})@/im;
const HEAD_BYTES_MAX = 16 * 1024;

/** Returns the message's name, which connects a line in rspamd's log with the job; null if it has none. */
function readQueueId(raw: Uint8Array): string | null {
  const head = Buffer.from(raw.buffer, raw.byteOffset, Math.min(raw.byteLength, HEAD_BYTES_MAX)).toString("latin1");
  const [headers = ""] = head.split("\r\n\r\n", 1);
  return QUEUE_ID.exec(headers)?.[1] ?? null;
}
