/** Links a sending number to one of the chat provider's accounts. */
export interface NumberOfAccount {
  readonly accountId: string;
  /** The provider's id of the number. */
  readonly phoneNumberId: string;
  /** Digits of the number itself; null: not known. */
  readonly displayNumber: string | null;
}

/**
 * Maps the chat provider's accounts to their sending numbers: calls about accounts and templates name only the account.
 * Rejects with `TransportError` (effect unknown, safe to repeat) or `UnavailableError`.
 */
export interface SenderAccounts {
  /** Resolves when it is on disk. */
  note(numbers: readonly NumberOfAccount[]): Promise<void>;
  /** Returns the ids of the account's known numbers, or only the matching id if `displayNumber` is known. */
  findNumbers(accountId: string, displayNumber: string | null): Promise<readonly string[]>;
}
