import { isFinal } from "../../src/domain/jobs/job.ts";
import type { RecordAnswer, RecordBatch, RecordPiece, RecordTurn } from "../../src/domain/jobs/queue.ts";
import { engineLimits } from "../../src/engine/limits.ts";
import { forgetContents } from "./memory-queue-keep.ts";
import { agreedTimeMs, isBeyond, type MarkedPiece, type OutboxEntry, type ShardState } from "./memory-queue-shard.ts";

export interface Recording {
  readonly turns: readonly RecordTurn[];
  readonly nowMs: number;
  isHeld(turn: RecordTurn): boolean;
  shardAt(number: number): ShardState;
}

/** Hands out the next pieces of the shards' outboxes. */
export function record(recording: Recording): RecordAnswer {
  const { turns, isHeld, shardAt } = recording;
  const held = turns.filter(isHeld);
  for (const turn of held) begin(recording, turn);
  const takes = held.filter((turn) => turn.takes).map(({ lease }) => lease.shard);
  const handing = new Handing(shardAt);
  const marked = takes.filter((number) => shardAt(number).mark !== null);
  const free = takes.filter((number) => shardAt(number).mark === null);
  for (const number of marked) handing.findMarked(number);
  handing.freeze(free);
  const fenced = turns.filter((turn) => !isHeld(turn)).map(({ lease }) => lease.shard);
  return { fenced, batches: handing.batches, more: handing.more };
}

/** What a turn says of the pieces before. */
function begin({ nowMs, shardAt }: Recording, { lease, done, refused }: RecordTurn): void {
  const shard = shardAt(lease.shard);
  const timeMs = agreedTimeMs(shard, nowMs);
  const isConfirmed = done !== null && isMarked(shard, done.token, done.batch);
  const ended = isConfirmed ? removeMarked(shard, done, timeMs) : 0;
  letLeave(shard, timeMs, Math.max(engineLimits.leaveJobsMin, 2 * ended));
  if (refused !== null && shard.mark !== null && batchOf(lease.shard, shard.mark) === refused) {
    disband(groupOf(lease.shard, shard.mark), refused, shardAt);
  }
}

/** What one call hands out: marked pieces as they were marked, then new ones, as far as there is room. */
class Handing {
  readonly batches: RecordBatch[] = [];
  readonly more: number[] = [];
  private rowsLeft: number = engineLimits.recordRowsMax;
  private bytesLeft: number = engineLimits.recordBytesMax;
  private entriesLeft: number = engineLimits.recordEntriesMax;
  private hasRead = false;

  constructor(private readonly shardAt: (number: number) => ShardState) {}

  findMarked(number: number): void {
    const shard = this.shardAt(number);
    const { mark } = shard;
    if (mark === null) return;
    const token = batchOf(number, mark);
    const at = this.batches.findIndex((batch) => batch.token === token);
    const known = this.batches[at];
    if (known === undefined && this.hasRead && (this.rowsLeft <= 0 || this.bytesLeft <= 0)) {
      this.more.push(number);
      return;
    }
    const group = groupOf(number, mark);
    const isWhole = group.every((piece) => isMarked(this.shardAt(piece.shard), tokenOf(piece), token));
    if (known === undefined) {
      const pieces = group.filter(({ shard: one }) => isWhole || one === number).map((one) => this.read(one, token));
      const isEmpty = pieces.every(({ rows }) => rows.length === 0);
      this.batches.push({ token, pieces, state: isWhole && !isEmpty ? "found" : "recorded" });
    } else if (!isWhole) {
      const own = group.filter(({ shard: one }) => one === number).map((one) => this.read(one, token));
      this.batches[at] = { ...known, pieces: [...known.pieces, ...own] };
    }
    if (shard.outbox.entries.size > markedEntries(shard).length) this.more.push(number);
  }

  freeze(free: readonly number[]): void {
    const fresh = free.flatMap((number) => this.take(number) ?? []);
    for (let at = 0; at < fresh.length; at += engineLimits.recordPiecesMax) {
      const group = fresh.slice(at, at + engineLimits.recordPiecesMax);
      const together = group.length > 1 ? group : null;
      for (const { shard, first, last } of group) this.shardAt(shard).mark = { first, last, group: together };
      const token = group.length > 1 ? groupToken(group) : group.map(tokenOf).join("");
      const pieces = group.map((piece) => pieceOf(piece, token, markedEntries(this.shardAt(piece.shard))));
      this.batches.push({ token, pieces, state: "frozen" });
    }
  }

  private read(marked: MarkedPiece, batch: string): RecordPiece {
    const entries = markedEntries(this.shardAt(marked.shard));
    this.entriesLeft -= entries.length;
    for (const { rows, bytes } of entries) {
      this.rowsLeft -= rows.length;
      this.bytesLeft -= bytes;
    }
    this.hasRead = true;
    return pieceOf(marked, batch, entries);
  }

  /** The next piece of an outbox, or nothing. */
  private take(number: number): MarkedPiece | null {
    const { entries } = this.shardAt(number).outbox;
    const taken: string[] = [];
    for (const [id, { rows, bytes }] of entries) {
      if (this.entriesLeft <= 0) break;
      if (this.hasRead && (rows.length > this.rowsLeft || bytes > this.bytesLeft)) break;
      this.entriesLeft -= 1;
      this.rowsLeft -= rows.length;
      this.bytesLeft -= bytes;
      this.hasRead = true;
      taken.push(id);
    }
    if (taken.length < entries.size) this.more.push(number);
    const [first, last] = [taken[0], taken.at(-1)];
    return first === undefined || last === undefined ? null : { shard: number, first, last };
  }
}

type Mark = NonNullable<ShardState["mark"]>;

function tokenOf({ shard, first, last }: MarkedPiece): string {
  return `s${shard}:${first}/${last}`;
}

/** Of the pieces that it names: the same token always stands for the same ones. */
export function groupToken(group: readonly MarkedPiece[]): string {
  return `g:${new Bun.CryptoHasher("sha1").update(groupText(group)).digest("hex")}`;
}

/** As it stands in the marks on Redis. */
export function groupText(group: readonly MarkedPiece[]): string {
  const prefixOf = (shard: number) => `wb:{s${String(shard).padStart(2, "0")}}`;
  return group.map(({ shard, first, last }) => `${prefixOf(shard)} ${first} ${last}`).join("\n");
}

function groupOf(shard: number, { first, last, group }: Mark): readonly MarkedPiece[] {
  return group ?? [{ shard, first, last }];
}

function batchOf(shard: number, { first, last, group }: Mark): string {
  return group === null ? tokenOf({ shard, first, last }) : groupToken(group);
}

/** Whether the piece is the marked one, in that batch. */
function isMarked({ mark }: ShardState, piece: string, batch: string): boolean {
  if (mark === null) return false;
  const shard = Number(/^s(\d+):/.exec(piece)?.[1]);
  return tokenOf({ shard, ...mark }) === piece && batchOf(shard, mark) === batch;
}

function pieceOf(marked: MarkedPiece, batch: string, entries: readonly OutboxEntry[]): RecordPiece {
  return { shard: marked.shard, token: tokenOf(marked), batch, rows: entries.flatMap(({ rows }) => rows) };
}

/** From now on each of its pieces is a batch of its own; without effect where one of them is gone. */
function disband(group: readonly MarkedPiece[], batch: string, shardAt: Recording["shardAt"]): void {
  if (!group.every((piece) => isMarked(shardAt(piece.shard), tokenOf(piece), batch))) return;
  for (const { shard, first, last } of group) shardAt(shard).mark = { first, last, group: null };
}

/** Answers how many jobs had their end in the piece. */
function removeMarked(shard: ShardState, { rows }: RecordPiece, timeMs: number): number {
  const last = shard.mark?.last ?? "0-0";
  for (const id of shard.outbox.entries.keys()) if (!isBeyond(id, last)) shard.outbox.entries.delete(id);
  shard.mark = null;
  shard.lastRecorded = Math.max(shard.lastRecorded, ...rows.map(({ eventId }) => eventId));
  forgetContents(shard, rows);
  const ended = rows.filter(({ finished }) => finished !== null).map(({ jobId }) => jobId);
  append(shard, ended, timeMs);
  return ended.length;
}

function append(shard: ShardState, jobs: readonly string[], timeMs: number): void {
  for (let at = 0; at < jobs.length; at += engineLimits.leaveTogetherMax) {
    shard.leaving.push({ sinceMs: timeMs, jobs: jobs.slice(at, at + engineLimits.leaveTogetherMax) });
  }
}

/** Removes jobs that were kept long enough. A job with events that the event store lacks stays for as long again. */
function letLeave(shard: ShardState, timeMs: number, jobsMax: number): void {
  const staying: string[] = [];
  for (let seen = 0; seen < jobsMax; ) {
    const oldest = shard.leaving[0];
    if (oldest === undefined || Math.abs(timeMs - oldest.sinceMs) < engineLimits.jobKeptMs) break;
    shard.leaving.shift();
    seen += oldest.jobs.length;
    for (const jobId of oldest.jobs) {
      const job = shard.jobs.get(jobId);
      if (job === undefined) continue;
      const isRecorded = job.events.every(({ eventId }) => eventId <= shard.lastRecorded);
      if (isFinal(job.status) && isRecorded) shard.jobs.delete(jobId);
      else staying.push(jobId);
    }
  }
  append(shard, staying, timeMs);
}

function markedEntries({ mark, outbox }: ShardState): OutboxEntry[] {
  const entries = [...outbox.entries];
  return entries.filter(([id]) => mark !== null && !isBeyond(id, mark.last)).map(([, entry]) => entry);
}
