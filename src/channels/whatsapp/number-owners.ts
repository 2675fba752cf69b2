import type { Clock } from "../../domain/clock.ts";

export interface NumberOwnersPorts {
  /** The number's id of every tenant that has a sending number of its own, by tenant. */
  read(): Promise<ReadonlyMap<string, string>>;
  readonly clock: Pick<Clock, "monotonicMs">;
}

/** A number that nobody is known to own is looked up again after this: somebody may have got it. */
const UNKNOWN_MS = 1_000;
/** How long a number may count as a tenant's that is not any more. */
const KNOWN_MS = 10_000;
/** Where a reading takes long, because there are many numbers, at most every eleventh moment is spent on one. */
const REST_FACTOR = 10;

/**
 * Whose own the sending numbers are. The registry holds them sealed, each with its tenant, so all of them are read at
 * once and remembered for a short time.
 */
export class NumberOwners {
  private owners: ReadonlyMap<string, readonly string[]> = new Map();
  private readAtMs = Number.NEGATIVE_INFINITY;
  private tookMs = 0;
  private reading: Promise<void> | null = null;

  constructor(private readonly ports: NumberOwnersPorts) {}

  /** The tenants whose own each number is; numbers that are nobody's are left out. Rejects if they cannot be read. */
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

  /** While the registry is away, what was known lately is better than nothing. */
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
