/** File formats for exported events. */
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

/** Exports the event store's events for analysts. */
export interface EventExport {
  /**
   * The bytes of a file with the events of all channels, by tenant and id: tenant_id, event_id, created_at, job_id,
   * channel, event_type, result. The file contains events that existed at its start once, and later ones at most once.
   *
   * Rejects with `UnavailableError` before the first bytes; after that, the iteration throws, and the bytes so far are
   * not a complete file. Aborting `signal` or ending the iteration early cancels the export.
   */
  open(query: ExportQuery, signal: AbortSignal): Promise<AsyncGenerator<Uint8Array, void>>;
}
