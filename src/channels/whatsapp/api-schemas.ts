import type { JsonObject } from "../../domain/json.ts";
import { limits } from "../../domain/limits.ts";
import { HEADER_MEDIA_TYPES, LANGUAGE_CODE } from "../../domain/whatsapp.ts";

/** Bodies of the chat channel's calls. */
export const chatSchemas: JsonObject = {
  ChatSend: {
    type: "object",
    required: ["phone_number", "template_id"],
    properties: {
      phone_number: {
        type: "string",
        pattern: "^[0-9]{7,15}$",
        description: "International format: digits only, with the country's code and without a plus sign.",
      },
      template_id: {
        type: "string",
        minLength: 1,
        maxLength: limits.chatTemplateNameCharsMax,
        description: "An alias of the tenant's, or else the provider's exact name of the template.",
      },
      language_code: {
        type: "string",
        pattern: LANGUAGE_CODE.source,
        description: "The template's language. By default the alias's, or else `es`.",
      },
      params: {
        type: "array",
        maxItems: limits.chatParamsMax,
        items: { type: ["string", "number", "boolean"], maxLength: limits.chatParamCharsMax },
        description:
          "Values of `{{1}}`, `{{2}}`, … in order. Numbers and booleans become text. No line breaks, tabs or other " +
          "control characters, and at most four blanks in a row: the provider takes no others.",
      },
    },
  },
  Alias: {
    type: "object",
    required: ["alias", "meta_name", "language_code", "params", "header"],
    properties: {
      alias: { type: "string" },
      meta_name: { type: "string", description: "The provider's name of the template." },
      language_code: { type: ["string", "null"], description: "Null: the service's default, `es`." },
      params: { type: "array", items: { type: "string" }, description: "What each position holds." },
      header: {
        type: ["object", "null"],
        required: ["type"],
        properties: {
          type: { type: "string", enum: HEADER_MEDIA_TYPES },
          link: { type: "string", format: "uri", description: "An https address. Either this or `id`." },
          id: { type: "string", description: "The provider's id of uploaded media." },
          filename: { type: "string", description: "Documents only." },
        },
      },
    },
  },
  AliasList: {
    type: "object",
    required: ["aliases"],
    properties: { aliases: { type: "array", items: { $ref: "#/components/schemas/Alias" } } },
  },
  IncomingMessagePage: {
    type: "object",
    required: ["messages", "next_cursor"],
    properties: {
      messages: {
        type: "array",
        items: {
          type: "object",
          required: ["message_id", "phone_number_id", "from", "name", "type", "received_at", "content"],
          properties: {
            message_id: { type: "string", description: "The provider's." },
            phone_number_id: { type: ["string", "null"], description: "The number that it came to." },
            from: { type: "string" },
            name: { type: ["string", "null"], description: "What the writer calls itself." },
            type: { type: "string", description: "The provider's word: `text`, `image`, `button`, …" },
            received_at: { type: "string", format: "date-time" },
            content: {
              type: ["object", "null"],
              additionalProperties: true,
              description: "As the provider sent it; null where that was too long to be kept.",
            },
          },
        },
      },
      next_cursor: { type: ["string", "null"], description: "Pass it as `cursor`; null on the last page." },
    },
  },
  WhatsappWebhook: {
    type: "object",
    additionalProperties: true,
    properties: {
      object: { type: "string" },
      entry: {
        type: "array",
        items: {
          type: "object",
          properties: {
            id: { type: "string" },
            changes: {
              type: "array",
              items: {
                type: "object",
                properties: {
                  field: { type: "string" },
                  value: {
                    type: "object",
                    properties: {
                      statuses: { type: "array", items: { type: "object" } },
                      messages: { type: "array", items: { type: "object" } },
                    },
                  },
                },
              },
            },
          },
        },
      },
    },
  },
  WebhookReceived: {
    type: "object",
    required: ["status"],
    properties: { status: { type: "string", const: "received" } },
  },
};
