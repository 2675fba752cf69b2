import { Type } from "@sinclair/typebox";
import type { JsonObject } from "../../domain/texts/json.ts";
import type { ContentKind } from "../../http/content-kind.ts";
import { EmailComposer, writtenHtml } from "./email-composer.ts";
import { type Addressee, type EmailPayload, parsePayload } from "./payload.ts";

const EmailJobContent = Type.Object(
  {
    channel: Type.Literal("email"),
    from: Type.Union([Type.String(), Type.Null()], { description: "The tenant's sender; null: the platform's." }),
    to: Type.String(),
    cc: Type.Optional(Type.Array(Type.String())),
    bcc: Type.Optional(Type.Array(Type.String())),
    reply_to: Type.Optional(Type.Array(Type.String())),
    headers: Type.Optional(Type.Record(Type.String(), Type.String())),
    attachments: Type.Optional(
      Type.Array(
        Type.Object({
          filename: Type.String(),
          bytes: Type.Integer(),
          content_type: Type.Union([Type.String(), Type.Null()]),
          content_id: Type.Union([Type.String(), Type.Null()]),
        }),
        {
          description:
            "Names and sizes; the files themselves are not shown. A message that came by SMTP and is sent as it came is one " +
            "file, `message.eml`: `subject`, `html` and `text` are what people see of it.",
        },
      ),
    ),
    subject: Type.String(),
    html: Type.String({
      description:
        "Without pixel and tracked links. Show it in a sandboxed frame only. Empty: the message is text alone.",
    }),
    text: Type.Union([Type.String(), Type.Null()]),
  },
  { $id: "EmailJobContent" },
);

const composer = new EmailComposer();

/** Renders a queued message with the present version of its template. */
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
      ...furtherMembers(payload),
      subject,
      html: writtenHtml({ html }),
      text: filled === null ? null : filled.template.text(filled.values),
    };
  },
};

/** Returns members that few messages have. */
function furtherMembers({ cc, bcc, replyTo, headers, attachments, kept }: EmailPayload): JsonObject {
  const addresses = (list: readonly Addressee[]) => list.map(({ address }) => address);
  return {
    ...(cc && { cc: addresses(cc) }),
    ...(bcc && { bcc: addresses(bcc) }),
    ...(replyTo && { reply_to: addresses(replyTo) }),
    ...(headers && { headers: { ...headers } }),
    ...(attachments && {
      attachments: attachments.map(({ filename, bytes, contentType, contentId }) => ({
        filename,
        bytes,
        content_type: contentType ?? null,
        content_id: contentId ?? null,
      })),
    }),
    ...(kept && {
      attachments: [{ filename: "message.eml", bytes: kept.bytes, content_type: "message/rfc822", content_id: null }],
    }),
  };
}
