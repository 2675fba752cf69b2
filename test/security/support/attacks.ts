import { afterAll, expect } from "bun:test";

/** Returns how the attack got through, or null if it was refused. */
export type Attempt<T> = (attack: T) => Promise<string | null> | string | null;

/**
 * Counts the attacks of a test file. At its end the file prints one line, `attacks: …`, which the runner of all tests
 * adds up.
 */
export class Attacks {
  private tried = 0;
  private through = 0;

  constructor(subject: string) {
    afterAll(() => {
      // oxlint-disable-next-line no-console -- the figure is part of what the file is for
      console.log(`attacks: ${this.tried} tried, ${this.through} got through (${subject})`);
    });
  }

  /** Tries all attacks, one after the other, and fails with the names of those that got through. */
  async run<T>(table: Iterable<T>, nameOf: (attack: T) => string, attempt: Attempt<T>): Promise<void> {
    const through: string[] = [];
    for (const attack of table) {
      this.tried += 1;
      const how = await attempt(attack);
      if (how !== null) through.push(`${nameOf(attack)}: ${how}`);
    }
    this.through += through.length;
    expect(through).toEqual([]);
  }

  /** The same for attacks that serve as their own names. */
  runEach(table: Iterable<string>, attempt: Attempt<string>): Promise<void> {
    return this.run(table, shown, attempt);
  }
}

/** A text in printable form, whatever its characters. */
export function shown(text: string): string {
  const quoted = JSON.stringify(text);
  return quoted.length <= SHOWN_CHARS_MAX ? quoted : `${quoted.slice(0, SHOWN_CHARS_MAX)}…`;
}

const SHOWN_CHARS_MAX = 120;
