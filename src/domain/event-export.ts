/** What a file of events can be written as. */
export const EXPORT_FORMATS = ["ndjson", "csv", "parquet"] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

export interface ExportQuery {
  /** Null: all tenants. */
  readonly tenantId: string | null;
  /** Event ids in [from, to). */
  readonly fromEventId: number;
  readonly toEventId: number;
  readonly format: ExportFormat;
}

/** Copies of the event store's events for analysts. */
export interface EventExport {
  /**
   * The bytes of a file with the events of all channels, by tenant and id: tenant_id, event_id, created_at, job_id,
   * channel, event_type, result. Events that were there when it began are in it once, later ones at most once.
   *
   * Rejects with `UnavailableError` while nothing of it has been handed out; once it has, the iteration throws, and what
   * came is no whole file. `signal` gives it up, as does ending the iteration early.
   */
  open(query: ExportQuery, signal: AbortSignal): Promise<AsyncGenerator<Uint8Array, void>>;
}
