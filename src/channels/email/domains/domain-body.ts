import { Type } from "@sinclair/typebox";

/** Body of `POST /dash/api/tenants/{id}/domains`. */
export const domainBody = Type.Object(
  {
    domain: Type.String({ maxLength: 253, description: "a domain name, such as mail.example.com" }),
    relay_enabled: Type.Optional(Type.Boolean({ description: "true or false, by default true" })),
    smtp_enabled: Type.Optional(Type.Boolean({ description: "true or false, by default false" })),
  },
  { additionalProperties: false, examples: [{ domain: "mail.acme.example" }] },
);
