import { remember } from "../remember.ts";

/**
 * Determines whether a try of a message is among the first ones, which a sandbox refuses; after them the count starts
 * again. Bounded.
 */
export class FirstTries {
  private readonly tries = new Map<string, number>();

  /** `keysMax`: messages that are counted, the latest ones. */
  constructor(private readonly keysMax: number) {}

  /** Counts a try. Returns whether it is among the first `times`. */
  take(key: string, times: number): boolean {
    const value = (this.tries.get(key) ?? 0) + 1;
    this.tries.delete(key);
    if (value > times) return false;
    remember(this.tries, { key, value, max: this.keysMax });
    return true;
  }
}
