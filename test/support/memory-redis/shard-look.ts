import type { StoredEventRow } from "../../../src/domain/jobs/event-store.ts";
import type { LeaseRole, LeaseState, QueueQuota } from "../../../src/domain/jobs/queue.ts";
import { type ChannelLetters, decodeRow } from "../../../src/engine/queue/codec.ts";
import { jobBucket, jobField, shardPrefix } from "../../../src/engine/queue/keys.ts";
import type { Keyspace, StreamEntry } from "./keyspace.ts";
import { decodeText } from "./memory-connection.ts";

const NOTHING: QueueQuota = { jobs: 0, bytes: 0 };
const JOB_ID_CHARS = 36;
const NONE = new Map<string, never>();

/** The content of a shard, read from its keys as `prelude.lua` describes them. */
export class ShardLook {
  private readonly prefix: string;
  /** Rows of entries that are in the outbox. */
  private readonly rowsOf = new WeakMap<StreamEntry, readonly StoredEventRow[]>();

  constructor(
    private readonly keys: Keyspace,
    private readonly letters: ChannelLetters,
    shard: number,
  ) {
    this.prefix = shardPrefix(shard);
  }

  /** Each tenant queue's entries, by their jobs. */
  get tenantQueues(): ReadonlyMap<string, readonly string[]> {
    const prefix = `${this.prefix}:box:`;
    const queues = new Map<string, readonly string[]>();
    for (const key of this.keys.beginningWith(prefix)) {
      const entries = this.keys.read(key, "stream")?.entries ?? [];
      queues.set(
        key.slice(prefix.length),
        entries.map(({ fields }) => (fields[1] ?? "").slice(0, JOB_ID_CHARS)),
      );
    }
    return queues;
  }

  /** The jobs in tenant queues and those that are parked. */
  get waiting(): readonly string[] {
    return [...[...this.tenantQueues.values()].flat(), ...this.parked.keys()];
  }

  get parked(): ReadonlyMap<string, string> {
    return this.hash("parked");
  }

  /** The token of the lease under which a job was lent. */
  lentUnder(jobId: string): string | undefined {
    return /^[^ !]+!(\S+) /.exec(this.parked.get(jobId) ?? "")?.[1];
  }

  /** When each parked job is due, by the shard's time. */
  get later(): ReadonlyMap<string, number> {
    return this.keys.read(`${this.prefix}:later`, "zset")?.scores ?? NONE;
  }

  get cursors(): ReadonlyMap<string, string> {
    return this.hash("cursor");
  }

  get ready(): number {
    return this.keys.read(`${this.prefix}:ready`, "set")?.size ?? 0;
  }

  get held(): number {
    return this.keys.read(`${this.prefix}:held`, "set")?.size ?? 0;
  }

  get outbox(): readonly StoredEventRow[] {
    const entries = this.keys.read(`${this.prefix}:outbox`, "stream")?.entries ?? [];
    return entries.flatMap((entry) => {
      const rows = this.rowsOf.get(entry) ?? this.decoded(entry);
      this.rowsOf.set(entry, rows);
      return rows;
    });
  }

  /** The shard's time at the last pull. */
  get agreedMs(): number | null {
    const [, agreed] = this.keys.read(`${this.prefix}:skew`, "string")?.text.split(" ") ?? [];
    return agreed === undefined ? null : Number(agreed);
  }

  get hasMark(): boolean {
    return this.keys.entry(`${this.prefix}:mark`) !== undefined;
  }

  /** A tenant's unfinished jobs. */
  load(tenantId: string): QueueQuota {
    const [jobs = "0", bytes = "0"] = this.hash("tenants").get(tenantId)?.split(" ") ?? [];
    return jobs === "0" ? NOTHING : { jobs: Number(jobs), bytes: Number(bytes) };
  }

  record(jobId: string): string | null {
    const text = this.hash(`jobs:${jobBucket(jobId)}`).get(jobField(jobId));
    return text === undefined ? null : decodeText(text);
  }

  lease(role: LeaseRole): LeaseState | null {
    const lease = this.hash(`lease:${role}`);
    const token = lease.get("token");
    return token === undefined ? null : { token, renewals: Number(lease.get("renewals")) };
  }

  /** Every suppressed recipient, with its tenant. */
  get suppressed(): readonly (readonly [tenantId: string, recipient: string])[] {
    const prefix = `${this.prefix}:suppressed:`;
    return [...this.keys.beginningWith(prefix)].flatMap((key) =>
      [...(this.keys.read(key, "hash")?.keys() ?? [])].map((who) => [key.slice(prefix.length), who] as const),
    );
  }

  private hash(name: string): ReadonlyMap<string, string> {
    return this.keys.read(`${this.prefix}:${name}`, "hash") ?? NONE;
  }

  private decoded({ fields }: StreamEntry): readonly StoredEventRow[] {
    return decodeText(fields[3] ?? "")
      .split("\n")
      .map((line) => decodeRow(this.letters, line));
  }
}
