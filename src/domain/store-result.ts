import type { Page } from "./page.ts";

/*
 * What comes of asking a store. A refusal is a value: stores know nothing of the answers that their callers make of it.
 */

/** The store did what it was asked. */
export interface Done<T = null> {
  readonly kind: "done";
  readonly value: T;
}

export function done<T>(value: T): Done<T> {
  return { kind: "done", value };
}

/** What operators ask for by name. */
export type Named = "tenant" | "key" | "template" | "alias" | "domain" | "operator" | "credentials";

/** There is nothing of the name. */
export interface Missing<What extends Named = Named> {
  readonly kind: "missing";
  readonly what: What;
}

export function missing<What extends Named>(what: What): Missing<What> {
  return { kind: "missing", what };
}

/** The owner has as much of it as it may have; `why` says so in one sentence. */
export interface Full {
  readonly kind: "full";
  readonly why: string;
}

export function full(most: number, what: string): Full {
  return { kind: "full", why: `A tenant has at most ${most} ${what}: delete one that is not used.` };
}

/** A value cannot be stored; `why` says so in one sentence. */
export interface Invalid {
  readonly kind: "invalid";
  readonly why: string;
}

export function invalid(why: string): Invalid {
  return { kind: "invalid", why };
}

/** The cursor of no page. */
export interface InvalidCursor {
  readonly kind: "invalid_cursor";
}

/** Everything that a tenant has of a kind. */
export type AllOfTenant<T> = Done<readonly T[]> | Missing<"tenant">;

/** One page of what a tenant has of a kind. */
export type PageOfTenant<T> = Done<Page<T>> | Missing<"tenant"> | InvalidCursor;
