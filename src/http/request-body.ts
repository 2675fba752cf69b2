import type { Clock, Timer } from "../domain/clock.ts";
import { limits } from "../domain/limits.ts";
import { RestedTurns } from "../domain/rested-turns.ts";
import { ApiError, BodyGivenUp } from "./api-error.ts";
import { BodyRoom, type Caller, SMALL_BODY_BYTES, toKey } from "./body-room.ts";
import type { Exchange } from "./exchange.ts";
import { parseJson } from "./parse-json.ts";

export interface JsonBody {
  /** The body as received, expanded if it was compressed. */
  readonly bytes: Uint8Array;
  readonly value: unknown;
}

/** Bounds on a body that differ from the usual ones. */
export interface BodyBounds {
  readonly bytesMax: number;
  /** JSON values: members, elements and containers together; absent: the usual bound. */
  readonly valuesMax?: number;
  /**
   * Whether a body over `limits.requestBodyBytesMax` (undefined: one that could not be parsed) has a reason to be so long;
   * absent: any.
   */
  isAllowed?(value: unknown): boolean;
}

/** Memory of a parsed value beside its text: an array of empty values takes 27 times as much as its text. */
const BYTES_PER_VALUE = 80;

/** How a body is read piece by piece. */
interface Streaming {
  /** Null if the length is not known before the end. */
  readonly declared: number | null;
  readonly bytesMax: number;
  readonly expand?: (pieces: BodyPieces) => ByteReader;
}

/** The part of a stream's reader that is used here. */
interface ByteReader {
  read(): Promise<{ readonly done: true } | { readonly done: false; readonly value: Uint8Array<ArrayBuffer> }>;
  cancel(): Promise<void>;
}

/** Longer bodies are processed one at a time, with callers taking turns. */
const LARGE_BYTES = 1024 * 1024;

/**
 * Reads request bodies, with bounds on the memory they take together (`BodyRoom`), on how long one may take to arrive
 * (`SlowBodies`), on how many pieces it may arrive in (`BodyPieces`), and on how much parsing slows down other work
 * (`LargeBodies`). A body that no handler reads stays in the connection: the server applies backpressure until there is an
 * answer, then discards the rest as it arrives and keeps the connection.
 */
export class RequestBodies {
  private readonly room: BodyRoom;
  private readonly slow: SlowBodies;
  private readonly large: LargeBodies;

  /** `processes`: how many processes share the memory budget. */
  constructor(clock: Clock, processes = 1) {
    this.room = new BodyRoom(processes);
    this.slow = new SlowBodies(clock);
    this.large = new LargeBodies(clock);
  }

  /**
   * Throws an `ApiError`: 400 if the body is not `application/json` in valid UTF-8 or costs too much to parse, otherwise as
   * `decoded` does.
   */
  async json(exchange: Exchange, bounds?: BodyBounds): Promise<JsonBody> {
    requireJsonType(exchange);
    return this.parse(exchange, await this.decoded(exchange, bounds?.bytesMax), bounds);
  }

  /** As `json`; null if there is no body, or an empty one in chunks. */
  async jsonIfAny(exchange: Exchange): Promise<JsonBody | null> {
    const { headers } = exchange.request;
    if (!headers.has("transfer-encoding") && (declaredLength(exchange) ?? 0) === 0) return null;
    const bytes = await this.decoded(exchange);
    if (bytes.length === 0) return null;
    requireJsonType(exchange);
    return this.parse(exchange, bytes);
  }

  private async parse(exchange: Exchange, bytes: Uint8Array, bounds?: BodyBounds): Promise<JsonBody> {
    const makeRoom = (values: number) => {
      const all = bytes.length + values * BYTES_PER_VALUE;
      // A usual call has dozens of values and always fits.
      if (values * BYTES_PER_VALUE > SMALL_BODY_BYTES) this.openHold(exchange).growTo(all);
    };
    const parsed = async () =>
      this.inTurn(exchange.caller, bytes.length, () => parseJson(bytes, bounds?.valuesMax, makeRoom));
    if (bounds?.isAllowed === undefined || bytes.length <= limits.requestBodyBytesMax) {
      return { bytes, value: await parsed() };
    }
    // Whatever is wrong with such a body, it is too large unless it has a reason to be.
    const value = await parsed().catch((error: unknown) => {
      // It can be read another time.
      if (error instanceof ApiError && error.status !== 400) throw error;
    });
    if (!bounds.isAllowed(value)) throw tooLarge(limits.requestBodyBytesMax);
    return { bytes, value };
  }

  /** Throws an `ApiError` 429 or 503 if work of the given size would have to wait behind too much of the caller's. */
  refuseCrowd(caller: Caller, bytes: number): void {
    if (bytes > LARGE_BYTES) this.large.refuseCrowd(caller);
  }

  /** Processes a body of the given size; a large one waits for its caller's turn. */
  inTurn<T>(caller: Caller, bytes: number, work: () => T | Promise<T>): T | Promise<T> {
    return bytes <= LARGE_BYTES ? work() : this.large.inTurn(caller, work);
  }

  /**
   * The raw body: a signature is over these bytes. Throws an `ApiError`: 413 if it is longer than `bytesMax`, 429 or 503 if it
   * does not fit into the memory budget, 408 if it arrives too slowly, 400 if it breaks off or arrives in crumbs.
   */
  async bytes(exchange: Exchange, bytesMax: number = limits.requestBodyBytesMax): Promise<Uint8Array> {
    const { request } = exchange;
    const declared = declaredLength(exchange);
    if (declared !== null && declared > bytesMax) throw tooLarge(bytesMax);
    try {
      if (declared !== null && declared <= SMALL_BODY_BYTES) return await this.small(request, declared);
      return await this.stream(exchange, { declared, bytesMax });
    } catch (error) {
      if (error instanceof ApiError) throw error;
      // The caller disconnected or broke the transfer coding; no answer can reach it.
      throw new ApiError(400, "the body could not be read");
    }
  }

  /** A small body needs no reservation, and this is much faster than a stream. Throws an `ApiError` 408 if it arrives too slowly. */
  private async small(request: Request, declared: number): Promise<Uint8Array> {
    const late = Promise.withResolvers<never>();
    const watch = this.slow.watch(declared, () => late.reject(tooSlow()));
    try {
      return await Promise.race([request.bytes(), late.promise]);
    } finally {
      watch.end();
    }
  }

  /**
   * The body, expanded if it came with `Content-Encoding: gzip`. Throws an `ApiError` as `bytes` does, 413 also if it expands
   * beyond the bound, 400 also if it is no gzip, and 415 if it has another encoding.
   */
  async decoded(exchange: Exchange, bytesMax: number = limits.requestBodyBytesMax): Promise<Uint8Array> {
    const { request } = exchange;
    if (!isGzip(request)) return this.bytes(exchange, bytesMax);
    if ((declaredLength(exchange) ?? 0) > bytesMax) throw tooLarge(bytesMax);
    try {
      return await this.stream(exchange, { declared: null, bytesMax, expand: expanded });
    } catch (error) {
      if (error instanceof ApiError) throw error;
      throw new ApiError(400, "the body is not valid gzip");
    }
  }

  /** All in one array: in pieces, a body would take a hundred bytes for each of them beside its own. */
  private async stream(exchange: Exchange, { declared, bytesMax, expand }: Streaming): Promise<Uint8Array> {
    const hold = this.openHold(exchange);
    if (declared !== null) hold.growTo(declared);
    const { body } = exchange.request;
    if (body === null) return new Uint8Array();
    const pieces = new BodyPieces(body.getReader(), bytesMax);
    const source = expand?.(pieces) ?? pieces;
    const watch = this.slow.watch(declared, () => void source.cancel().catch(() => undefined));
    // Memory takes effect only once it is written to. An array that moves as it grows would leave its old copies behind.
    const buffer = new ArrayBuffer(declared ?? 0, { maxByteLength: declared ?? bytesMax });
    const bytes = new Uint8Array(buffer);
    let length = 0;
    try {
      while (true) {
        const piece = await source.read();
        if (watch.isLate) throw tooSlow();
        if (piece.done) return bytes.subarray(0, length);
        const { value } = piece;
        if (length + value.length > bytesMax) throw tooLarge(bytesMax);
        if (length + value.length > bytes.length) {
          const capacity = capacityFor(length + value.length, bytesMax);
          if (capacity > SMALL_BODY_BYTES) hold.growTo(capacity);
          buffer.resize(capacity);
        }
        bytes.set(value, length);
        length += value.length;
        watch.progressed(value.length);
      }
    } catch (error) {
      // The rest of the body is dropped.
      await source.cancel().catch(() => undefined);
      throw error;
    } finally {
      watch.end();
    }
  }

  /** Released when the request is answered. */
  private openHold(exchange: Exchange) {
    exchange.bodyHold ??= this.room.open(exchange.caller);
    return exchange.bodyHold;
  }
}

/**
 * Whether the body needs reserved memory: it is long, or its length is not declared. A compressed body is judged by its usual
 * ratio.
 */
export function isLargeBody(exchange: Exchange): boolean {
  const declared = declaredLength(exchange);
  const { headers } = exchange.request;
  if (declared === null) return headers.has("transfer-encoding");
  return declared > (headers.has("content-encoding") ? SMALL_BODY_BYTES / USUAL_RATIO : SMALL_BODY_BYTES);
}

/** The usual compression ratio of JSON under gzip. */
const USUAL_RATIO = 8;

/** Throws an `ApiError` 415 if the body has another encoding. */
function isGzip({ headers }: Request): boolean {
  const encoding = headers.get("content-encoding")?.trim().toLowerCase() ?? "";
  if (encoding === "" || encoding === "identity") return false;
  if (encoding === "gzip" || encoding === "x-gzip") return true;
  throw new ApiError(415, "the Content-Encoding of a body must be gzip, or none");
}

/** Null if the request declares no length. The server refuses requests that declare a length and also send chunks. */
function declaredLength(exchange: Exchange): number | null {
  if (exchange.declaredBytes === undefined) {
    const length = exchange.request.headers.get("content-length");
    const bytes = length === null ? Number.NaN : Number(length);
    exchange.declaredBytes = Number.isSafeInteger(bytes) && bytes >= 0 ? bytes : null;
  }
  return exchange.declaredBytes;
}

/** A quarter more at most, so that a growing body reserves memory only a few times. */
function capacityFor(bytes: number, bytesMax: number): number {
  const step = Math.max(1024, 2 ** (Math.floor(Math.log2(bytes)) - 2));
  return Math.min(bytesMax, Math.ceil(bytes / step) * step);
}

/** No two runs of blanks are adjacent, because they could split a long one in as many ways as it has characters. */
const JSON_TYPE = /^application\/json(?:\s*;\s*charset\s*=\s*"?utf-8"?)?\s*(?:;\s*)?$/i;

function requireJsonType({ request: { headers } }: Exchange): void {
  if (!isJsonType(headers.get("content-type")))
    throw new ApiError("wrong_content_type", "the Content-Type must be application/json");
}

function isJsonType(contentType: string | null): boolean {
  return contentType === "application/json" || (contentType !== null && JSON_TYPE.test(contentType));
}

/** Names the usual bound if that is lower: whether a body may be longer is known only once it is read. */
function tooLarge(bytesMax: number): ApiError {
  return new ApiError(413, `the body is larger than ${Math.min(bytesMax, limits.requestBodyBytesMax)} bytes`);
}

function tooSlow(): ApiError {
  return new BodyGivenUp(408, "the body came too slowly: nothing for 10 seconds, or less than 64 kB a second");
}

/** A body may come in so many pieces, however small: each byte of a short one may come by itself. */
const PIECES_FREE = 4096;
/** A longer body may have more pieces at the usual size: those of TCP and of proxies have hundreds of bytes. */
const PIECE_BYTES = 512;
/** Legitimate senders rarely use pieces shorter than this, */
const CRUMB_BYTES = 16;
/** while more than this share of a hostile body's pieces are shorter. */
const CRUMBS_MAX = 0.75;

/**
 * The pieces that a body arrives in. Bun hands over each chunk of the transfer coding by itself, and that takes a microsecond
 * whatever its length: megabytes in chunks of one byte would delay all other callers for seconds.
 *
 * P1. A body that comes in crumbs is refused when they are too many, and its connection is closed, with the rest unread.
 * P2. Any other body in too many pieces is read once per event loop iteration; Bun joins the pieces that arrive meanwhile.
 * P3. No more than `bytesMax` are read, even of a compressed body that expands to zero bytes.
 */
class BodyPieces implements ByteReader {
  private pieces = 0;
  private crumbs = 0;
  private bytes = 0;

  constructor(
    private readonly reader: ByteReader,
    private readonly bytesMax: number,
  ) {}

  /** Throws an `ApiError` 400 or 413. */
  async read(): ReturnType<ByteReader["read"]> {
    if (this.areTooMany()) await new Promise(setImmediate);
    const piece = await this.reader.read();
    if (piece.done) return piece;
    this.pieces += 1;
    this.bytes += piece.value.length;
    if (piece.value.length < CRUMB_BYTES) this.crumbs += 1;
    if (this.bytes > this.bytesMax) throw tooLarge(this.bytesMax);
    if (this.areTooMany() && this.crumbs > CRUMBS_MAX * this.pieces) throw inCrumbs();
    return piece;
  }

  private areTooMany(): boolean {
    return this.pieces > PIECES_FREE + this.bytes / PIECE_BYTES;
  }

  cancel(): Promise<void> {
    return this.reader.cancel();
  }
}

function inCrumbs(): ApiError {
  return new BodyGivenUp(
    400,
    `the body comes in thousands of pieces of less than ${CRUMB_BYTES} bytes: send larger chunks, or a Content-Length`,
  );
}

/** Expands no faster than it is read: a body of any ratio takes no more memory than its bound and the budget allow. */
function expanded(pieces: BodyPieces): ByteReader {
  const compressed = new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      const piece = await pieces.read();
      if (piece.done) controller.close();
      else controller.enqueue(piece.value);
    },
    cancel: () => pieces.cancel(),
  });
  return compressed.pipeThrough(new DecompressionStream("gzip")).getReader();
}

/** A body that makes no progress for this long is given up, */
const BODY_STALL_MS = 10_000;
/** as is one that takes longer than this plus the time its bytes need at the slowest tolerated rate. */
const BODY_BASE_MS = 30_000;
const BODY_BYTES_PER_MS_MIN = 64;
/** How often all bodies are checked, with one timer. */
const LOOK_MS = 500;

/** One body being received. */
interface BodyWatch {
  /** Whether it was given up. */
  readonly isLate: boolean;
  /** This many more bytes have arrived. */
  progressed(bytes: number): void;
  /** The body has arrived, or is no longer wanted. */
  end(): void;
}

interface Watched {
  readonly startedMs: number;
  /** Null if no length is declared; then the bytes received so far count. */
  readonly declared: number | null;
  received: number;
  progressedMs: number;
  isLate: boolean;
  giveUp(): void;
}

/** Gives up on bodies that arrive too slowly, so no caller can occupy memory without sending. */
class SlowBodies {
  private readonly watched = new Set<Watched>();
  private timer: Timer | null = null;

  constructor(private readonly clock: Clock) {}

  /** `giveUp` is called once, when the body is late. */
  watch(declared: number | null, giveUp: () => void): BodyWatch {
    const nowMs = this.clock.monotonicMs();
    const body: Watched = { startedMs: nowMs, declared, received: 0, progressedMs: nowMs, isLate: false, giveUp };
    this.watched.add(body);
    this.timer ??= this.clock.setTimer(LOOK_MS, () => this.look());
    return {
      get isLate() {
        return body.isLate;
      },
      progressed: (bytes) => {
        body.received += bytes;
        body.progressedMs = this.clock.monotonicMs();
      },
      end: () => this.watched.delete(body),
    };
  }

  private look(): void {
    const nowMs = this.clock.monotonicMs();
    for (const body of this.watched) {
      if (!isLate(body, nowMs)) continue;
      this.watched.delete(body);
      body.isLate = true;
      body.giveUp();
    }
    this.timer = this.watched.size === 0 ? null : this.clock.setTimer(LOOK_MS, () => this.look());
  }
}

function isLate({ startedMs, progressedMs, declared, received }: Watched, nowMs: number): boolean {
  if (nowMs - progressedMs > BODY_STALL_MS) return true;
  return nowMs - startedMs > BODY_BASE_MS + (declared ?? received) / BODY_BYTES_PER_MS_MIN;
}

/** Pieces of one caller. More than its share of body memory allows: only work without a body can reach it. */
const WAITING_MAX = 100;

/**
 * Runs the work on large bodies (parsing, validation, serializing) one piece at a time, each in its own iteration of the event
 * loop. Together they take at most a quarter of the process, and a small request waits for at most one piece.
 *
 * Each caller (a tenant, all operators, all strangers) has its own queue, and the queues take turns: however much one caller
 * sends, another's work waits for at most two of its pieces. `BodyRoom` bounds the bodies that wait.
 */
export class LargeBodies {
  private readonly turns: RestedTurns;

  constructor(clock: Clock) {
    this.turns = new RestedTurns(clock);
  }

  /**
   * Throws an `ApiError` 429 or 503 if the caller has too much work waiting. For work that has no other bound, before it
   * begins: half a request cannot be undone.
   */
  refuseCrowd(caller: Caller): void {
    if (this.turns.waiting(toKey(caller)) >= WAITING_MAX) throw tooMuchWaits(caller);
  }

  /** Runs the work when its turn comes. */
  inTurn<T>(caller: Caller, work: () => T | Promise<T>): Promise<T> {
    return this.turns.inTurn(toKey(caller), work);
  }
}

function tooMuchWaits(caller: Caller): ApiError {
  const isTenant = typeof caller !== "string";
  return new ApiError(isTenant ? 429 : 503, "too many large requests of yours wait: send fewer at a time", {}, 1);
}
