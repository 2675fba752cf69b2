import type { NewJob } from "../../domain/queue.ts";

/** Why a send is refused, as the caller reads it. */
export interface Refusal {
  /** 500: the service is not set up for it. */
  readonly status: 400 | 403 | 422 | 500;
  readonly message: string;
  /** What is wrong with inline HTML, all that applies. */
  readonly violations?: readonly { readonly rule: string; readonly message: string }[];
}

/** What comes of a send's body: what its job is made of, or the first reason against it. */
export type Acceptance =
  | { readonly ok: true; readonly job: Pick<NewJob, "recipient" | "payload" | "needsScreening" | "template"> }
  | { readonly ok: false; readonly refusal: Refusal };
