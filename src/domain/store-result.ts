import type { Page } from "./page.ts";

/*
 * The result of a store's operation. A refusal is a value, which callers translate into their own answers.
 */

/** The store completed the operation. */
export interface Done<T = null> {
  readonly kind: "done";
  readonly value: T;
}

export function done<T>(value: T): Done<T> {
  return { kind: "done", value };
}

/** The kinds of things that operators refer to by name. */
export type Named = "tenant" | "key" | "template" | "alias" | "domain" | "operator" | "credentials" | "webhook";

/** No such thing exists under the name. */
export interface Missing<What extends Named = Named> {
  readonly kind: "missing";
  readonly what: What;
}

export function missing<What extends Named>(what: What): Missing<What> {
  return { kind: "missing", what };
}

/** The owner has reached its limit; `why` says so in one sentence. */
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

/** The cursor does not belong to any page. */
export interface InvalidCursor {
  readonly kind: "invalid_cursor";
}

/** All of a tenant's items of one kind. */
export type AllOfTenant<T> = Done<readonly T[]> | Missing<"tenant">;

/** One page of a tenant's items of one kind. */
export type PageOfTenant<T> = Done<Page<T>> | Missing<"tenant"> | InvalidCursor;
