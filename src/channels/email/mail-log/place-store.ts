import { Database } from "bun:sqlite";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { LogPlace } from "./log-place.ts";
import type { QueueChanges, QueuedMail } from "./postfix-queue.ts";

interface PlaceRow {
  readonly inode: string;
  readonly offset: number;
  readonly head_bytes: number;
  readonly head_digest: string;
}

interface QueueRow {
  readonly key: string;
  readonly job_id: string | null;
  readonly tenant_id: string | null;
  readonly mark: string | null;
  readonly deferral: string | null;
  readonly seen_ms: number;
}

/**
 * Stores how far a log has been read and which messages were queued at that point, in one transaction, so the two are
 * consistent after a crash. A power cut can lose the last transactions; their lines are then read again.
 */
export class PlaceStore {
  private readonly db: Database;

  private constructor(
    home: string,
    /** The log's path; one data folder can store the positions of several logs. */
    private readonly path: string,
  ) {
    this.db = new Database(join(home, "mail-log.sqlite"), { create: true, strict: true });
    this.db.run("PRAGMA journal_mode = WAL");
    this.db.run("PRAGMA synchronous = NORMAL");
    this.db.run("PRAGMA busy_timeout = 5000");
    this.db.run(`CREATE TABLE IF NOT EXISTS places (
      path TEXT PRIMARY KEY, inode TEXT NOT NULL, offset INTEGER NOT NULL,
      head_bytes INTEGER NOT NULL, head_digest TEXT NOT NULL)`);
    this.db.run(`CREATE TABLE IF NOT EXISTS queued (
      path TEXT NOT NULL, key TEXT NOT NULL, job_id TEXT, tenant_id TEXT, deferral TEXT, seen_ms INTEGER NOT NULL,
      PRIMARY KEY (path, key)) WITHOUT ROWID`);
    const columns = this.db.query<{ readonly name: string }, []>("SELECT name FROM pragma_table_info('queued')").all();
    // Earlier releases made the table without it, and go on without it.
    if (!columns.some(({ name }) => name === "mark")) this.db.run("ALTER TABLE queued ADD COLUMN mark TEXT");
  }

  /** Throws if the folder is not writable. */
  static open(home: string, path: string): PlaceStore {
    mkdirSync(home, { recursive: true, mode: 0o700 });
    return new PlaceStore(home, path);
  }

  /** Returns the stored position; null if the log has never been read. */
  place(): LogPlace | null {
    const row = this.db
      .query<PlaceRow, [string]>("SELECT inode, offset, head_bytes, head_digest FROM places WHERE path = ?")
      .get(this.path);
    if (row === null) return null;
    return { inode: row.inode, offset: row.offset, head: { bytes: row.head_bytes, digest: row.head_digest } };
  }

  queued(): readonly (readonly [key: string, mail: QueuedMail])[] {
    const rows = this.db
      .query<QueueRow, [string]>("SELECT key, job_id, tenant_id, mark, deferral, seen_ms FROM queued WHERE path = ?")
      .all(this.path);
    return rows.map(({ key, job_id, tenant_id, mark, deferral, seen_ms }) => {
      const named = job_id === null || tenant_id === null ? null : { jobId: job_id, tenantId: tenant_id };
      const job = named === null || mark === null ? named : { ...named, mark };
      return [key, { job, deferral, seenMs: seen_ms }];
    });
  }

  save(place: LogPlace, changes: QueueChanges): void {
    this.db.transaction(() => {
      for (const [key, mail] of changes) this.write(key, mail);
      this.db
        .query("INSERT OR REPLACE INTO places (path, inode, offset, head_bytes, head_digest) VALUES (?, ?, ?, ?, ?)")
        .run(this.path, place.inode, place.offset, place.head.bytes, place.head.digest);
    })();
  }

  close(): void {
    this.db.close();
  }

  private write(key: string, mail: QueuedMail | null): void {
    if (mail === null) {
      this.db.query("DELETE FROM queued WHERE path = ? AND key = ?").run(this.path, key);
      return;
    }
    const { job, deferral, seenMs } = mail;
    this.db
      .query(
        "INSERT OR REPLACE INTO queued (path, key, job_id, tenant_id, mark, deferral, seen_ms) VALUES (?, ?, ?, ?, ?, ?, ?)",
      )
      .run(this.path, key, job?.jobId ?? null, job?.tenantId ?? null, job?.mark ?? null, deferral, seenMs);
  }
}
