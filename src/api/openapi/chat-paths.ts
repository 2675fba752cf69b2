import type { JsonObject } from "../../core/json.ts";
import { sendOperation } from "./send-operation.ts";

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
};
