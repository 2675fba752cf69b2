import { stat } from "node:fs/promises";
import { type Clock, sleep } from "../../../domain/clock.ts";
import { hasCode } from "../../../domain/has-code.ts";
import { LogFile } from "./log-file.ts";
import type { LogPlace } from "./log-place.ts";
import { findSuccession } from "./log-succession.ts";

export interface LogFollowerOptions {
  readonly path: string;
  /** The position to continue from; null for the start of the file. */
  readonly place: LogPlace | null;
  readonly clock: Clock;
  /** Processes the next lines and the position after them. Reading continues when it resolves. Must not reject. */
  onLines(lines: readonly string[], place: LogPlace): Promise<void>;
  onNote(note: FollowerNote): void;
}

/**
 * `lost`: the file that was being read is gone, and lines with it. `truncated`: the log was emptied without being
 * renamed. `rotated`: another file is being read. `unreadable`: the log does not exist or cannot be read at the moment;
 * the follower tries again. `readable`: the log is being read, reported at every poll.
 */
export type FollowerNote =
  | { readonly kind: "lost" }
  | { readonly kind: "truncated" }
  | { readonly kind: "rotated" }
  | { readonly kind: "readable" }
  | { readonly kind: "unreadable"; readonly error: string };

/**
 * Follows a log that is appended to, renamed and recreated, or truncated.
 *
 * Invariants:
 * L1. Every line is delivered in order. A renamed file is read to its end before its successor is started, and only
 *     after it has been quiet for a while under its new name, because its writer keeps writing to it until it notices
 *     the rotation.
 * L2. A follower that starts at a position delivers everything after it, even if the log was rotated in the meantime.
 * L3. While the log does not exist or cannot be read, the follower tries again at every poll.
 */
export class LogFollower {
  private readonly stopping = new AbortController();
  private following: Promise<void> | null = null;
  private file: LogFile | null = null;
  private place: LogPlace | null;
  /** A file that was read to its end and must not be reopened, although the position is in it. */
  private finishedInode: string | null = null;
  /** When the file was last read from, opened, or seen at the log's path; in monotonic milliseconds. */
  private quietSinceMs = 0;
  private atEndMs: number;
  /** When the log was last seen at its path. */
  private seenMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly options: LogFollowerOptions) {
    this.place = options.place;
    this.atEndMs = options.clock.monotonicMs();
  }

  start(): void {
    this.following ??= this.follow();
  }

  /** Resolves when reading has stopped and `onLines` has returned. Safe to repeat. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.following;
  }

  /** Returns how far reading is behind writing. */
  async lag(): Promise<{ readonly bytes: number; readonly seconds: number }> {
    const { clock, path } = this.options;
    const size = await stat(path).then(
      (found) => found.size,
      () => 0,
    );
    const isInLog = this.file !== null && this.finishedInode === null;
    const bytes = isInLog ? Math.max(0, size - (this.place?.offset ?? 0)) : size;
    return { bytes, seconds: bytes === 0 ? 0 : (clock.monotonicMs() - this.atEndMs) / 1000 };
  }

  private async follow(): Promise<void> {
    const { clock, onNote } = this.options;
    while (!this.stopping.signal.aborted) {
      try {
        if (await this.step()) continue;
      } catch (error) {
        // Lines that were read but not delivered are read again: the position is after the last delivered line.
        await this.close();
        onNote({ kind: "unreadable", error: String(error) });
      }
      await sleep(clock, POLL_MS, this.stopping.signal);
    }
    await this.close();
  }

  /** Whether there may be more to do at once. */
  private async step(): Promise<boolean> {
    const { file } = this;
    if (file === null) return this.openNext();
    // Checked before reading; otherwise a log that was emptied and has grown again would be read from its middle.
    if (await file.isTruncated()) {
      this.options.onNote({ kind: "truncated" });
      await this.close();
      return true;
    }
    const read = await file.read();
    if (read === null) return this.leaveWhenReplaced(file);
    this.quietSinceMs = this.options.clock.monotonicMs();
    await this.give(read);
    return true;
  }

  private async give({ lines, place }: { readonly lines: readonly string[]; readonly place: LogPlace }): Promise<void> {
    this.place = place;
    if (lines.length > 0) await this.options.onLines(lines, place);
  }

  private async openNext(): Promise<boolean> {
    const { path, onNote } = this.options;
    const { files, isBroken } = await findSuccession(path, this.place);
    const [first, second] = files;
    const isFinished = this.finishedInode !== null && first?.inode === this.finishedInode && second !== undefined;
    const next = isFinished ? second : first;
    if (next === undefined || next.inode === null) {
      this.noteMissing();
      return false;
    }
    const file = await LogFile.open(next.path, next.offset);
    if (file.inode !== next.inode) {
      // Rotated between the check and opening it.
      await file.close();
      return false;
    }
    if (isBroken && this.finishedInode === null) onNote({ kind: "lost" });
    if (this.place !== null && file.inode !== this.place.inode) onNote({ kind: "rotated" });
    this.finishedInode = null;
    this.file = file;
    this.place = file.place;
    this.noteSeen();
    return true;
  }

  /** Reports a missing log after a delay, because a rotation removes it for a moment. */
  private noteMissing(): void {
    const { clock, path, onNote } = this.options;
    if (clock.monotonicMs() - this.seenMs < MISSING_MS) return;
    onNote({ kind: "unreadable", error: `there is no file ${path}` });
  }

  private noteSeen(): void {
    this.seenMs = this.options.clock.monotonicMs();
    this.quietSinceMs = this.seenMs;
    this.options.onNote({ kind: "readable" });
  }

  /** Closes the file permanently at its end if the log is another file by now. */
  private async leaveWhenReplaced(file: LogFile): Promise<boolean> {
    const { path, clock } = this.options;
    const inode = await readInode(path);
    if (inode === file.inode) {
      this.atEndMs = clock.monotonicMs();
      this.noteSeen();
      return false;
    }
    if (inode === null) this.noteMissing();
    if (inode === null || clock.monotonicMs() - this.quietSinceMs < QUIET_MS) return false;
    const rest = file.takeRest();
    if (rest !== null) await this.give(rest);
    this.finishedInode = file.inode;
    await this.close();
    return true;
  }

  private async close(): Promise<void> {
    const { file } = this;
    this.file = null;
    await file?.close();
  }
}

/** Longest time between writing and reading a line. */
const POLL_MS = 200;
/** How long the log may be missing before that is reported. */
const MISSING_MS = 5_000;
/** How long a renamed file must be quiet before it is closed; by then its writer has noticed the rotation. */
const QUIET_MS = 1_500;

async function readInode(path: string): Promise<string | null> {
  try {
    return (await stat(path, { bigint: true })).ino.toString();
  } catch (error) {
    if (hasCode(error, "ENOENT")) return null;
    throw error;
  }
}
