import { Session, type StreamChunk } from "chdb";
import type { AnalystWork, AnalystWorkAnswer } from "./analyst-thread.ts";
import { EngineError } from "./engine-error.ts";
import { checkRewritten } from "./read-statement.ts";
import { sqlString } from "./statement-tokens.ts";

/*
 * A thread that runs analysts' statements, one at a time. The engine's own threads do most of the work, but it parses a
 * statement and evaluates its constants on the calling thread, which must not be the event loop's.
 */

declare const self: Worker;

let session: Session | null = null;
let source: AsyncIterator<StreamChunk> | null = null;

self.onmessage = async ({ data }: MessageEvent<AnalystWork>) => {
  self.postMessage(await answerTo(data));
};

async function answerTo(work: AnalystWork): Promise<AnalystWorkAnswer> {
  try {
    switch (work.kind) {
      case "start":
        return await start(work);
      case "next":
        return { kind: "rows", bytes: await next(), rowsRead: 0, bytesRead: 0 };
      case "close":
        close();
        return { kind: "closed" };
    }
  } catch (error) {
    close();
    const { code, type, reason } = EngineError.from(error);
    return { kind: "failed", code, type, reason };
  }
}

async function start(work: AnalystWork & { kind: "start" }): Promise<AnalystWorkAnswer> {
  session = new Session(work.path);
  session.query(work.preparation);
  checkRewritten(rewritten(session, work.sql), work.unavailable);
  if (work.delivery === "stream") {
    source = session.queryStream(work.sql, { format: work.format })[Symbol.asyncIterator]();
    return { kind: "rows", bytes: await next(), rowsRead: 0, bytesRead: 0 };
  }
  const result = await session.queryAsync(work.sql, { format: work.format });
  close();
  return { kind: "rows", bytes: result.bytes(), rowsRead: result.rowsRead, bytesRead: result.bytesRead };
}

/** The statement as the engine rewrites it. */
function rewritten(by: Session, sql: string): string {
  try {
    return by.query(`SELECT formatQuerySingleLine(${sqlString(sql)})`, "RawBLOB");
  } catch (error) {
    const { code, type, reason } = EngineError.from(error);
    // Our own wrapping of the statement is none of the analyst's business.
    throw new EngineError(code, type, reason.replace(/: (In scope|while executing) [^]*$/i, ""));
  }
}

async function next(): Promise<Uint8Array | null> {
  const chunk = await source?.next();
  if (chunk === undefined || chunk.done === true) {
    close();
    return null;
  }
  return chunk.value.raw();
}

/** Never in the middle of a statement, because callers wait for each answer. Also cancels an open stream. */
function close(): void {
  session?.close();
  session = null;
  source = null;
}
