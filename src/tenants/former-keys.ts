import type { Clock } from "../domain/clock.ts";
import { apiKeyHash } from "./api-key.ts";

const KNOWN_MAX = 10_000;
/** As long as any change takes to be seen everywhere: a process of the former release may still be making such keys. */
const READ_AGAIN_MS = 1_000;
/** Invented keys trigger reading as often as allowed: at most this share of the time. */
const READING_SHARE = 1 / 20;

export interface FormerKeysOptions {
  /** The hashes of keys made before keys had a checksum, up to the limit. */
  read(limit: number): Promise<readonly string[]>;
  readonly clock: Clock;
}

/**
 * Knows the keys made before keys had a checksum, so an invented key of that form costs no lookup. If there are more than fit
 * in memory, any such key may be genuine.
 */
export class FormerKeys {
  /** Null: too many to keep. */
  private hashes: ReadonlySet<string> | null = new Set();
  private readAgainAtMs = Number.NEGATIVE_INFINITY;
  private reading: Promise<void> | null = null;

  constructor(private readonly options: FormerKeysOptions) {}

  /** Whether a key without a checksum may be genuine. Rejects with `UnavailableError` if the registry cannot be reached. */
  mayHave(apiKey: string): boolean | Promise<boolean> {
    const hash = apiKeyHash(apiKey);
    if (this.has(hash)) return true;
    if (this.options.clock.monotonicMs() < this.readAgainAtMs) return false;
    this.reading ??= this.read().finally(() => (this.reading = null));
    return this.reading.then(() => this.has(hash));
  }

  private has(hash: string): boolean {
    return this.hashes === null || this.hashes.has(hash);
  }

  private async read(): Promise<void> {
    const { clock } = this.options;
    const startedMs = clock.monotonicMs();
    const found = await this.options.read(KNOWN_MAX + 1);
    const tookMs = clock.monotonicMs() - startedMs;
    this.hashes = found.length > KNOWN_MAX ? null : new Set(found);
    this.readAgainAtMs = startedMs + Math.max(READ_AGAIN_MS, tookMs / READING_SHARE);
  }
}
