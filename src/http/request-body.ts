import type { Clock } from "../domain/clock.ts";
import { ApiError } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";
import { BodyRoom, SMALL_BODY_BYTES } from "./body-room.ts";
import type { Exchange } from "./exchange.ts";
import { costOfParsing, NESTING_MAX } from "./json-scan.ts";
import { LargeBodies } from "./large-bodies.ts";
import { SlowBodies } from "./slow-bodies.ts";

export interface JsonBody {
  /** As received. */
  readonly bytes: Uint8Array;
  readonly value: unknown;
}

/** Longer bodies are processed one at a time. */
const LARGE_BYTES = 1024 * 1024;

/**
 * Reads request bodies, with bounds on the memory they take together (`BodyRoom`), on how long one may take to arrive
 * (`SlowBodies`), and on how much parsing slows down other work (`LargeBodies`). A body that no handler asks for is not read:
 * the server applies backpressure until there is an answer, then discards the rest as it arrives and keeps the connection.
 */
export class RequestBodies {
  private readonly room: BodyRoom;
  private readonly slow: SlowBodies;
  private readonly large: LargeBodies;

  /** `processes`: how many processes share the room. */
  constructor(clock: Clock, processes = 1) {
    this.room = new BodyRoom(processes);
    this.slow = new SlowBodies(clock);
    this.large = new LargeBodies(clock);
  }

  /**
   * Throws an `ApiError`: 400 if the body is not `application/json` in valid UTF-8 or costs too much to parse, otherwise as
   * `bytes` does.
   */
  async json(exchange: Exchange): Promise<JsonBody> {
    if (!isJsonType(exchange.request.headers.get("content-type")))
      throw new ApiError(400, "the Content-Type must be application/json");
    const bytes = await this.bytes(exchange);
    if (bytes.length <= LARGE_BYTES) return { bytes, value: parseJson(bytes) };
    return { bytes, value: await this.large.inTurn(() => parseJson(bytes)) };
  }

  /** Processes a body of the given size; a large one waits for its own turn. */
  inTurn<T>(bytes: number, work: () => T): T | Promise<T> {
    return bytes <= LARGE_BYTES ? work() : this.large.inTurn(work);
  }

  /**
   * The raw body. Throws an `ApiError`: 413 if it is longer than `bytesMax`, 429 or 503 if there is no room for it, 408 if it
   * arrives too slowly, 400 if it breaks off.
   */
  async bytes(exchange: Exchange, bytesMax: number = limits.requestBodyBytesMax): Promise<Uint8Array> {
    const { request } = exchange;
    const declared = declaredLength(exchange);
    if (declared !== null && declared > bytesMax) throw tooLarge(bytesMax);
    try {
      // A small body needs no reservation, and this is much faster than a stream.
      if (declared !== null && declared <= SMALL_BODY_BYTES) return await request.bytes();
      return await this.stream(exchange, declared, bytesMax);
    } catch (error) {
      if (error instanceof ApiError) throw error;
      // The caller disconnected or broke the transfer coding; no answer can reach it.
      throw new ApiError(400, "the body could not be read");
    }
  }

  private async stream(exchange: Exchange, declared: number | null, bytesMax: number): Promise<Uint8Array> {
    const hold = this.holdOf(exchange);
    if (declared !== null) hold.growTo(declared);
    const { body } = exchange.request;
    if (body === null) return new Uint8Array();
    const reader = body.getReader();
    const watch = this.slow.watch(declared, () => void reader.cancel().catch(() => undefined));
    const chunks: Uint8Array[] = [];
    let length = 0;
    try {
      while (true) {
        const chunk = await reader.read();
        if (watch.isLate) throw tooSlow();
        if (chunk.done) return Buffer.concat(chunks, length);
        length += chunk.value.length;
        if (length > bytesMax) throw tooLarge(bytesMax);
        if (declared === null && length > SMALL_BODY_BYTES) hold.growTo(roomFor(length));
        watch.progressed(chunk.value.length);
        chunks.push(chunk.value);
      }
    } catch (error) {
      // The rest of the body is dropped.
      await reader.cancel().catch(() => undefined);
      throw error;
    } finally {
      watch.end();
    }
  }

  /** Released when the request is answered. */
  private holdOf(exchange: Exchange) {
    exchange.bodyHold ??= this.room.open(exchange.caller);
    return exchange.bodyHold;
  }
}

/** Whether the body needs reserved room: it is long, or its length is not declared. */
export function isLargeBody(exchange: Exchange): boolean {
  const declared = declaredLength(exchange);
  return declared === null ? exchange.request.headers.has("transfer-encoding") : declared > SMALL_BODY_BYTES;
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

/** Rounds up to a few steps, so a growing body asks for room only a few times. */
function roomFor(bytes: number): number {
  const step = SMALL_BODY_BYTES * 4;
  return Math.ceil(bytes / step) * step;
}

/** Per body: members, elements and containers together. */
const VALUES_MAX = 50_000;

/** Parses the bytes as JSON. Throws an `ApiError` 400. */
export function parseJson(bytes: Uint8Array, valuesMax: number = VALUES_MAX): unknown {
  const cost = costOfParsing(bytes, valuesMax);
  if (cost === "nesting") throw new ApiError(400, `the body is nested deeper than ${NESTING_MAX} levels`);
  if (cost === "values") throw new ApiError(400, `the body holds more than ${valuesMax} values`);
  try {
    return JSON.parse(UTF8.decode(bytes));
  } catch (error) {
    if (error instanceof TypeError) throw new ApiError(400, "the body is not valid UTF-8");
    if (error instanceof SyntaxError) throw new ApiError(400, "the body is not valid JSON");
    throw error;
  }
}

const UTF8 = new TextDecoder("utf-8", { fatal: true });
const JSON_TYPE = /^application\/json\s*(?:;\s*charset\s*=\s*"?utf-8"?\s*)?;?\s*$/i;

function isJsonType(contentType: string | null): boolean {
  return contentType === "application/json" || (contentType !== null && JSON_TYPE.test(contentType));
}

function tooLarge(bytesMax: number): ApiError {
  return new ApiError(413, `the body is larger than ${bytesMax} bytes`);
}

function tooSlow(): ApiError {
  return new ApiError(408, "the body came too slowly: nothing for 10 seconds, or less than 64 kB a second");
}
