import { remember } from "../remember.ts";

/** Which tries of a message are among its first ones, which a sandbox refuses; after them it counts anew. Bounded. */
export class FirstTries {
  private readonly tries = new Map<string, number>();

  /** `keysMax`: messages that are counted, the latest ones. */
  constructor(private readonly keysMax: number) {}

  /** Counts a try. Whether it is among the first `times`. */
  take(key: string, times: number): boolean {
    const value = (this.tries.get(key) ?? 0) + 1;
    this.tries.delete(key);
    if (value > times) return false;
    remember(this.tries, { key, value, max: this.keysMax });
    return true;
  }
}
