import { ApiError } from "./api-error.ts";

const MIB = 1024 * 1024;

/** Bodies up to this length are read without reserving memory, so calls of the usual size always fit. */
export const SMALL_BODY_BYTES = 64 * 1024;
/** For all larger bodies being read or processed, across all processes that share an address. */
const ROOM_BYTES = 256 * MIB;
/** Minimum for one process, however many processes there are: a caller's share still fits more than one body. */
const ROOM_BYTES_MIN = 64 * MIB;
const SHARES = 4;
/** One caller's share where a single process takes all requests. */
export const SHARE_BYTES = ROOM_BYTES / SHARES;

/** Error sentences for bodies that do not fit. */
export interface RoomRefusals {
  /** For a tenant whose own bodies fill its share. */
  readonly share: string;
  readonly all: string;
}

const OF_REQUESTS: RoomRefusals = {
  share: "your large requests under way fill your share of the memory for bodies: send fewer at a time",
  all: "the service reads as many large requests as it has memory for: try again",
};

/** The body's sender: a tenant, an operator, or an unauthenticated caller. */
export type Caller = { readonly tenantId: string } | "operator" | "stranger";

/**
 * The memory budget for request bodies, in bytes; or, by the same rules, for answers (`LargeAnswers`).
 *
 * B1. From the moment they are read until their requests are answered, all bodies longer than `SMALL_BODY_BYTES` together
 *     take at most this process's part of `ROOM_BYTES`, and those of one caller (a tenant, all operators, all strangers) at
 *     most a quarter of that. A body counts with its declared length; without one, or compressed, with the array that holds
 *     what has been received or expanded so far, which is at most a quarter longer. A body with very many values also counts
 *     their memory.
 * B2. A body that does not fit is refused before it is read: with 429 if the tenant's own bodies fill its share, otherwise 503.
 */
export class BodyRoom {
  private taken = 0;
  private readonly shares = new Map<string, number>();
  private readonly bytesMax: number;

  constructor(
    processes = 1,
    private readonly said = OF_REQUESTS,
  ) {
    this.bytesMax = Math.max(ROOM_BYTES_MIN, ROOM_BYTES / processes);
  }

  open(caller: Caller): BodyHold {
    return new BodyHold(this, caller);
  }

  /** Throws an `ApiError` 429 or 503. */
  take(caller: Caller, bytes: number): void {
    const key = toKey(caller);
    const share = (this.shares.get(key) ?? 0) + bytes;
    if (share > this.bytesMax / SHARES) throw this.shareFull(caller);
    if (this.taken + bytes > this.bytesMax) {
      throw new ApiError(503, this.said.all, {}, 1);
    }
    this.shares.set(key, share);
    this.taken += bytes;
  }

  give(caller: Caller, bytes: number): void {
    const key = toKey(caller);
    const share = (this.shares.get(key) ?? 0) - bytes;
    if (share > 0) this.shares.set(key, share);
    else this.shares.delete(key);
    this.taken -= bytes;
  }

  private shareFull(caller: Caller): ApiError {
    if (typeof caller !== "string") return new ApiError(429, this.said.share, {}, 1);
    return new ApiError(503, "too many large calls arrive at the moment: try again", {}, 1);
  }
}

/** The memory reserved for one request's body. */
export class BodyHold {
  private bytes = 0;

  constructor(
    private readonly room: BodyRoom,
    private readonly caller: Caller,
  ) {}

  /** Throws an `ApiError` 429 or 503; memory already reserved stays reserved. */
  growTo(bytes: number): void {
    if (bytes <= this.bytes) return;
    this.room.take(this.caller, bytes - this.bytes);
    this.bytes = bytes;
  }

  /** Safe to call twice. */
  release(): void {
    if (this.bytes > 0) this.room.give(this.caller, this.bytes);
    this.bytes = 0;
  }
}

/** One for all operators together, and one for all strangers. */
export function toKey(caller: Caller): string {
  // No tenant slug starts with a slash.
  return typeof caller === "string" ? `/${caller}` : caller.tenantId;
}
