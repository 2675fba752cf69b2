import { isJsonObject } from "../../domain/texts/json.ts";
import type { Endpoint } from "../../http/endpoint.ts";
import { batchEndpoint } from "../../http/sending/batch-endpoint.ts";
import { acceptWithoutPass, carrying, type PassDesk } from "../../http/sending/carried-pass.ts";
import { sendEndpoint } from "../../http/sending/send-endpoint.ts";
import type { SendKind } from "../../http/sending/serve-send.ts";
import { acceptEmailCarrying } from "./carried-pass.ts";
import { emailLimits } from "./limits.ts";
import { acceptEmail, EmailSend } from "./request.ts";

/**
 * `POST /v1/send/email`.
 *
 * @param desk accepts passes that messages carry; null if messages cannot carry any
 * @param accept checks bodies if there is no desk
 */
export function sendEmail(desk: PassDesk | null, accept: SendKind["accept"] = acceptEmail): Endpoint {
  return sendEndpoint({
    path: "/v1/send/email",
    name: "send_email",
    operation: "sendEmail",
    summary: "Queue an e-mail",
    description:
      "Content comes from a template (`template_id`) or from inline `html`. A message with a `pass` makes the pass first, for 1 " +
      "token. 202 means: on disk.",
    channel: "email",
    scope: "email",
    bounds: {
      bytesMax: emailLimits.sendBytesMax,
      isAllowed: (body) => isJsonObject(body) && Array.isArray(body["attachments"]) && body["attachments"].length > 0,
    },
    body: {
      schema: desk === null ? EmailSend : carrying(EmailSend, desk),
      examples: {
        template: {
          summary: "From a template",
          value: { to_address: "ada@example.com", to_name: "Ada", template_id: "welcome", data: { name: "Ada" } },
        },
        html: {
          summary: "Inline HTML",
          value: {
            to_address: "ada@example.com",
            subject: "Order {{.number}}",
            html: "<p>On its way.</p>",
            data: { number: 1042 },
          },
        },
        copies: {
          summary: "With copies, a place for answers, text and an attachment",
          value: {
            to_address: "ada@example.com",
            cc: [{ address: "team@example.com", name: "Team" }],
            bcc: ["archive@example.com"],
            reply_to: "support@example.com",
            subject: "Invoice 1042",
            html: "<p>Your invoice is attached.</p>",
            text: "Your invoice is attached.",
            headers: { "X-Entity-Ref-ID": "invoice-1042" },
            attachments: [
              { filename: "invoice.txt", content: "SW52b2ljZSAxMDQyCg==", content_type: "text/plain; charset=utf-8" },
            ],
          },
        },
        ...(desk !== null && { pass: PASS }),
      },
    },
    ...(desk !== null && { fails: { 402: desk.noTokens } }),
    accept: desk === null ? accept : acceptEmailCarrying(desk),
  });
}

const PASS = {
  summary: "With a pass for Apple's wallet, which is attached",
  value: {
    to_address: "ada@example.com",
    subject: "Your card",
    html: '<p>Add your card: <a href="{{.pass.download_url}}">here</a></p>',
    pass: {
      pass_type: "apple",
      pass_data: {
        serial_number: "card-2042",
        organization_name: "Acme",
        description: "Member card",
        style: "storeCard",
        primary_fields: [{ key: "points", label: "Points", value: "120" }],
      },
    },
  },
};

/** `POST /v1/send/email/batch`. */
export const sendEmailBatch: Endpoint = batchEndpoint({
  path: "/v1/send/email/batch",
  name: "send_email_batch",
  operation: "sendEmailBatch",
  summary: "Queue up to 1,000 e-mails",
  channel: "email",
  scope: "email",
  message: EmailSend,
  example: {
    defaults: { template_id: "welcome" },
    messages: [
      { to_address: "ada@example.com", data: { name: "Ada" } },
      { to_address: "bob@example.com", data: { name: "Bob" } },
    ],
  },
  accept: acceptWithoutPass(acceptEmail, "POST /v1/send/email"),
});
