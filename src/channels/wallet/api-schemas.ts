import type { JsonObject } from "../../domain/json.ts";
import { limits } from "../../domain/limits.ts";
import { NOTIFICATION_KINDS, PASS_STYLES, PASS_TYPES } from "../../domain/wallet.ts";

const uuid: JsonObject = { type: "string", format: "uuid" };
const text: JsonObject = { type: "string", maxLength: limits.passTextCharsMax };
const colour: JsonObject = { type: "string", description: "`rgb(11, 31, 58)` or `#0B1F3A`." };
const date: JsonObject = {
  type: "string",
  format: "date-time",
  description: "With time and zone, such as 2026-12-31T23:59:00+01:00.",
};
const png = (what: string): JsonObject => ({ type: "string", description: `PNG in base64, ${what}.` });
const fields: JsonObject = {
  type: "array",
  maxItems: limits.passFieldsMax,
  items: {
    type: "object",
    required: ["key", "value"],
    properties: {
      key: { type: "string", description: "Unique in the whole pass." },
      value: { type: ["string", "number"] },
      label: text,
      changeMessage: { type: "string", description: "Shown when an update changes the value; `%@` stands for it." },
      textAlignment: {
        type: "string",
        enum: ["PKTextAlignmentLeft", "PKTextAlignmentCenter", "PKTextAlignmentRight", "PKTextAlignmentNatural"],
      },
    },
  },
};

const appleData: JsonObject = {
  type: "object",
  description: "For passes of type apple.",
  properties: {
    serial_number: { type: "string", maxLength: limits.passSerialCharsMax, description: "Required. Used once." },
    organization_name: { ...text, description: "Required." },
    description: { ...text, description: "Required." },
    style: { type: "string", enum: PASS_STYLES, default: "generic" },
    transit_type: { type: "string", description: "boardingPass only.", default: "PKTransitTypeGeneric" },
    background_color: { ...colour, default: "#0B1F3A" },
    foreground_color: { ...colour, default: "#FFFFFF" },
    label_color: { ...colour, default: "#FFFFFF" },
    logo_text: text,
    barcodes: {
      type: "array",
      items: {
        type: "object",
        required: ["message", "format"],
        properties: {
          message: text,
          format: {
            type: "string",
            enum: ["PKBarcodeFormatQR", "PKBarcodeFormatPDF417", "PKBarcodeFormatAztec", "PKBarcodeFormatCode128"],
          },
          messageEncoding: { type: "string", description: "By default iso-8859-1, or utf-8 where it takes that." },
        },
      },
    },
    header_fields: fields,
    primary_fields: fields,
    secondary_fields: fields,
    auxiliary_fields: fields,
    back_fields: fields,
    icon_base64: png("29x29; a placeholder where there is none. Also `icon_2x_base64`, `icon_3x_base64`"),
    logo_base64: png("160x50. Also `logo_2x_base64`, `logo_3x_base64`"),
    strip_base64: png("375x144. Also `strip_2x_base64`, `strip_3x_base64`"),
    thumbnail_base64: png("90x90. Also `thumbnail_2x_base64`"),
    relevant_date: date,
    expiration_date: date,
    locations: {
      type: "array",
      maxItems: 10,
      items: {
        type: "object",
        required: ["latitude", "longitude"],
        properties: {
          latitude: { type: "number", minimum: -90, maximum: 90 },
          longitude: { type: "number", minimum: -180, maximum: 180 },
          relevantText: text,
        },
      },
    },
  },
};

const googleData: JsonObject = {
  type: "object",
  description: "For passes of type google.",
  properties: {
    class_id: { type: "string", description: "Required. `<issuer_id>.<class_name>`, not another tenant's." },
    class_type: { type: "string", enum: ["eventTicket", "generic"] },
    object_id: { type: "string", description: "Required. `<issuer_id>.<object_name>`, used once." },
    object_data: {
      type: "object",
      additionalProperties: true,
      description:
        "The object as Google's REST API takes it. `id` and `classId` are those above, `state` is ACTIVE by default, and " +
        "a generic object without `cardTitle` or `header` gets the tenant's name there.",
    },
  },
};

/** Bodies of the wallet's calls. */
export const walletSchemas: JsonObject = {
  PassRequest: {
    type: "object",
    properties: {
      pass_type: { type: "string", enum: PASS_TYPES, description: "Required without `template_id`." },
      template_id: { type: "string", description: "Slug of a registered wallet template." },
      pass_data: { anyOf: [appleData, googleData], description: "Required without `template_id`." },
    },
  },
  PassUpdate: {
    type: "object",
    required: ["pass_data"],
    properties: {
      pass_data: { type: "object", additionalProperties: true, description: "What changes, as when it was created." },
      notify_message: { type: "string", maxLength: 1_000, description: "Google: shown to the pass's holders." },
      notification_kind: {
        type: "string",
        enum: NOTIFICATION_KINDS,
        description: "Why the pass changes; kept in its history.",
      },
    },
  },
  UpdatingPass: {
    type: "object",
    required: ["pass_id", "job_id", "status"],
    properties: { pass_id: uuid, job_id: uuid, status: { type: "string", const: "updating" } },
  },
  PassStatus: {
    type: "object",
    required: ["pass_id", "pass_type", "version", "status", "is_installed"],
    properties: {
      pass_id: uuid,
      pass_type: { type: "string", enum: PASS_TYPES },
      version: { type: "integer", description: "1 from the start, one more with every update." },
      status: {
        type: "string",
        description: "Apple: active, expired or voided. Google: `google_status` in lower case.",
      },
      installed_devices: { type: "integer", description: "Apple only." },
      is_installed: { type: "boolean" },
      google_status: {
        type: "string",
        enum: ["ACTIVE", "COMPLETED", "EXPIRED", "INACTIVE", "not_found"],
        description: "Google only.",
      },
      has_users: { type: "boolean", description: "Google only: at least one user saved the pass." },
    },
  },
  AppleCredentialsWarnings: {
    type: "object",
    required: ["warnings"],
    properties: { warnings: { type: "array", items: { type: "string" } } },
  },
  WalletWebhook: {
    type: "object",
    required: ["wallet_webhook_url"],
    properties: { wallet_webhook_url: { type: ["string", "null"] } },
  },
};
