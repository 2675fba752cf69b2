import type { Json } from "../domain/texts/json.ts";
import { ERROR_CODES, type ErrorCode, type RefusalStatus, type Refused } from "./error-codes.ts";

/** A caller's mistake or a refusal, with the text for the caller. */
export class ApiError extends Error implements Refused {
  override readonly name = "ApiError";
  readonly status: RefusalStatus;
  /** Undefined: derived from the status and from whether a member is at fault. */
  readonly code: ErrorCode | undefined;
  readonly param: string | undefined;

  constructor(
    /** A plain status suffices if programs cannot act on a more specific code. */
    is: RefusalStatus | ErrorCode | Pick<Refused, "status" | "code" | "param">,
    message: string,
    /** Further members of the error body, for example `violations`. */
    readonly members: Readonly<Record<string, Json>> = {},
    /** When to try again; null: not specified, or as the rate window says. */
    readonly retryAfterSeconds: number | null = null,
  ) {
    super(message);
    const { status, code, param } = typeof is === "object" ? is : refusedFor(is);
    this.status = status;
    this.code = code;
    this.param = param;
  }
}

/** The status that goes with a code. */
export function refusedFor(is: RefusalStatus | ErrorCode): Pick<Refused, "status" | "code" | "param"> {
  return typeof is === "number" ? { status: is } : { status: ERROR_CODES[is].status, code: is };
}

/** Marks a refusal as caused by a member or a parameter that its sentence does not begin with. */
export function about(param: string, code: ErrorCode = "invalid_member"): Pick<Refused, "status" | "code" | "param"> {
  return { status: ERROR_CODES[code].status, code, param };
}

/** A refusal of a body that its caller still sends. The rest is not read: the connection closes with the answer. */
export class BodyGivenUp extends ApiError {}
