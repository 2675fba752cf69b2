/** Encrypts the content of failed jobs, so that the event store, its backups and its readers cannot read it. */
export interface ContentSeal {
  seal(tenantId: string, jobId: string, text: string): string;
  /** Decrypts a sealed text. Null: it was altered, or sealed with a key that is not configured. */
  open(tenantId: string, jobId: string, sealed: string): string | null;
}
