import { Type } from "@sinclair/typebox";
import type { ContentKind } from "../../http/content-kind.ts";
import { EmailComposer } from "./email-composer.ts";
import { parsePayload } from "./payload.ts";

const EmailJobContent = Type.Object(
  {
    channel: Type.Literal("email"),
    from: Type.Union([Type.String(), Type.Null()], { description: "The tenant's sender; null: the platform's." }),
    to: Type.String(),
    subject: Type.String(),
    html: Type.String({ description: "Without pixel and tracked links. Show it in a sandboxed frame only." }),
    text: Type.Union([Type.String(), Type.Null()]),
  },
  { $id: "EmailJobContent" },
);

const composer = new EmailComposer();

/** The message as its template is now. */
export const emailContentKind: ContentKind = {
  channel: "email",
  schema: EmailJobContent,
  example: {
    channel: "email",
    from: "shop@example.com",
    to: "ann@example.com",
    subject: "Welcome, Ann",
    html: "<p>Hello Ann</p>",
    text: "Hello Ann",
  },
  async show(tenant, text) {
    const payload = parsePayload(text);
    if (payload === null) return null;
    const composed = composer.compose(payload, tenant);
    if (composed.kind === "impossible") return null;
    const { subject, html, text: filled } = composed.content;
    return {
      channel: "email",
      from: tenant.emailSender?.fromAddress ?? null,
      to: payload.to,
      subject,
      html: html.template.html(html.values),
      text: filled === null ? null : filled.template.text(filled.values),
    };
  },
};
