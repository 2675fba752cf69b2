import { within } from "../domain/clock.ts";
import { systemClock } from "./system-clock.ts";

/**
 * Limits the wait of a command. Rejects when `ask` does, or when it has not answered in that time; a later answer is
 * dropped.
 */
export function answeredWithin<T>(ms: number, ask: () => Promise<T>): Promise<T> {
  const late = () => {
    throw new Error(`no answer within ${ms / 1000} s`);
  };
  return within({ clock: systemClock, ms, late }, ask);
}
