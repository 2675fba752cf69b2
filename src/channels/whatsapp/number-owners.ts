import type { Clock } from "../../domain/clock.ts";

export interface NumberOwnersPorts {
  /** Returns the number ids of all tenants that have a sending number of their own, by tenant. */
  read(): Promise<ReadonlyMap<string, string>>;
  readonly clock: Pick<Clock, "monotonicMs">;
}

/** A number without a known owner is looked up again after this: a tenant may have stored it since. */
const UNKNOWN_MS = 1_000;
/** How long a number may still count as its former tenant's. */
const KNOWN_MS = 10_000;
/** If reading many numbers takes long, at most one eleventh of the time is spent on it. */
const REST_FACTOR = 10;

/**
 * Finds the tenants that own sending numbers. The registry stores them encrypted, each with its tenant, so all of them
 * are read at once and cached for a short time.
 */
export class NumberOwners {
  private owners: ReadonlyMap<string, readonly string[]> = new Map();
  private readAtMs = Number.NEGATIVE_INFINITY;
  private tookMs = 0;
  private reading: Promise<void> | null = null;

  constructor(private readonly ports: NumberOwnersPorts) {}

  /** Returns the tenants that own each number, without numbers that no tenant owns. Rejects if they cannot be read. */
  async of(phoneNumberIds: ReadonlySet<string>): Promise<ReadonlyMap<string, readonly string[]>> {
    const ageMs = this.ports.clock.monotonicMs() - this.readAtMs;
    const isKnown = Array.from(phoneNumberIds).every((id) => this.owners.has(id));
    const freshMs = Math.max(isKnown ? KNOWN_MS : UNKNOWN_MS, (1 + REST_FACTOR) * this.tookMs);
    if (ageMs >= freshMs) await this.renew(isKnown);
    return new Map(
      Array.from(phoneNumberIds).flatMap((id) => {
        const tenantIds = this.owners.get(id);
        return tenantIds === undefined ? [] : [[id, tenantIds] as const];
      }),
    );
  }

  /** Reads the owners again; while the registry is unavailable, the last known ones are used. */
  private async renew(isKnown: boolean): Promise<void> {
    this.reading ??= this.read();
    await (isKnown ? this.reading.catch(() => undefined) : this.reading);
  }

  private async read(): Promise<void> {
    const sentAtMs = this.ports.clock.monotonicMs();
    try {
      const numbers = await this.ports.read();
      const owners = Map.groupBy(numbers, ([, phoneNumberId]) => phoneNumberId);
      this.owners = new Map(Array.from(owners, ([id, own]) => [id, own.map(([tenantId]) => tenantId)]));
      this.readAtMs = sentAtMs;
      this.tookMs = this.ports.clock.monotonicMs() - sentAtMs;
    } finally {
      this.reading = null;
    }
  }
}
