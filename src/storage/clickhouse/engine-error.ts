/** An error as ClickHouse reports it. Codes and names: ClickHouse, src/Common/ErrorCodes.cpp. */
export class EngineError extends Error {
  override readonly name = "EngineError";

  constructor(
    readonly code: number,
    /** For example `SYNTAX_ERROR`. */
    readonly type: string,
    readonly reason: string,
  ) {
    super(`Code: ${code}. DB::Exception: ${reason} (${type})`);
  }

  /** Parses the driver's error, whose text comes from the engine. */
  static from(cause: unknown): EngineError {
    if (cause instanceof EngineError) return cause;
    const text = cause instanceof Error ? cause.message : String(cause);
    const [, code, reason, type] = /Code: (\d+)\. DB::Exception: ([^]*) \(([A-Z0-9_]+)\)/.exec(text) ?? [];
    if (code === undefined || reason === undefined || type === undefined)
      return new EngineError(1002, "UNKNOWN_EXCEPTION", "the engine failed without saying why");
    return new EngineError(Number(code), type, repeated(reason));
  }

  /** Returns the status with which a server answers (ClickHouse, src/Server/HTTP/exceptionCodeToHTTPStatus.cpp). */
  get status(): number {
    return STATUSES.find(([, codes]) => codes.has(this.code))?.[0] ?? 500;
  }
}

/** Removes repeats from the text of an error that passed several layers, each of which added its code and version. */
function repeated(reason: string): string {
  return reason.replace(/^(Code: \d+\. DB::Exception: )+/, "").replace(/( \([A-Z0-9_]+\) \(version [^)]*\)\.?)+$/, "");
}

const STATUSES: readonly (readonly [number, ReadonlySet<number>])[] = [
  [400, new Set([6, 26, 27, 32, 33, 36, 38, 41, 42, 43, 44, 53, 62, 69, 70, 72, 117, 215, 184, 456, 457])],
  [401, new Set([194])],
  [403, new Set([164, 192, 193, 452, 497, 516])],
  [404, new Set([16, 46, 47, 50, 56, 60, 63, 73, 81, 115])],
  [408, new Set([159])],
  [413, new Set([307])],
  [501, new Set([48])],
  [503, new Set([202, 236, 394])],
];
