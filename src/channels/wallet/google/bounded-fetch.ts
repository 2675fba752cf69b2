import { isConnectionFailure } from "../../../domain/connection-failure.ts";
import { TransportError } from "../../../domain/errors.ts";
import { boundedText } from "../../../domain/texts/bounded-text.ts";

export interface HttpCall {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  /** Aborts the call. */
  readonly signal: AbortSignal;
  /** From the first byte sent to the last byte received. */
  readonly timeoutMs: number;
  readonly answerBytesMax: number;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** The call was not sent: no server accepted the connection. */
export class UnreachedError extends TransportError {}

/**
 * Makes one HTTP call with bounded time and response size. A redirect is a response like any other: the headers are for
 * this address only. Rejects with `TransportError`.
 */
export async function boundedFetch(call: HttpCall): Promise<HttpAnswer> {
  const signal = AbortSignal.any([call.signal, AbortSignal.timeout(call.timeoutMs)]);
  const { url, method, headers, body, answerBytesMax } = call;
  try {
    const response = await fetch(url, { method, headers: { ...headers }, body, signal, redirect: "manual" });
    const text = await boundedText(response, answerBytesMax);
    if (text === null) throw new TransportError("the answer is too long");
    return { status: response.status, headers: response.headers, text };
  } catch (error) {
    if (error instanceof TransportError) throw error;
    if (isConnectionFailure(error)) throw new UnreachedError("the connection could not be made", { cause: error });
    throw new TransportError(signal.aborted ? "there was no answer in time" : "the connection failed", {
      cause: error,
    });
  }
}
