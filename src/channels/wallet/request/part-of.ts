import type { TProperties } from "@sinclair/typebox";
import { optional } from "../../../http/schemas.ts";

/** Members of a change: each may be absent, or null to remove the previous value. None has a default. */
export function partOf(members: TProperties): TProperties {
  return Object.fromEntries(
    Object.entries(members).map(([name, member]) => [name, optional({ ...member, default: undefined })]),
  );
}
