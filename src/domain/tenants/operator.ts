export const OPERATOR_ROLES = ["read", "write"] as const;
/** The rights of an operator: read only, or read and write. */
export type OperatorRole = (typeof OPERATOR_ROLES)[number];

/** The caller of the operator API. */
export interface Operator {
  readonly id: string;
  readonly name: string;
  readonly role: OperatorRole;
}

/** The operator whose token is the setting `OPERATOR_TOKEN`. No stored operator has this name. */
export const ROOT: Operator = { id: "root", name: "root", role: "write" };

/** An operator, and the SHA-256 of its token in hex. */
export interface OperatorAccount {
  readonly operator: Operator;
  readonly tokenHash: string;
}

/** The operators who have tokens of their own, from memory. */
export interface OperatorDirectory {
  /**
   * Finds the operator that has this token. Null: none has it, or no longer. At most a second behind the registry.
   * Throws `UnavailableError` if the registry has been away for so long that the copy in memory may be wrong.
   */
  byToken(token: string): OperatorAccount | null;
  /** Finds the operator of a session. Null: no operator has this id, or no longer. */
  byId(id: string): OperatorAccount | null;
}
