import { DOMAIN_CHECKS } from "../../../domain/domain.ts";
import type { JsonObject } from "../../../domain/json.ts";

const status: JsonObject = {
  type: "string",
  enum: ["pending", "verified", "failed"],
  description:
    "Pending: not verified yet. Failed: the last verification found something wrong. Changes by verification alone.",
};

const record: JsonObject = {
  type: "object",
  required: ["Domain", "RelayEnabled", "RelayStatus", "SMTPEnabled", "SMTPStatus", "DNSRecords"],
  properties: {
    Domain: { type: "string" },
    RelayEnabled: { type: "boolean", description: "Mail of this domain goes out through the platform's relay." },
    RelayStatus: status,
    SMTPEnabled: { type: "boolean", description: "Mail of this domain goes out through the tenant's own relay." },
    SMTPStatus: status,
    DNSRecords: {
      type: "object",
      required: ["relay"],
      properties: {
        relay: {
          type: "array",
          description: "To be published in the domain's DNS: return path (MX), SPF, DKIM and DMARC.",
          items: {
            type: "object",
            required: ["type", "name", "value"],
            properties: {
              type: { type: "string", enum: ["MX", "TXT"] },
              name: { type: "string" },
              value: {
                type: "string",
                description: "One text. Where a zone takes at most 255 bytes a string, it is split into several.",
              },
              priority: { type: "integer", description: "MX only." },
            },
          },
        },
      },
    },
  },
};

/** Domains, as tenants and as operators see them. */
export const domainSchemas: JsonObject = {
  Domain: record,
  DomainList: {
    type: "object",
    required: ["domains"],
    properties: { domains: { type: "array", items: { $ref: "#/components/schemas/Domain" } } },
  },
  OperatorDomain: {
    allOf: [
      { $ref: "#/components/schemas/Domain" },
      {
        type: "object",
        required: ["created_at", "checked_at", "checks"],
        properties: {
          created_at: { type: "string", format: "date-time" },
          checked_at: { type: ["string", "null"], format: "date-time", description: "The last verification." },
          checks: {
            type: "array",
            description: "What it found, record by record.",
            items: {
              type: "object",
              required: ["check", "result", "why"],
              properties: {
                check: { type: "string", enum: DOMAIN_CHECKS },
                result: {
                  type: "string",
                  enum: ["passed", "failed", "unanswered"],
                  description: "Unanswered: nobody could say at that moment, which changes no status.",
                },
                why: { type: ["string", "null"], description: "One sentence; null where it passed." },
              },
            },
          },
        },
      },
    ],
  },
  OperatorDomainList: {
    type: "object",
    required: ["domains"],
    properties: { domains: { type: "array", items: { $ref: "#/components/schemas/OperatorDomain" } } },
  },
};
