import { type FileHandle, link, mkdir, open, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Content, ContentStore } from "../domain/content-store.ts";
import { UnavailableError } from "../domain/errors.ts";
import { hasCode } from "../domain/has-code.ts";
import { isJobId, jobTimeMs } from "../domain/ids.ts";
import type { PayloadRef, StoredRef } from "../domain/jobs/payload-store.ts";
import { noteStored } from "./backup/payload-links.ts";
import { readStored, removeUnlessNewer, writtenMs } from "./set-aside.ts";
import { UNFINISHED, writeWholeFile } from "./whole-file.ts";

/** How many jobs `all` returns at a time. */
const PIECE = 500;
const OWN = /^([0-9a-f-]{36})\.([a-z0-9-]{1,63})\.[0-9a-f]{64}$/;
const SHARED = /^shared\.[0-9a-f]{64}\.[a-z0-9-]{1,63}$/;
/** A shared name that no job uses is removed once it is older: until then a job may be about to link it. */
const UNUSED_MS = 15 * 60_000;
/** A job with an id older than this is stored late, or anew: its id does not show when. */
const LATE_MS = 5 * 60_000;

/**
 * Keeps files of jobs in the folder of large payloads, each content of a tenant once on disk.
 *
 * F1. A job has a hard link of its own to each of its files. Reading needs only that link, so other jobs and the shared
 *     name cannot take a file away from it.
 * F2. The shared name, under which the next job finds the content, is removed when no job has a link. A job that links
 *     it meanwhile keeps the content; the next one stores it anew.
 * F3. A file gets its name only once it is completely on disk.
 * F4. A job's files are as young as its id, or as the youngest of them. A link has the time of the content, which may
 *     be long ago; so a job whose id is no longer young gets files of its own, with the time at which they were stored,
 *     and which later jobs may share. If the shared file's time were set instead, every job that has it would become
 *     young, and a tenant that sends one attachment all day would lose none of them.
 * F5. `put` resolves when a backup in preparation has the files too (`noteStored`).
 */
export class ContentFiles implements ContentStore {
  /**
   * The names of each job's files while `all` reads the folder: removals meanwhile need not read the folder for each
   * job. Later files are found by the next reading.
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
      for (const content of contents) {
        await this.putOne(ref, content);
        await noteStored(this.own(ref, content.sha256));
      }
      await this.directory.sync();
    } catch (error) {
      throw new UnavailableError("the folder of files cannot be written to", { cause: error });
    }
  }

  async get(ref: PayloadRef, sha256: string): Promise<Uint8Array | null> {
    try {
      return await readStored(this.own(ref, sha256));
    } catch (error) {
      throw new UnavailableError("the folder of files cannot be read", { cause: error });
    }
  }

  remove(ref: PayloadRef, sha256s?: readonly string[]): Promise<void> {
    return this.removeOwn(ref, (path) => rm(path, { force: true }), sha256s);
  }

  removeFound(found: StoredRef): Promise<void> {
    return this.removeOwn(found, (path) => removeUnlessNewer(path, found.storedMs));
  }

  private async removeOwn(
    ref: PayloadRef,
    removeOne: (path: string) => Promise<void>,
    sha256s?: readonly string[],
  ): Promise<void> {
    try {
      for (const sha256 of sha256s ?? (await this.listFiles(ref))) {
        await removeOne(this.own(ref, sha256));
        await this.removeUnused(this.shared(ref.tenantId, sha256));
      }
    } catch (error) {
      throw new UnavailableError("the folder of files cannot be written to", { cause: error });
    }
  }

  /** Reads the whole folder, unless `all` is reading it. */
  private async listFiles({ jobId, tenantId }: PayloadRef): Promise<readonly string[]> {
    const prefix = `${jobId}.${tenantId}.`;
    const names = this.listed.get(jobId) ?? (await readdir(this.folder));
    return names.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
  }

  async *all(): AsyncGenerator<readonly StoredRef[]> {
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
      for (let at = 0; at < all.length; at += PIECE) {
        yield await Promise.all(all.slice(at, at + PIECE).map((ref) => this.found(ref, listed.get(ref.jobId) ?? [])));
      }
    } finally {
      this.listed = new Map();
    }
    // Left by a process that died before its job had a link or while it wrote, or while a backup had a link.
    const left = names.filter((name) => SHARED.test(name) || name.endsWith(UNFINISHED));
    for (const name of left) await this.removeUnused(join(this.folder, name), this.unusedMs);
  }

  async close(): Promise<void> {
    await this.directory.close();
  }

  private async putOne(ref: PayloadRef, { sha256, body }: Content): Promise<void> {
    const [shared, own] = [this.shared(ref.tenantId, sha256), this.own(ref, sha256)];
    if (Date.now() - idTimeMs(ref.jobId) < LATE_MS) {
      try {
        return await link(shared, own);
      } catch (error) {
        if (hasCode(error, "EEXIST")) return;
        if (!hasCode(error, "ENOENT")) throw error;
      }
    }
    // Its own name first, so that processes that store the same content do not interfere.
    await writeWholeFile(own, body);
    await link(own, shared).catch((error: unknown) => {
      if (!hasCode(error, "EEXIST")) throw error;
    });
  }

  private async found(ref: PayloadRef, names: readonly string[]): Promise<StoredRef> {
    const written = await Promise.all(names.map((name) => writtenMs(join(this.folder, name)))).catch(
      (cause: unknown) => {
        throw new UnavailableError("the folder of files cannot be read", { cause });
      },
    );
    const storedMs = Math.max(idTimeMs(ref.jobId), ...written.map((writtenMs) => writtenMs ?? 0));
    return { ...ref, storedMs, ageMs: Date.now() - storedMs };
  }

  /** Removes the shared name, or the draft, if no job has a link and it is that old. */
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

function idTimeMs(jobId: string): number {
  return isJobId(jobId) ? jobTimeMs(jobId) : 0;
}
