import type { NewJob } from "../../domain/queue.ts";

/** Why a send is refused, in words for the caller. */
export interface Refusal {
  /** 500: the service is not configured for it. */
  readonly status: 400 | 403 | 422 | 500;
  readonly message: string;
  /** Everything that is wrong with inline HTML. */
  readonly violations?: readonly { readonly rule: string; readonly message: string }[];
}

/** The outcome of validating a send's body: the parts of its job, or the first reason to refuse it. */
export type Acceptance =
  | { readonly ok: true; readonly job: Pick<NewJob, "recipient" | "payload" | "needsScreening" | "template"> }
  | { readonly ok: false; readonly refusal: Refusal };
