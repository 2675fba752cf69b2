/** One of the chat provider's accounts has this sending number. */
export interface NumberOfAccount {
  readonly accountId: string;
  /** The provider's id of the number. */
  readonly phoneNumberId: string;
  /** Digits of the number itself; null: not known. */
  readonly displayNumber: string | null;
}

/**
 * Which of the chat provider's accounts has which sending number: calls about accounts and templates name the account alone.
 * Rejects with `TransportError` (effect unknown, safe to repeat) or `UnavailableError`.
 */
export interface SenderAccounts {
  /** Resolves when it is on disk. */
  note(numbers: readonly NumberOfAccount[]): Promise<void>;
  /** The ids of the account's known numbers; where the number itself is given and known, its id alone. */
  findNumbers(accountId: string, displayNumber: string | null): Promise<readonly string[]>;
}
