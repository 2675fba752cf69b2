import type { JsonObject } from "../../domain/json.ts";
import { errors, pathParameter, tenantAnswer } from "../../http/openapi/answers.ts";
import { NOT_FOUND, operation, tenantId } from "../../http/openapi/operator-operation.ts";
import { requestId, sendOperation } from "../../http/openapi/send-operation.ts";
import { appleCredentialsBody, googleCredentialsBody, walletWebhookBody } from "./operator-bodies.ts";

const PASS = "01936f2e-7c1a-7c44-8b1e-6d0f2a9be310";
const passId = pathParameter("id", "The pass_id in the result of the job that created the pass.", PASS);
const PAID = { "402": "NoTokens" } as const;
const PASS_ERRORS = {
  "401": "UnknownKey",
  "403": "Forbidden",
  "404": "NoSuchPass",
  "429": "TooManyRequests",
  "500": "InternalError",
} as const;
const tenantCall = { tags: ["Passes"], security: [{ apiKey: [] }] };
const APPLE: JsonObject = {
  pass_type: "apple",
  pass_data: {
    serial_number: "member-1042",
    organization_name: "Acme",
    description: "Member card",
    style: "storeCard",
    barcodes: [{ message: "1042", format: "PKBarcodeFormatQR", messageEncoding: "iso-8859-1" }],
    primary_fields: [{ key: "points", label: "Points", value: "120", changeMessage: "You have %@ points now" }],
  },
};
const generic: JsonObject = {
  pass_type: "google",
  pass_data: {
    class_id: "3388000000012345678.member",
    object_id: "3388000000012345678.member-1042",
    object_data: { header: { defaultValue: { language: "en", value: "Ada" } } },
  },
};
const ticket: JsonObject = {
  pass_type: "google",
  pass_data: {
    class_id: "3388000000012345678.final",
    class_type: "eventTicket",
    object_id: "3388000000012345678.ticket-7",
    object_data: { state: "ACTIVE", ticketHolderName: "Ada", barcode: { type: "QR_CODE", value: "7" } },
  },
};
const DESCRIPTION =
  "A pass costs 1 token, which is given back should the job fail. Keys of an Apple pass may be written as " +
  "`auxiliary_fields` or as Apple does (`auxiliaryFields`, which wins where both are there); further keys of Apple's " +
  "pass.json are taken in the same two spellings, unknown ones are refused. Images are PNGs in base64 or a data URL of " +
  "at most 2 MiB each. With `template_id`, type, style and whatever the request leaves out come from the template; " +
  "fields are merged by their key, text modules by their id, and where both say something the request wins.";

/** Wallet passes: what tenants create and change, and what operators set up for them. */
export const walletPaths: JsonObject = {
  "/v1/send/wallet": {
    post: sendOperation({
      id: "sendWallet",
      summary: "Queue a wallet pass",
      description: `${DESCRIPTION} A Google pass is a generic one unless \`class_type\` says otherwise.`,
      schema: "PassRequest",
      examples: { apple: { summary: "Apple", value: APPLE }, google: { summary: "Google", value: generic } },
      alsoFails: PAID,
    }),
  },
  "/v1/passes/create": {
    post: sendOperation({
      id: "createPass",
      summary: "Queue a wallet pass, a Google one as an event ticket",
      description: `${DESCRIPTION} A Google pass is an event ticket unless \`class_type\` says otherwise.`,
      schema: "PassRequest",
      examples: { apple: { summary: "Apple", value: APPLE }, google: { summary: "Google", value: ticket } },
      alsoFails: PAID,
    }),
  },
  "/v1/passes/{id}": {
    put: {
      ...tenantCall,
      operationId: "updatePass",
      summary: "Change a pass, and tell the devices that have it",
      description:
        "Fields are merged by their `key` (a Google object's text modules by their `id`), every other key is replaced, " +
        "null removes it; an empty image changes nothing. A field with `changeMessage` shows a banner, and so does " +
        "`notify_message` for a Google pass. It costs nothing. Versions follow the order in which updates are accepted.",
      parameters: [passId, requestId],
      requestBody: {
        required: true,
        content: {
          "application/json": {
            schema: { $ref: "#/components/schemas/PassUpdate" },
            examples: {
              apple: { value: { pass_data: { primary_fields: [{ key: "points", value: "130" }] } } },
              google: {
                value: {
                  pass_data: { textModulesData: [{ id: "gate", header: "Gate", body: "B" }] },
                  notify_message: "Your gate has changed",
                  notification_kind: "match.upcoming",
                },
              },
            },
          },
        },
      },
      responses: {
        "202": tenantAnswer({
          description: "Stored, and its delivery queued.",
          schema: "UpdatingPass",
          example: { pass_id: PASS, job_id: "01936f2e-7c1a-7b3e-9a55-2f1c8f0a4d11", status: "updating" },
        }),
        ...errors({ ...PASS_ERRORS, "400": "BadRequest", "413": "TooLarge" }),
      },
    },
  },
  "/v1/passes/{id}/download": {
    get: {
      ...tenantCall,
      operationId: "downloadPass",
      summary: "The file of an Apple pass",
      parameters: [passId, requestId],
      responses: {
        "200": {
          description: "The signed file of the pass's latest version.",
          content: { "application/vnd.apple.pkpass": { schema: { type: "string", format: "binary" } } },
        },
        ...errors(PASS_ERRORS),
      },
    },
  },
  "/v1/passes/{id}/status": {
    get: {
      ...tenantCall,
      operationId: "getPassStatus",
      summary: "Whether a pass is valid, and on how many devices",
      description: "A Google pass is looked up at Google each time.",
      parameters: [passId, requestId],
      responses: {
        "200": tenantAnswer({
          description: "The pass as it is now.",
          schema: "PassStatus",
          examples: {
            apple: {
              value: {
                pass_id: PASS,
                pass_type: "apple",
                version: 3,
                status: "active",
                installed_devices: 2,
                is_installed: true,
              },
            },
            google: {
              value: {
                pass_id: PASS,
                pass_type: "google",
                version: 1,
                status: "active",
                google_status: "ACTIVE",
                has_users: true,
                is_installed: true,
              },
            },
          },
        }),
        ...errors(PASS_ERRORS),
      },
    },
  },
  "/dash/api/tenants/{id}/credentials/apple": {
    put: operation({
      id: "putAppleCredentials",
      tag: "Tenants",
      summary: "Set what a tenant's own Apple passes are signed with; stored encrypted, never given back",
      parameters: [tenantId],
      body: appleCredentialsBody,
      status: "204",
      answers: null,
      alsoAnswers: {
        "200": {
          description: "Done, and no device of Apple's will accept what these credentials sign.",
          schema: "AppleCredentialsWarnings",
          example: { warnings: ["the certificate names no team"] },
        },
      },
      alsoFails: NOT_FOUND,
    }),
  },
  "/dash/api/tenants/{id}/credentials/google": {
    put: operation({
      id: "putGoogleCredentials",
      tag: "Tenants",
      summary: "Set a tenant's own issuer of Google passes; stored encrypted, never given back",
      parameters: [tenantId],
      body: googleCredentialsBody,
      status: "204",
      answers: null,
      alsoFails: NOT_FOUND,
    }),
  },
  "/dash/api/tenants/{id}/wallet-webhook": {
    put: operation({
      id: "putWalletWebhook",
      tag: "Tenants",
      summary: "Set where a tenant hears of devices that take or drop its Apple passes",
      parameters: [tenantId],
      body: walletWebhookBody,
      status: "200",
      answers: { schema: "WalletWebhook", example: { wallet_webhook_url: "https://api.example.com/hooks/wallet" } },
      alsoFails: NOT_FOUND,
    }),
  },
};
