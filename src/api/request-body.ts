import { ApiError } from "../core/errors.ts";
import { limits } from "../core/limits.ts";

export interface JsonBody {
  /** As it came over the wire. */
  readonly bytes: Uint8Array;
  readonly value: unknown;
}

/**
 * Reads a request's JSON body. Throws an `ApiError`: 400 when it is not `application/json` in valid UTF-8, 413 when it
 * is longer than `limits.requestBodyBytesMax`. What is not read is discarded by the server as it arrives, so that the
 * connection goes on after the answer.
 */
export async function readJson(request: Request): Promise<JsonBody> {
  if (!isJsonType(request.headers.get("content-type")))
    throw new ApiError(400, "the Content-Type must be application/json");
  const bytes = await readBytes(request);
  return { bytes, value: parseJson(bytes) };
}

/** The JSON value that the bytes are. Throws an `ApiError` 400. */
export function parseJson(bytes: Uint8Array): unknown {
  if (isNestedTooDeeply(bytes)) throw new ApiError(400, `the body is nested deeper than ${NESTING_MAX} levels`);
  try {
    return JSON.parse(UTF8.decode(bytes));
  } catch (error) {
    if (error instanceof TypeError) throw new ApiError(400, "the body is not valid UTF-8");
    if (error instanceof SyntaxError) throw new ApiError(400, "the body is not valid JSON");
    throw error;
  }
}

const UTF8 = new TextDecoder("utf-8", { fatal: true });
const NESTING_MAX = 100;
const [QUOTE, BACKSLASH, BRACKET, BRACE, BRACKET_END, BRACE_END] = [0x22, 0x5c, 0x5b, 0x7b, 0x5d, 0x7d];

/**
 * Looked for before the parser sees the body: a parsed value of a million levels holds the whole process for seconds,
 * first when it is read and again when something tries to write it.
 */
function isNestedTooDeeply(bytes: Uint8Array): boolean {
  let depth = 0;
  let inString = false;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (inString) {
      if (byte === BACKSLASH) at++;
      else if (byte === QUOTE) inString = false;
    } else if (byte === QUOTE) inString = true;
    else if (byte === BRACKET || byte === BRACE) {
      if (++depth > NESTING_MAX) return true;
    } else if (byte === BRACKET_END || byte === BRACE_END) depth--;
  }
  return false;
}

const JSON_TYPE = /^application\/json\s*(?:;\s*charset\s*=\s*"?utf-8"?\s*)?;?\s*$/i;

function isJsonType(contentType: string | null): boolean {
  return contentType === "application/json" || (contentType !== null && JSON_TYPE.test(contentType));
}

/** A request's body as it is. Throws an `ApiError`: 400 when it breaks off, 413 when it is longer than `bytesMax`. */
export async function readBytes(request: Request, bytesMax: number = limits.requestBodyBytesMax): Promise<Uint8Array> {
  const { headers } = request;
  const length = headers.get("content-length");
  if (length !== null && Number(length) > bytesMax) throw tooLarge(bytesMax);
  try {
    if (length !== null && !headers.has("transfer-encoding")) return await request.bytes();
    // Looked at only here: it makes a stream of the body.
    return request.body === null ? new Uint8Array() : await readStream(request.body, bytesMax);
  } catch (error) {
    if (error instanceof ApiError) throw error;
    // The caller went away or broke the transfer coding: nothing that it can still be told.
    throw new ApiError(400, "the body could not be read");
  }
}

/** A body without a declared length: read up to the limit, the rest is not kept. */
async function readStream(body: ReadableStream<Uint8Array>, bytesMax: number): Promise<Uint8Array> {
  const reader = body.getReader();
  const chunks: Uint8Array[] = [];
  let length = 0;
  while (true) {
    const chunk = await reader.read();
    if (chunk.done) return Buffer.concat(chunks, length);
    length += chunk.value.length;
    if (length > bytesMax) {
      await reader.cancel();
      throw tooLarge(bytesMax);
    }
    chunks.push(chunk.value);
  }
}

function tooLarge(bytesMax: number): ApiError {
  return new ApiError(413, `the body is larger than ${bytesMax} bytes`);
}
