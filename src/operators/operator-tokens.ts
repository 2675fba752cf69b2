import { UnavailableError } from "../domain/errors.ts";
import type { OperatorAccount, OperatorDirectory } from "../domain/tenants/operator.ts";
import { isOperatorToken, operatorTokenHash, type StoredOperator } from "./operator-repository.ts";

export interface OperatorTokensOptions {
  read(): Promise<readonly StoredOperator[]>;
  /** Whether the registry has answered recently enough for the operators in memory to be used. */
  isTrusted(): boolean;
  /** An operator's token was used. */
  onUse(operatorId: string): void;
}

interface Known {
  readonly byHash: ReadonlyMap<string, OperatorAccount>;
  readonly byId: ReadonlyMap<string, OperatorAccount>;
}

/**
 * The operators in memory. Tokens are known by their hashes: the duration of a lookup reveals no part of a token.
 *
 * Invariants:
 * O1. The operators in force were read after every change that this process answered, and after every change that a poll of
 *     the registry found.
 * O2. After a change that could not be read, no token is accepted until a reading succeeds.
 */
export class OperatorTokens implements OperatorDirectory {
  private known: Known | null = null;
  private asked = 0;
  /** The latest reading that is in force. */
  private inForce = 0;
  private mending: Promise<void> | null = null;

  constructor(private readonly options: OperatorTokensOptions) {}

  byToken(token: string): OperatorAccount | null {
    if (!isOperatorToken(token)) return null;
    return this.used(this.inMemory().byHash.get(operatorTokenHash(token)));
  }

  byId(id: string): OperatorAccount | null {
    return this.used(this.inMemory().byId.get(id));
  }

  /** Puts the current tokens into force. Rejects if they cannot be read. */
  async refresh(): Promise<void> {
    const asked = (this.asked += 1);
    const all = await this.options.read();
    // A reading that began later, and so has seen more, is already in force.
    if (asked < this.inForce) return;
    this.inForce = asked;
    const accounts = all.map(({ hash, id, name, role }) => ({ operator: { id, name, role }, tokenHash: hash }));
    this.known = {
      byHash: new Map(accounts.map((account) => [account.tokenHash, account])),
      byId: new Map(accounts.map((account) => [account.operator.id, account])),
    };
  }

  /** Puts a change into force. Never rejects: if it cannot be read, no token is in force (O2). */
  async takeChange(): Promise<void> {
    const asked = this.asked + 1;
    try {
      await this.refresh();
    } catch {
      if (asked > this.inForce) this.known = null;
    }
  }

  private inMemory(): Known {
    if (this.known !== null && this.options.isTrusted()) return this.known;
    this.mending ??= this.takeChange().finally(() => (this.mending = null));
    throw new UnavailableError("the operators' tokens cannot be read");
  }

  private used(account: OperatorAccount | undefined): OperatorAccount | null {
    if (account === undefined) return null;
    this.options.onUse(account.operator.id);
    return account;
  }
}
