import type { t as Types } from "elysia";

/** The body of a send as one would declare it in Elysia. */
export function sendBody(t: typeof Types) {
  return t.Object({
    to_address: t.String({ minLength: 3, maxLength: 254, pattern: "^[^@\\s]+@[^@\\s]+$" }),
    to_name: t.Optional(t.String({ maxLength: 200 })),
    subject: t.Optional(t.String({ maxLength: 998 })),
    template_id: t.Optional(t.String()),
    html: t.Optional(t.String({ minLength: 1, maxLength: 524_288 })),
    data: t.Optional(t.Record(t.String(), t.Unknown())),
  });
}
