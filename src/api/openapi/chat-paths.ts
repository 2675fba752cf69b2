import type { JsonObject } from "../../core/json.ts";
import { aliasBody } from "../dash/alias-body.ts";
import { whatsappCredentialsBody } from "../dash/whatsapp-credentials.ts";
import { pathParameter } from "./answers.ts";
import { NOT_FOUND, operation, tenantId } from "./operator-operation.ts";
import { sendOperation } from "./send-operation.ts";

const alias = pathParameter("alias", "What `template_id` names.", "order_shipped");
const ALIAS: JsonObject = {
  alias: "order_shipped",
  meta_name: "order_shipped_hx0123456789abcdef",
  language_code: "es",
  params: ["customer's name", "order number"],
  header: { type: "image", link: "https://api.example.com/parcel.png" },
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
      summary: "Set a tenant's own phone number for chat; stored encrypted, never given back",
      parameters: [tenantId],
      body: whatsappCredentialsBody,
      status: "204",
      answers: null,
      alsoFails: NOT_FOUND,
    }),
  },
};
