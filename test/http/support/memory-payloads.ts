import type { Clock } from "../../../src/domain/clock.ts";
import type { PayloadRef, PayloadStore, StoredRef } from "../../../src/domain/jobs/payload-store.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";

/** Large payloads in memory, with failures on demand. */
export class MemoryPayloads implements PayloadStore {
  /** By "<tenant> <job>". */
  readonly stored = new Map<string, Uint8Array>();
  /** All payloads ever stored. */
  readonly puts: string[] = [];
  /** Rejects the next calls, as an unavailable store does. */
  failure: Error | null = null;
  private readonly storedMs = new Map<string, number>();

  constructor(private readonly clock: Pick<Clock, "nowMs"> = systemClock) {}

  async put(ref: PayloadRef, payload: Uint8Array): Promise<void> {
    this.answer();
    this.puts.push(formatKey(ref));
    this.stored.set(formatKey(ref), payload);
    this.storedMs.set(formatKey(ref), this.clock.nowMs());
  }

  async get(ref: PayloadRef): Promise<Uint8Array | null> {
    this.answer();
    return this.stored.get(formatKey(ref)) ?? null;
  }

  async remove(ref: PayloadRef): Promise<void> {
    this.answer();
    this.stored.delete(formatKey(ref));
  }

  async removeFound(found: StoredRef): Promise<void> {
    if ((this.storedMs.get(formatKey(found)) ?? 0) <= found.storedMs) await this.remove(found);
  }

  async *all(): AsyncGenerator<readonly StoredRef[]> {
    this.answer();
    yield Array.from(this.stored.keys(), (key) => {
      const [tenantId = "", jobId = ""] = key.split(" ");
      const storedMs = this.storedMs.get(key) ?? 0;
      return { tenantId, jobId, storedMs, ageMs: this.clock.nowMs() - storedMs };
    });
  }

  private answer(): void {
    if (this.failure !== null) throw this.failure;
  }
}

function formatKey({ tenantId, jobId }: PayloadRef): string {
  return `${tenantId} ${jobId}`;
}
