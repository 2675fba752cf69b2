import { type FileHandle, link, mkdir, open, readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Content, ContentStore } from "../domain/content-store.ts";
import { UnavailableError } from "../domain/errors.ts";
import type { PayloadRef } from "../domain/payload-store.ts";
import { writeWholeFile } from "./whole-file.ts";

/** How many jobs `all` returns at a time. */
const PIECE = 500;
const OWN = /^([0-9a-f-]{36})\.([a-z0-9-]{1,63})\.[0-9a-f]{64}$/;
const SHARED = /^shared\.[0-9a-f]{64}\.[a-z0-9-]{1,63}$/;
/** A shared name that no job uses is removed once it is older: its job may be about to link it. */
const UNUSED_MS = 15 * 60_000;

/**
 * Keeps files of jobs in the folder of large payloads, each content of a tenant once on disk.
 *
 * F1. A job has a hard link of its own to each of its files. Reading needs only that, so nothing that happens to other jobs or
 *     to the shared name can take a file away from it.
 * F2. The shared name, under which the next job finds the content, goes when no job has a link. A job that links it meanwhile
 *     keeps the content; the next one stores it anew.
 * F3. A file gets its name only once it is completely on disk.
 */
export class ContentFiles implements ContentStore {
  /**
   * The names of each job's files, while `all` goes through them: whoever removes jobs meanwhile does not read the folder for each.
   * What came later is found by the next reading.
   */
  private listed: ReadonlyMap<string, readonly string[]> = new Map();

  private constructor(
    private readonly folder: string,
    /** Open as long as the process lives, to sync new names to disk. */
    private readonly directory: FileHandle,
    private readonly unusedMs: number,
  ) {}

  /** `unusedMs`: the age at which a shared name that no job uses is removed, default 15 minutes. */
  static async open(folder: string, unusedMs = UNUSED_MS): Promise<ContentFiles> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return new ContentFiles(folder, await open(folder, "r"), unusedMs);
  }

  async put(ref: PayloadRef, contents: readonly Content[]): Promise<void> {
    try {
      for (const content of contents) await this.putOne(ref, content);
      await this.directory.sync();
    } catch (error) {
      throw new UnavailableError("the folder of files cannot be written to", { cause: error });
    }
  }

  async get(ref: PayloadRef, sha256: string): Promise<Uint8Array | null> {
    try {
      return await readFile(this.own(ref, sha256));
    } catch (error) {
      if (isCode(error, "ENOENT")) return null;
      throw new UnavailableError("the folder of files cannot be read", { cause: error });
    }
  }

  async remove({ jobId, tenantId }: PayloadRef): Promise<void> {
    const prefix = `${jobId}.${tenantId}.`;
    try {
      const names = this.listed.get(jobId) ?? (await readdir(this.folder));
      for (const name of names) {
        if (!name.startsWith(prefix)) continue;
        await rm(join(this.folder, name), { force: true });
        await this.removeUnused(this.shared(tenantId, name.slice(prefix.length)));
      }
    } catch (error) {
      throw new UnavailableError("the folder of files cannot be written to", { cause: error });
    }
  }

  async *all(): AsyncGenerator<readonly PayloadRef[]> {
    const names = await readdir(this.folder).catch((cause: unknown) => {
      throw new UnavailableError("the folder of files cannot be read", { cause });
    });
    const refs = new Map<string, PayloadRef>();
    const listed = new Map<string, string[]>();
    for (const name of names) {
      const [, jobId, tenantId] = OWN.exec(name) ?? [];
      if (jobId === undefined || tenantId === undefined) continue;
      refs.set(jobId, { jobId, tenantId });
      listed.set(jobId, [...(listed.get(jobId) ?? []), name]);
    }
    const all = [...refs.values()];
    this.listed = listed;
    try {
      for (let at = 0; at < all.length; at += PIECE) yield all.slice(at, at + PIECE);
    } finally {
      this.listed = new Map();
    }
    // Left by a process that died before its job had a link, or while a backup had one.
    for (const name of names) if (SHARED.test(name)) await this.removeUnused(join(this.folder, name), this.unusedMs);
  }

  async close(): Promise<void> {
    await this.directory.close();
  }

  private async putOne(ref: PayloadRef, { sha256, body }: Content): Promise<void> {
    const [shared, own] = [this.shared(ref.tenantId, sha256), this.own(ref, sha256)];
    try {
      return await link(shared, own);
    } catch (error) {
      if (isCode(error, "EEXIST")) return;
      if (!isCode(error, "ENOENT")) throw error;
    }
    // Its own name first: processes that store the same content do not meet.
    await writeWholeFile(own, body);
    await link(own, shared).catch((error: unknown) => {
      if (!isCode(error, "EEXIST")) throw error;
    });
  }

  /** The shared name, if no job has a link and it is that old. */
  private async removeUnused(path: string, ageMs = 0): Promise<void> {
    const found = await stat(path).catch(() => null);
    if (found === null || found.nlink > 1 || (ageMs > 0 && Date.now() - found.ctimeMs < ageMs)) return;
    await rm(path, { force: true });
  }

  /** All parts are validated ids and digests, so they cannot form another path. */
  private own({ jobId, tenantId }: PayloadRef, sha256: string): string {
    return join(this.folder, `${jobId}.${tenantId}.${sha256}`);
  }

  private shared(tenantId: string, sha256: string): string {
    return join(this.folder, `shared.${sha256}.${tenantId}`);
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
