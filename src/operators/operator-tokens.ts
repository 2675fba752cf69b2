import { UnavailableError } from "../domain/errors.ts";
import type { Operator, OperatorDirectory } from "../domain/operator.ts";
import { isOperatorToken, operatorTokenHash, type StoredOperator } from "./operator-repository.ts";

export interface OperatorTokensOptions {
  read(): Promise<readonly StoredOperator[]>;
  /** Whether the registry has answered lately enough for what is in memory to be used. */
  isTrusted(): boolean;
  /** An operator's token was used. */
  onUse(operatorId: string): void;
}

/**
 * The operators' tokens in memory, by their hashes: how long a look-up takes tells nothing about a token.
 *
 * Invariants:
 * O1. What is in force was read after every change that this process answered, and after every change that a poll of the
 *     registry found.
 * O2. After a change that could not be read, no token is accepted until a reading succeeds.
 */
export class OperatorTokens implements OperatorDirectory {
  private byHash: ReadonlyMap<string, Operator> | null = null;
  private asked = 0;
  /** The latest reading that is in force. */
  private inForce = 0;
  private mending: Promise<void> | null = null;

  constructor(private readonly options: OperatorTokensOptions) {}

  byToken(token: string): Operator | null {
    if (!isOperatorToken(token)) return null;
    if (this.byHash === null || !this.options.isTrusted()) {
      this.mending ??= this.takeChange().finally(() => (this.mending = null));
      throw new UnavailableError("the operators' tokens cannot be read");
    }
    const operator = this.byHash.get(operatorTokenHash(token)) ?? null;
    if (operator !== null) this.options.onUse(operator.id);
    return operator;
  }

  /** Puts the tokens as they are now into force. Rejects if they cannot be read. */
  async refresh(): Promise<void> {
    const asked = (this.asked += 1);
    const all = await this.options.read();
    // A reading that began later, and so has seen more, is already in force.
    if (asked < this.inForce) return;
    this.inForce = asked;
    this.byHash = new Map(all.map(({ hash, id, name, role }) => [hash, { id, name, role }]));
  }

  /** Puts a change into force. Never rejects: if it cannot be read, nothing is in force (O2). */
  async takeChange(): Promise<void> {
    const asked = this.asked + 1;
    try {
      await this.refresh();
    } catch {
      if (asked > this.inForce) this.byHash = null;
    }
  }
}
