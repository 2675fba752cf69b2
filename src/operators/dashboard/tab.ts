import type { Tenant } from "../../../clients/typescript/generated.ts";

/** What each part of a tenant's page is given. */
export interface TabProps {
  readonly tenant: Tenant;
  /** Reads the tenant again. */
  onChanged(): void;
}
