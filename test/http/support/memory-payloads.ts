import type { PayloadRef, PayloadStore } from "../../../src/domain/payload-store.ts";

/** Large payloads in memory, and failures on order. */
export class MemoryPayloads implements PayloadStore {
  /** By "<tenant> <job>". */
  readonly stored = new Map<string, Uint8Array>();
  /** All that were ever put. */
  readonly puts: string[] = [];
  /** Rejects the next calls, as a store that is away does. */
  failure: Error | null = null;

  async put(ref: PayloadRef, payload: Uint8Array): Promise<void> {
    this.answer();
    this.puts.push(keyOf(ref));
    this.stored.set(keyOf(ref), payload);
  }

  async get(ref: PayloadRef): Promise<Uint8Array | null> {
    this.answer();
    return this.stored.get(keyOf(ref)) ?? null;
  }

  async remove(ref: PayloadRef): Promise<void> {
    this.answer();
    this.stored.delete(keyOf(ref));
  }

  async *all(): AsyncGenerator<readonly PayloadRef[]> {
    this.answer();
    yield Array.from(this.stored.keys(), (key) => {
      const [tenantId = "", jobId = ""] = key.split(" ");
      return { tenantId, jobId };
    });
  }

  private answer(): void {
    if (this.failure !== null) throw this.failure;
  }
}

function keyOf({ tenantId, jobId }: PayloadRef): string {
  return `${tenantId} ${jobId}`;
}
