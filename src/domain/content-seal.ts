/** Encrypts what failed jobs were to send, so that the event store, its backups and its readers do not see it. */
export interface ContentSeal {
  seal(tenantId: string, jobId: string, text: string): string;
  /** Null: it was altered, or sealed with a key that is not here. */
  open(tenantId: string, jobId: string, sealed: string): string | null;
}
