import { mkdir, open, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { UnavailableError } from "../domain/errors.ts";
import type { ClickHouse } from "./clickhouse.ts";
import { eventLimits } from "./limits.ts";

/** A statement in two parts, with the format between them. */
export interface ParquetStatement {
  readonly select: string;
  readonly settings: string;
}

/** Before any process uses them: what those of a former start left, some of which may have no successor. */
export async function removeExports(home: string): Promise<void> {
  const names = await readdir(home);
  const left = names.filter((name) => name === EXPORTS || name.startsWith(`${EXPORTS}-`));
  for (const name of left) await rm(join(home, name), { recursive: true, force: true });
}

const EXPORTS = "export";

/** The folder for the files of a process, in the data folder; of a child with its name. */
export function exportsOf(home: string, name?: string): string {
  return join(home, name === undefined ? EXPORTS : `${EXPORTS}-${name}`);
}

/**
 * Parquet by way of a file: the in-process engine writes the whole file, which is then read in chunks.
 *
 * Invariants:
 * P1. The folder belongs to this process alone and is emptied before the first file, which removes what a crash left.
 * P2. A file's name is removed as soon as the file is open for reading, so nothing remains however the reading ends.
 */
export class ParquetFiles {
  private made = 0;
  private emptied: Promise<void> | null = null;

  constructor(
    private readonly engine: {
      /** Runs the statement that writes a file; allows it minutes. */
      readonly writing: Pick<ClickHouse, "command">;
      /** Runs other statements meanwhile. */
      readonly beside: Pick<ClickHouse, "command">;
    },
    private readonly folder: string,
  ) {}

  /** Rejects with `UnavailableError`. */
  async *chunks(statement: ParquetStatement, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const path = join(this.folder, `${(this.made += 1)}.parquet`);
    const file = await this.written(path, statement, signal);
    try {
      for (const chunk = Buffer.allocUnsafe(eventLimits.exportChunkBytes); ; ) {
        const { bytesRead } = await file.read(chunk, 0, chunk.length, null);
        if (bytesRead === 0) return;
        if (signal.aborted) throw new UnavailableError("the export was given up");
        // A copy, because the consumer may keep it beyond the next read.
        yield Uint8Array.from(chunk.subarray(0, bytesRead));
      }
    } finally {
      await file.close();
    }
  }

  private async written(path: string, { select, settings }: ParquetStatement, signal: AbortSignal) {
    await this.prepared();
    const literal = path.replaceAll("\\", "\\\\").replaceAll("'", "\\'");
    const giveUp = () => void this.stopWriting(path);
    signal.addEventListener("abort", giveUp, { once: true });
    try {
      if (signal.aborted) throw new UnavailableError("the export was given up");
      await this.engine.writing.command(`${select}\nINTO OUTFILE '${literal}' FORMAT Parquet\nSETTINGS ${settings}`);
      return await open(path, "r");
    } catch (cause) {
      throw new UnavailableError(`a Parquet file could not be written: ${String(cause)}`, { cause });
    } finally {
      signal.removeEventListener("abort", giveUp);
      await rm(path, { force: true });
    }
  }

  /** Best effort: if this fails, the statement ends by its own deadline. */
  private async stopWriting(path: string): Promise<void> {
    // Includes the folder, because another process's folder may hold a file of the same number.
    const name = path.split("/").slice(-2).join("/");
    const which = `query LIKE 'SELECT%INTO OUTFILE%/${name}%'`;
    await this.engine.beside.command(`KILL QUERY WHERE ${which} ASYNC`).catch(() => {});
  }

  /** Rejects with `UnavailableError`. */
  private prepared(): Promise<void> {
    return (this.emptied ??= this.empty().catch((cause: unknown) => {
      // Nobody writes yet, so the next export may try again.
      this.emptied = null;
      throw new UnavailableError(`the folder of Parquet files could not be emptied: ${String(cause)}`, { cause });
    }));
  }

  private async empty(): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    for (const name of await readdir(this.folder)) await rm(join(this.folder, name), { force: true });
  }
}
