import { constants, copyFile, lstat, mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { forEachName } from "./each-of.ts";
import { unlessMissing } from "./missing.ts";

/** File systems record times in steps of up to two seconds. */
const DOUBT_MS = 2_000;

/**
 * A copy of a folder that can be brought up to date.
 *
 * M1. A file is left out of an update only if it is the one that was copied, and its size and both times are unchanged
 *     since before that. A clock is never compared with an earlier reading of it, because it may have been set back
 *     meanwhile.
 * M2. A file that was so young when it was copied that a change might have left its times unchanged is copied again.
 */
export class Mirror {
  /** Each file's state before it was copied, by path; only for files that may be left out. */
  private readonly copied = new Map<string, string>();

  constructor(
    private readonly from: string,
    private readonly to: string,
    private readonly nowMs: () => number = Date.now,
  ) {}

  /** Makes the copy equal to the folder. Rejects soon after `signal` has aborted, with its reason. */
  update(signal?: AbortSignal): Promise<void> {
    return this.folder("", signal);
  }

  private async folder(path: string, signal?: AbortSignal): Promise<void> {
    const to = join(this.to, path);
    await mkdir(to, { recursive: true, mode: 0o700 });
    const [now, before] = await Promise.all([readdir(join(this.from, path), { withFileTypes: true }), readdir(to)]);
    const gone = new Set(before);
    const files: string[] = [];
    for (const entry of now) {
      gone.delete(entry.name);
      if (entry.isDirectory()) await this.folder(join(path, entry.name), signal);
      else if (entry.isFile()) files.push(join(path, entry.name));
    }
    await forEachName(files, (file) => this.file(file).catch(unlessMissing), signal);
    await Promise.all(Array.from(gone, (name) => rm(join(to, name), { recursive: true, force: true })));
  }

  private async file(path: string): Promise<void> {
    const from = join(this.from, path);
    const { ino, size, mtimeNs, ctimeNs, mtimeMs, ctimeMs } = await lstat(from, { bigint: true });
    const state = `${ino} ${size} ${mtimeNs} ${ctimeNs}`;
    if (this.copied.get(path) === state) return;
    this.copied.delete(path);
    const youngestMs = Math.max(Number(mtimeMs), Number(ctimeMs));
    const isSettled = youngestMs < this.nowMs() - DOUBT_MS;
    // On a file system that can share blocks, this copy is free.
    await copyFile(from, join(this.to, path), constants.COPYFILE_FICLONE);
    if (isSettled) this.copied.set(path, state);
  }
}
