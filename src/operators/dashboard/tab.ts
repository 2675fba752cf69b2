import type { Tenant } from "../../../clients/typescript/generated.ts";

/** The properties of each part of a tenant's page. */
export interface TabProps {
  readonly tenant: Tenant;
  /** Reads the tenant again. */
  onChanged(): void;
}
