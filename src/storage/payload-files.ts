import { type FileHandle, mkdir, open, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { UnavailableError } from "../domain/errors.ts";
import type { PayloadRef, PayloadStore, StoredRef } from "../domain/jobs/payload-store.ts";
import { noteStored } from "./backup/payload-links.ts";
import { ASIDE, putBack, readStored, removeUnlessNewer, writtenMs } from "./set-aside.ts";
import { UNFINISHED, writeWholeFile } from "./whole-file.ts";

/** How many payloads `all` returns at a time. */
const PIECE = 500;
const NAME = /^([0-9a-f-]{36})\.([a-z0-9-]{1,63})$/;

/**
 * Stores large payloads as files in the data folder, which one start uses exclusively. Not as rows of the embedded
 * PostgreSQL, which runs in the event loop: there a payload of 8 MB blocks the process for a second; as a file it takes
 * 15 ms on another thread.
 *
 * P1. A file gets its name only once it is completely on disk.
 * P2. The next start of the main process removes unfinished files that a crash left, and puts back those that it left
 *     aside, before any other process of the start writes.
 * P3. A file's time is the time at which it was stored, and a payload that is stored anew is a new file.
 * P4. `put` resolves when a backup that is being prepared has the file too (`noteStored`).
 */
export class PayloadFiles implements PayloadStore {
  private constructor(
    private readonly folder: string,
    /** Open as long as the process lives, to sync new names to disk. */
    private readonly directory: FileHandle,
  ) {}

  static async open(folder: string): Promise<PayloadFiles> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const names = await readdir(folder);
    const ending = (end: string) => names.filter((name) => name.endsWith(end)).map((name) => join(folder, name));
    await Promise.all(ending(UNFINISHED).map((path) => rm(path, { force: true })));
    await Promise.all(ending(ASIDE).map(putBack));
    return PayloadFiles.join(folder);
  }

  /** Opens the store in processes other than the main one, which has prepared the folder. */
  static async join(folder: string): Promise<PayloadFiles> {
    return new PayloadFiles(folder, await open(folder, "r"));
  }

  async put(ref: PayloadRef, payload: Uint8Array): Promise<void> {
    try {
      await writeWholeFile(this.toPath(ref), payload);
      await noteStored(this.toPath(ref));
      await this.directory.sync();
    } catch (error) {
      throw unwritable(error);
    }
  }

  async get(ref: PayloadRef): Promise<Uint8Array | null> {
    try {
      return await readStored(this.toPath(ref));
    } catch (error) {
      throw unreadable(error);
    }
  }

  async remove(ref: PayloadRef): Promise<void> {
    try {
      await rm(this.toPath(ref), { force: true });
    } catch (error) {
      throw unwritable(error);
    }
  }

  async removeFound(found: StoredRef): Promise<void> {
    try {
      await removeUnlessNewer(this.toPath(found), found.storedMs);
    } catch (error) {
      throw unwritable(error);
    }
  }

  async *all(): AsyncGenerator<readonly StoredRef[]> {
    const names = await readdir(this.folder).catch((error: unknown) => {
      throw unreadable(error);
    });
    const refs = names.flatMap((name): PayloadRef[] => {
      const [, jobId, tenantId] = NAME.exec(name) ?? [];
      return jobId === undefined || tenantId === undefined ? [] : [{ jobId, tenantId }];
    });
    for (let at = 0; at < refs.length; at += PIECE) {
      const found = await Promise.all(refs.slice(at, at + PIECE).map((ref) => this.found(ref)));
      yield found.flat();
    }
  }

  async close(): Promise<void> {
    await this.directory.close();
  }

  /** Returns none if it has gone meanwhile. */
  private async found(ref: PayloadRef): Promise<readonly StoredRef[]> {
    const storedMs = await writtenMs(this.toPath(ref)).catch((error: unknown) => {
      throw unreadable(error);
    });
    return storedMs === null ? [] : [{ ...ref, storedMs, ageMs: Date.now() - storedMs }];
  }

  /** Both parts are validated ids, so they cannot form another path. */
  private toPath({ jobId, tenantId }: PayloadRef): string {
    return join(this.folder, `${jobId}.${tenantId}`);
  }
}

function unwritable(cause: unknown): UnavailableError {
  return new UnavailableError("the folder of large payloads cannot be written to", { cause });
}

function unreadable(cause: unknown): UnavailableError {
  return new UnavailableError("the folder of large payloads cannot be read", { cause });
}
