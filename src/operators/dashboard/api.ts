import { type Answer, type CallOptions, Calls, type Input, WaybillError } from "../../../clients/typescript/calls.ts";
import type { Operations } from "../../../clients/typescript/generated.ts";

/*
 * The pages' calls of the API: with the public client, and the session's cookie in place of a token.
 */

/** Proves to the server that this page makes the call: another site cannot set the header. */
const OWN_PAGE = { "x-waybill-dashboard": "1" };
const TIMEOUT_MS = 60_000;

const calls = new Calls(
  { url: location.origin, fetch: (url, init) => fetch(url, init), retries: 1, timeoutMs: TIMEOUT_MS },
  OWN_PAGE,
);

/** The signed-in operator and its session, shared by all pages. */
export interface Session {
  readonly name: string;
  readonly role: "read" | "write";
}

let onSignedOut: () => void = () => undefined;

/** Registers a listener that is called when a call fails because the session has expired. */
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

/** Returns the address of a download from the API. */
export function downloadPath(path: string, query: Readonly<Record<string, string>>): string {
  return `${path}?${new URLSearchParams(query)}`;
}

/** An error in words for people. */
export interface Problem {
  readonly text: string;
  readonly status: number | null;
  /** Identifies the request in the service's log; null: it did not reach the service. */
  readonly requestId: string | null;
}

export function toProblem(error: unknown): Problem {
  if (!(error instanceof WaybillError)) return { text: String(error), status: null, requestId: null };
  const { message, status, requestId, code } = error;
  const text = code === "no_answer" || code === "timeout" ? "Waybill does not answer." : message;
  return { text, status, requestId };
}
