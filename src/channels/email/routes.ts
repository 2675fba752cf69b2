import type { Endpoint } from "../../http/endpoint.ts";
import { batchEndpoint } from "../../http/sending/batch-endpoint.ts";
import { sendEndpoint } from "../../http/sending/send-endpoint.ts";
import { acceptEmail, EmailSend } from "./request.ts";

/** `POST /v1/send/email`. */
export const sendEmail: Endpoint = sendEndpoint({
  path: "/v1/send/email",
  name: "send_email",
  operation: "sendEmail",
  summary: "Queue an e-mail",
  description: "Content comes from a template (`template_id`) or from inline `html`. 202 means: on disk.",
  channel: "email",
  scope: "email",
  body: {
    schema: EmailSend,
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
    },
  },
  accept: acceptEmail,
});

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
  accept: acceptEmail,
});
