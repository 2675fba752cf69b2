import type { Clock } from "../domain/clock.ts";
import { ApiError } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";
import { BodyRoom, SMALL_BODY_BYTES } from "./body-room.ts";
import type { Exchange } from "./exchange.ts";
import { costOfParsing, NESTING_MAX } from "./json-scan.ts";
import { LargeBodies } from "./large-bodies.ts";
import { SlowBodies } from "./slow-bodies.ts";

export interface JsonBody {
  /** As it came over the wire. */
  readonly bytes: Uint8Array;
  readonly value: unknown;
}

/** Longer bodies are worked on one at a time. */
const LARGE_BYTES = 1024 * 1024;

/**
 * Reads requests' bodies, with a bound on what all of them hold in memory (`BodyRoom`), on how long one may take
 * (`SlowBodies`), and on what parsing them takes from everybody else (`LargeBodies`). A body that nobody asks for is not
 * read: the server holds back its sender until there is an answer, and discards the rest as it arrives, so that the
 * connection goes on.
 */
export class RequestBodies {
  private readonly room: BodyRoom;
  private readonly slow: SlowBodies;
  private readonly large: LargeBodies;

  /** `processes`: how many share the room. */
  constructor(clock: Clock, processes = 1) {
    this.room = new BodyRoom(processes);
    this.slow = new SlowBodies(clock);
    this.large = new LargeBodies(clock);
  }

  /**
   * Throws an `ApiError`: 400 when the body is not `application/json` in valid UTF-8 or costs too much to parse, and as
   * `bytes` does.
   */
  async json(exchange: Exchange): Promise<JsonBody> {
    if (!isJsonType(exchange.request.headers.get("content-type")))
      throw new ApiError(400, "the Content-Type must be application/json");
    const bytes = await this.bytes(exchange);
    if (bytes.length <= LARGE_BYTES) return { bytes, value: parseJson(bytes) };
    return { bytes, value: await this.large.inTurn(() => parseJson(bytes)) };
  }

  /** Does work on a body of so many bytes, where that is large in a turn of its own. */
  inTurn<T>(bytes: number, work: () => T): T | Promise<T> {
    return bytes <= LARGE_BYTES ? work() : this.large.inTurn(work);
  }

  /**
   * A request's body as it is. Throws an `ApiError`: 413 when it is longer than `bytesMax`, 429 or 503 when there is no
   * room for it, 408 when it comes too slowly, 400 when it breaks off.
   */
  async bytes(exchange: Exchange, bytesMax: number = limits.requestBodyBytesMax): Promise<Uint8Array> {
    const { request } = exchange;
    const declared = declaredLength(exchange);
    if (declared !== null && declared > bytesMax) throw tooLarge(bytesMax);
    try {
      // Nothing to share out; and it is a good deal faster than a stream.
      if (declared !== null && declared <= SMALL_BODY_BYTES) return await request.bytes();
      return await this.stream(exchange, declared, bytesMax);
    } catch (error) {
      if (error instanceof ApiError) throw error;
      // The caller went away or broke the transfer coding: nothing that it can still be told.
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
      // What still comes is not kept.
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

/** Whether the body needs room: it is long, or does not say how long it is. */
export function isLargeBody(exchange: Exchange): boolean {
  const declared = declaredLength(exchange);
  return declared === null ? exchange.request.headers.has("transfer-encoding") : declared > SMALL_BODY_BYTES;
}

/** Null: the request does not say how long its body is. The server refuses one that says so and sends it in chunks. */
function declaredLength(exchange: Exchange): number | null {
  if (exchange.declaredBytes === undefined) {
    const length = exchange.request.headers.get("content-length");
    const bytes = length === null ? Number.NaN : Number(length);
    exchange.declaredBytes = Number.isSafeInteger(bytes) && bytes >= 0 ? bytes : null;
  }
  return exchange.declaredBytes;
}

/** In steps, so that a body that grows asks a few times only. */
function roomFor(bytes: number): number {
  const step = SMALL_BODY_BYTES * 4;
  return Math.ceil(bytes / step) * step;
}

/** Of one body: members, elements and containers. */
const VALUES_MAX = 50_000;

/** The JSON value that the bytes are. Throws an `ApiError` 400. */
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
