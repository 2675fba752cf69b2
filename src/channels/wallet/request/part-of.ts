import type { TProperties } from "@sinclair/typebox";
import { optional } from "../../../http/schemas.ts";

/** Members laid over others: each may be absent or null. None has a default. */
export function toPart(members: TProperties): TProperties {
  return Object.fromEntries(
    Object.entries(members).map(([name, member]) => [name, optional({ ...member, default: undefined })]),
  );
}
