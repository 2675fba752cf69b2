import { type Answer, type CallOptions, Calls, type Input, WaybillError } from "../../../clients/typescript/calls.ts";
import type { Operations } from "../../../clients/typescript/generated.ts";

/*
 * How the pages call the API: with the client that everybody gets, and the session's cookie in place of a token.
 */

/** Tells the server that this page makes the call, and not one of another site (which cannot set it). */
const OWN_PAGE = { "x-waybill-dashboard": "1" };
const TIMEOUT_MS = 60_000;

const calls = new Calls(
  { url: location.origin, fetch: (url, init) => fetch(url, init), retries: 1, timeoutMs: TIMEOUT_MS },
  OWN_PAGE,
);

/** What every page knows of who looks at it. */
export interface Session {
  readonly name: string;
  readonly role: "read" | "write";
}

let onSignedOut: () => void = () => undefined;

/** `listener` is called when a call finds that the session is over. */
export function whenSignedOut(listener: () => void): void {
  onSignedOut = listener;
}

/** Calls an operation. Rejects with a `WaybillError`, or with the signal's reason. */
export async function call<N extends keyof Operations>(
  name: N,
  input: Input<N>,
  options?: CallOptions,
): Promise<Answer<N>> {
  try {
    return await calls.call(name, input, options);
  } catch (error) {
    if (error instanceof WaybillError && error.status === 401 && name !== "signIn") onSignedOut();
    throw error;
  }
}

/** Where a browser downloads something of the API. */
export function downloadPath(path: string, query: Readonly<Record<string, string>>): string {
  return `${path}?${new URLSearchParams(query)}`;
}

/** What went wrong, for people. */
export interface Problem {
  readonly text: string;
  readonly status: number | null;
  /** Names the request in the service's log; null: it never got there. */
  readonly requestId: string | null;
}

export function toProblem(error: unknown): Problem {
  if (!(error instanceof WaybillError)) return { text: String(error), status: null, requestId: null };
  const { message, status, requestId, code } = error;
  const text = code === "no_answer" || code === "timeout" ? "Waybill does not answer." : message;
  return { text, status, requestId };
}
