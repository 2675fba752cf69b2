import type { TProperties } from "@sinclair/typebox";
import { optional } from "../../../http/schemas.ts";

/** Members of a change: each may be left out, or be null, which removes what was there. None has a default. */
export function partOf(members: TProperties): TProperties {
  return Object.fromEntries(
    Object.entries(members).map(([name, member]) => [name, optional({ ...member, default: undefined })]),
  );
}
