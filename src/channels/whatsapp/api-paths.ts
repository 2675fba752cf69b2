import type { JsonObject } from "../../domain/json.ts";
import { answer, errors, pathParameter, queryParameter, textAnswer } from "../../http/openapi/answers.ts";
import { NOT_FOUND, operation, paging, tenantId } from "../../http/openapi/operator-operation.ts";
import { sendOperation } from "../../http/openapi/send-operation.ts";
import { aliasBody } from "./alias-body.ts";
import { whatsappCredentialsBody } from "./credential-routes.ts";

const alias = pathParameter("alias", "What `template_id` names.", "order_shipped");
const ALIAS: JsonObject = {
  alias: "order_shipped",
  meta_name: "order_shipped_hx0123456789abcdef",
  language_code: "es",
  params: ["customer's name", "order number"],
  header: { type: "image", link: "https://api.example.com/parcel.png" },
};

const INCOMING: JsonObject = {
  message_id: "wamid.HBgNNTQ5MTEyMjMzNDQ1NRUCABIYFDNBOTk",
  phone_number_id: "106540352242922",
  from: "5491122334455",
  name: "Ada",
  type: "text",
  received_at: "2026-11-21T07:30:00.000Z",
  content: { from: "5491122334455", id: "wamid.HBgN", timestamp: "1795247400", type: "text", text: { body: "Hi" } },
};

/** What has to do with chat messages alone. */
export const chatPaths: JsonObject = {
  "/v1/send/whatsapp": {
    post: sendOperation({
      id: "sendWhatsapp",
      summary: "Queue a chat message",
      description:
        "A template that the provider has approved, and the values of its positions. 202 means: on disk. 500 where " +
        "neither the tenant nor the platform has credentials for the provider.",
      schema: "ChatSend",
      examples: {
        template: {
          summary: "From a template",
          value: {
            phone_number: "5491122334455",
            template_id: "order_shipped",
            language_code: "es",
            params: ["Ada", 1042],
          },
        },
      },
    }),
  },
  "/dash/api/tenants/{id}/aliases": {
    get: operation({
      id: "listAliases",
      tag: "Tenants",
      summary: "List a tenant's names for chat templates",
      parameters: [tenantId],
      status: "200",
      answers: { schema: "AliasList", example: { aliases: [ALIAS] } },
      alsoFails: NOT_FOUND,
    }),
  },
  "/dash/api/tenants/{id}/aliases/{alias}": {
    get: operation({
      id: "getAlias",
      tag: "Tenants",
      summary: "One alias",
      parameters: [tenantId, alias],
      status: "200",
      answers: { schema: "Alias", example: ALIAS },
      alsoFails: NOT_FOUND,
    }),
    put: operation({
      id: "putAlias",
      tag: "Tenants",
      summary: "Create or replace a tenant's name for a chat template",
      parameters: [tenantId, alias],
      body: aliasBody,
      status: "200",
      answers: { schema: "Alias", example: ALIAS },
      alsoFails: { ...NOT_FOUND, "409": "OperatorConflict" },
    }),
    delete: operation({
      id: "deleteAlias",
      tag: "Tenants",
      summary: "Delete an alias",
      parameters: [tenantId, alias],
      status: "204",
      answers: null,
      alsoFails: NOT_FOUND,
    }),
  },
  "/dash/api/tenants/{id}/credentials/whatsapp": {
    put: operation({
      id: "putWhatsappCredentials",
      tag: "Tenants",
      summary:
        "Set a tenant's own phone number for chat, used where allow_custom names whatsapp; stored encrypted, never given back",
      parameters: [tenantId],
      body: whatsappCredentialsBody,
      status: "204",
      answers: null,
      alsoFails: NOT_FOUND,
    }),
  },
  "/dash/api/whatsapp/messages": {
    get: operation({
      id: "listIncomingMessages",
      tag: "Chat",
      summary: "What people wrote to the numbers that are sent from, newest first; the newest ones are kept",
      parameters: paging,
      status: "200",
      answers: { schema: "IncomingMessagePage", example: { messages: [INCOMING], next_cursor: null } },
      alsoFails: { "400": "OperatorBadRequest" },
    }),
  },
  "/webhook/whatsapp": {
    get: {
      operationId: "answerWhatsappChallenge",
      tags: ["Chat"],
      summary: "Tells the chat provider that this address is the one that it was given",
      security: [],
      parameters: [
        { ...queryParameter("hub.mode", "`subscribe`.", { type: "string" }), required: true },
        { ...queryParameter("hub.verify_token", "The webhook secret.", { type: "string" }), required: true },
        { ...queryParameter("hub.challenge", "Given back.", { type: "string" }), required: true },
      ],
      responses: {
        "200": textAnswer("The challenge, as it is.", "text/plain"),
        ...errors({ "400": "WebhookBadRequest", "403": "WebhookForbidden" }),
      },
    },
    post: {
      operationId: "takeWhatsappWebhook",
      tags: ["Chat"],
      summary: "Takes what the chat provider reports: statuses of messages, and messages that came in",
      description:
        "Answered once everything is on disk. Safe to repeat, and repeated by the provider unless it was answered 200. " +
        "Statuses `sent`, `delivered`, `read` and `failed` become events; others, and parts of an unknown form, are " +
        "counted and left alone.",
      security: [{ webhookSignature: [] }],
      requestBody: {
        required: true,
        content: { "application/json": { schema: { $ref: "#/components/schemas/WhatsappWebhook" } } },
      },
      responses: {
        "200": answer({ description: "Recorded.", schema: "WebhookReceived", example: { status: "received" } }),
        ...errors({
          "400": "WebhookBadRequest",
          "401": "WebhookUnsigned",
          "413": "WebhookTooLarge",
          "500": "PublicInternalError",
          "503": "WebhookCrowded",
        }),
      },
    },
  },
};
