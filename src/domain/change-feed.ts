/** Tells every process that its cached data about a tenant is out of date. A hint: it can be lost, never wrong. */
export interface ChangeFeed {
  /** `tenantId` null: all tenants (a plan changed). Never rejects. */
  announce(tenantId: string | null): void;
  onChange(listener: (tenantId: string | null) => void): () => void;
}
