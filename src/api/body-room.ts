import { ApiError } from "../core/errors.ts";
import { limits } from "../core/limits.ts";
import { readBytes } from "./request-body.ts";

/**
 * Room for the bodies of callers who have not shown yet who they are: theirs have to be in memory before they can.
 *
 * B1. Bodies longer than `unprovenSmallBytesMax` are being read only while all of them together, by the lengths that they
 *     declare, fit into `unprovenBytesMax`; more are refused before they are read (503). B2. Shorter ones are always read:
 *     nobody who fills the room keeps out the calls that are usual.
 */
export class BodyRoom {
  private taken = 0;

  /** Throws an `ApiError`: 503, and as `readBytes` does. */
  async read(request: Request, bytesMax: number): Promise<Uint8Array> {
    const bytes = Math.min(declaredLength(request) ?? bytesMax, bytesMax);
    if (bytes <= limits.unprovenSmallBytesMax) return readBytes(request, bytesMax);
    if (this.taken + bytes > limits.unprovenBytesMax) {
      throw new ApiError(503, "too many large calls arrive at the moment: try again");
    }
    this.taken += bytes;
    try {
      return await readBytes(request, bytesMax);
    } finally {
      this.taken -= bytes;
    }
  }
}

/** Null: the request does not say how long its body is. */
function declaredLength({ headers }: Request): number | null {
  if (headers.has("transfer-encoding")) return null;
  const length = Number(headers.get("content-length") ?? Number.NaN);
  return Number.isSafeInteger(length) && length >= 0 ? length : null;
}
