import { and, isNull, lt, or, type SQL } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import type { Clock } from "../domain/clock.ts";
import { remember } from "../domain/remember.ts";
import { Repeated } from "../domain/repeated.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import { logFailure } from "../domain/telemetry.ts";
import { among } from "./analysts/statement-texts.ts";

/** How often uses are written, all in one statement. */
const WRITE_MS = 5_000;
/** A use within this time of the last recorded one is not recorded. */
const USE_NOTED_MS = 60_000;
/** A use within this time of the stored one is not written: processes that share a minute write it once. */
const SAME_USE_MS = 55_000;
/** The most ids in one statement. */
const WRITTEN_AT_ONCE = 1_000;
const IDS_MAX = 50_000;

export interface LastUsesOptions {
  /** Writes uses, unless a later one is stored, or one of the same minute. */
  write(uses: readonly Use[]): Promise<unknown>;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

export interface Use {
  readonly id: string;
  readonly at: Date;
}

/**
 * Records in memory when secrets were last used, and writes that in the background, at most once a minute each.
 * Requests do not wait for it. Unwritten uses are lost when a process dies: they only show when a secret was last used,
 * to the minute.
 *
 * Bounded: of more than `IDS_MAX` ids, the ones recorded first are forgotten first, and may be written more often.
 */
export class LastUses {
  private readonly notedAtMs = new Map<string, number>();
  private readonly unwritten = new Map<string, Date>();
  private readonly writes: Repeated;

  constructor(private readonly options: LastUsesOptions) {
    this.writes = new Repeated(
      () => this.write(),
      options.clock,
      () => WRITE_MS,
    );
  }

  note(id: string): void {
    const nowMs = this.options.clock.monotonicMs();
    const notedMs = this.notedAtMs.get(id);
    if (notedMs !== undefined && nowMs - notedMs < USE_NOTED_MS) return;
    remember(this.notedAtMs, { key: id, value: nowMs, max: IDS_MAX });
    if (this.unwritten.size < IDS_MAX) this.unwritten.set(id, new Date(this.options.clock.nowMs()));
  }

  /** Call once only. */
  start(): void {
    this.writes.start();
  }

  /** Writes the recorded uses, then stops. Safe to repeat. */
  async stop(): Promise<void> {
    await this.writes.stop();
    await this.write();
  }

  /** Writes the recorded uses. Never rejects: uses that cannot be written now are written later. */
  async write(): Promise<void> {
    while (this.unwritten.size > 0) {
      const uses = Array.from(this.unwritten, ([id, at]) => ({ id, at })).slice(0, WRITTEN_AT_ONCE);
      for (const { id } of uses) this.unwritten.delete(id);
      try {
        await this.options.write(uses);
      } catch (error) {
        for (const { id, at } of uses) if (!this.unwritten.has(id)) this.unwritten.set(id, at);
        logFailure(this.options.telemetry, "last uses could not be written", error);
        return;
      }
    }
  }
}

/** Selects the time of the latest of these uses, and the rows that do not yet have it or one of the same minute. */
export function newUses(
  uses: readonly Use[],
  { id, lastUsedAt }: { readonly id: PgColumn; readonly lastUsedAt: PgColumn },
): { readonly at: Date; readonly where: SQL | undefined } {
  const at = new Date(Math.max(...uses.map((use) => use.at.getTime())));
  const used = among(
    id,
    uses.map((use) => use.id),
  );
  const isNew = or(isNull(lastUsedAt), lt(lastUsedAt, new Date(at.getTime() - SAME_USE_MS)));
  return { at, where: and(used, isNew) };
}
