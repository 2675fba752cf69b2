/** A reply; texts have one character per byte. */
export type Reply = number | string | null | Status | readonly Reply[];

/** A reply that is a simple string. */
export class Status {
  constructor(readonly text: string) {}
}

/** A refusal by Redis, as ioredis rejects it. */
export class ReplyError extends Error {
  override readonly name = "ReplyError";
}

export interface StreamEntry {
  readonly ms: number;
  readonly sequence: number;
  readonly fields: readonly string[];
}

/** Of each type what it holds. A sorted set's order is made when it is asked for. */
interface Types {
  string: { text: string };
  hash: Map<string, string>;
  set: Set<string>;
  zset: { readonly scores: Map<string, number>; sorted: [member: string, score: number][] | null };
  list: string[];
  stream: { lastMs: number; lastSequence: number; entries: StreamEntry[] };
}

type Type = keyof Types;

const EMPTY: { readonly [T in Type]: () => Types[T] } = {
  string: () => ({ text: "" }),
  hash: () => new Map(),
  set: () => new Set(),
  zset: () => ({ scores: new Map(), sorted: null }),
  list: () => [],
  stream: () => ({ lastMs: 0, lastSequence: 0, entries: [] }),
};

export interface Entry {
  readonly type: Type;
  readonly value: Types[Type];
  expiresMs: number | null;
}

/** Keys as plain data, so that they can be copied whole. */
export type Snapshot = ReadonlyMap<string, Entry>;

/** The keys of a Redis whose clock is `nowMs` (Unix time), which may be set back. */
export class Keyspace {
  private keys = new Map<string, Entry>();

  constructor(readonly nowMs: () => number) {}

  entry(key: string): Entry | undefined {
    const entry = this.keys.get(key);
    if (entry === undefined || !this.isOver(entry)) return entry;
    this.keys.delete(key);
    return undefined;
  }

  private isOver({ expiresMs }: Entry): boolean {
    return expiresMs !== null && this.nowMs() > expiresMs;
  }

  read<T extends Type>(key: string, type: T): Types[T] | undefined {
    const entry = this.entry(key);
    if (entry === undefined) return undefined;
    if (entry.type !== type) {
      throw new ReplyError("WRONGTYPE Operation against a key holding the wrong kind of value");
    }
    // The type says what it is.
    return entry.value as Types[T];
  }

  /** The key's value, which is made if there is none. */
  make<T extends Type>(key: string, type: T): Types[T] {
    const known = this.read(key, type);
    if (known !== undefined) return known;
    const value: Types[T] = EMPTY[type]();
    this.keys.set(key, { type, value, expiresMs: null });
    return value;
  }

  delete(key: string): boolean {
    return this.entry(key) !== undefined && this.keys.delete(key);
  }

  put(key: string, entry: Entry): void {
    this.keys.set(key, entry);
  }

  /** In their order of making. */
  names(): string[] {
    return [...this.keys.keys()].filter((key) => this.entry(key) !== undefined);
  }

  *beginningWith(prefix: string): Generator<string> {
    for (const key of this.keys.keys()) if (key.startsWith(prefix)) yield key;
  }

  /** Removes what has expired, as Redis does by and by, and names it. */
  expire(): readonly string[] {
    const gone = [...this.keys].filter(([, entry]) => this.isOver(entry)).map(([key]) => key);
    for (const key of gone) this.keys.delete(key);
    return gone;
  }

  snapshot(): Snapshot {
    return structuredClone(this.keys);
  }

  /** Forgets all that came after the snapshot, as a Redis does that lost its last writes. */
  restore(snapshot: Snapshot): void {
    this.keys = new Map(structuredClone(snapshot));
  }
}
