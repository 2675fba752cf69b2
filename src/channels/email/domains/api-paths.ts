import type { TSchema } from "@sinclair/typebox";
import type { JsonObject } from "../../../domain/json.ts";
import { answer, emptyAnswer, errors, pathParameter, tenantAnswer } from "../../../http/openapi/answers.ts";
import { domainBody } from "./domain-body.ts";

const DOMAIN: JsonObject = {
  Domain: "mail.acme.example",
  RelayEnabled: true,
  RelayStatus: "verified",
  SMTPEnabled: false,
  SMTPStatus: "pending",
  DNSRecords: {
    relay: [
      { type: "MX", name: "bounce.mail.acme.example", value: "mx.example.com", priority: 10 },
      { type: "TXT", name: "bounce.mail.acme.example", value: "v=spf1 include:spf.mx.example.com ~all" },
      {
        type: "TXT",
        name: "wb1f0c77a2._domainkey.mail.acme.example",
        value: "v=DKIM1; k=rsa; p=MIIBIjANBgkqhkiG9w0B…",
      },
      { type: "TXT", name: "_dmarc.mail.acme.example", value: "v=DMARC1; p=none" },
    ],
  },
};
const FAILED: JsonObject = {
  ...DOMAIN,
  RelayStatus: "failed",
  created_at: "2026-11-21T07:30:00Z",
  checked_at: "2026-11-21T08:00:00Z",
  checks: [
    { check: "return_path", result: "passed", why: null },
    { check: "spf", result: "failed", why: "bounce.mail.acme.example has no TXT record" },
    { check: "dkim", result: "passed", why: null },
    {
      check: "dmarc",
      result: "unanswered",
      why: "_dmarc.mail.acme.example (TXT) could not be looked up: there was no answer in time",
    },
  ],
};

const domain = pathParameter("domain", "The domain's name.", "mail.acme.example");
const tenantId = pathParameter("id", "A tenant's id.", "acme");
const TENANT_ERRORS = errors({ "401": "UnknownKey", "429": "TooManyRequests", "500": "InternalError" });
const ONE_ERRORS = { ...TENANT_ERRORS, ...errors({ "404": "NoSuchDomain" }) };
const OPERATOR_ERRORS = errors({
  "401": "OperatorUnknown",
  "404": "OperatorNotFound",
  "429": "OperatorSlowed",
  "500": "OperatorInternalError",
});
const tenantCall = { tags: ["Domains"], security: [{ apiKey: [] }] };
const operatorCall = { tags: ["Tenants"], security: [{ operator: [] }] };

/** A TypeBox schema is JSON Schema once its symbols are gone. */
function toJson(schema: TSchema): JsonObject {
  const plain: JsonObject = JSON.parse(JSON.stringify(schema));
  return plain;
}

/** Sending domains: what tenants see and verify, and what operators register. */
export const domainPaths: JsonObject = {
  "/v1/domains": {
    get: {
      ...tenantCall,
      operationId: "listDomains",
      summary: "The tenant's sending domains",
      responses: {
        "200": tenantAnswer({ description: "All of them.", schema: "DomainList", example: { domains: [DOMAIN] } }),
        ...TENANT_ERRORS,
      },
    },
  },
  "/v1/domains/{domain}": {
    get: {
      ...tenantCall,
      operationId: "getDomain",
      summary: "One domain, with the records to publish for it",
      parameters: [domain],
      responses: {
        "200": tenantAnswer({ description: "The domain.", schema: "Domain", example: DOMAIN }),
        ...ONE_ERRORS,
      },
    },
  },
  "/v1/domains/{domain}/verify": {
    post: {
      ...tenantCall,
      operationId: "verifyDomain",
      summary: "Look at a domain's records again",
      description:
        "A name server that does not answer changes no status. Mail can be sent from the domain once it is verified.",
      parameters: [domain],
      responses: {
        "200": tenantAnswer({ description: "The domain as it is now.", schema: "Domain", example: DOMAIN }),
        ...ONE_ERRORS,
      },
    },
  },
  "/dash/api/tenants/{id}/domains": {
    get: {
      ...operatorCall,
      operationId: "listTenantDomains",
      summary: "A tenant's domains, with what the last verification found",
      parameters: [tenantId],
      responses: {
        "200": answer({ description: "All of them.", schema: "OperatorDomainList", example: { domains: [FAILED] } }),
        ...OPERATOR_ERRORS,
      },
    },
    post: {
      ...operatorCall,
      operationId: "registerDomain",
      summary: "Register a domain for a tenant, with a new DKIM key",
      parameters: [tenantId],
      requestBody: { required: true, content: { "application/json": { schema: toJson(domainBody) } } },
      responses: {
        "201": answer({
          description: "Registered, not verified yet.",
          schema: "OperatorDomain",
          example: { ...FAILED, RelayStatus: "pending", checked_at: null, checks: [] },
        }),
        ...OPERATOR_ERRORS,
        ...errors({ "400": "OperatorBadRequest", "409": "OperatorConflict", "413": "OperatorTooLarge" }),
      },
    },
  },
  "/dash/api/tenants/{id}/domains/{domain}": {
    get: {
      ...operatorCall,
      operationId: "getTenantDomain",
      summary: "One domain: which record fails, and why",
      parameters: [tenantId, domain],
      responses: {
        "200": answer({ description: "The domain.", schema: "OperatorDomain", example: FAILED }),
        ...OPERATOR_ERRORS,
      },
    },
    delete: {
      ...operatorCall,
      operationId: "deleteDomain",
      summary: "Forget a domain and its key: nothing can be sent from it any more",
      parameters: [tenantId, domain],
      responses: { "204": emptyAnswer("Deleted."), ...OPERATOR_ERRORS },
    },
  },
};
