import { BodyRoom, type Caller, type RoomRefusals } from "./body-room.ts";

/** Shorter answers are left to the runtime, which buffers them until they are read. */
export const LARGE_ANSWER_LENGTH = 256 * 1024;
const PIECE_BYTES = 256 * 1024;

const SAID: RoomRefusals = {
  share: "your large answers under way fill your share of the memory for them: read them first",
  all: "the service has as many large answers under way as it has memory for: try again",
};

/** The large body of an answer that is made for one request alone. */
export interface LargeAnswer {
  readonly body: string | Uint8Array;
  /** The caller charged for the memory. */
  readonly caller: Caller;
}

/**
 * Answers so large that a caller who does not read them could fill the memory.
 *
 * L1. From the moment it is made until it has been read, or its connection is gone, each counts with its length against a
 *     budget like `BodyRoom`'s. An answer that does not fit is refused: with 429 if the tenant's own answers fill its share,
 *     otherwise 503.
 * L2. It is sent in pieces, each after the caller has read the previous one.
 */
export class LargeAnswers {
  private readonly room: BodyRoom;

  constructor(processes = 1) {
    this.room = new BodyRoom(processes, SAID);
  }

  /** Returns the answer, to be sent to this request only. Throws an `ApiError` 429 or 503. */
  send(request: Request, { body, caller }: LargeAnswer, { status, headers }: Response): Response {
    const bytes = typeof body === "string" ? Buffer.from(body, "utf8") : body;
    const hold = this.room.open(caller);
    hold.growTo(bytes.length);
    const end = () => hold.release();
    request.signal.addEventListener("abort", end, { once: true });
    if (request.signal.aborted) end();
    return new Response(inPieces(bytes, end), { status, headers });
  }
}

function inPieces(bytes: Uint8Array, onEnd: () => void): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        controller.enqueue(bytes.subarray(at, at + PIECE_BYTES));
        at += PIECE_BYTES;
        if (at < bytes.length) return;
        controller.close();
        onEnd();
      },
      cancel: onEnd,
    },
    { highWaterMark: 0 },
  );
}
