import { type TProperties, Type } from "@sinclair/typebox";

/** Members of a change: each may be left out, or be null, which removes what was there. None has a default. */
export function partOf(members: TProperties): TProperties {
  return Object.fromEntries(
    Object.entries(members).map(([name, member]) => {
      const given = { ...member, default: undefined };
      return [name, Type.Optional(Type.Union([given, Type.Null()]))];
    }),
  );
}
