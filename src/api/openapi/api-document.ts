import type { JsonObject } from "../../core/json.ts";
import { answerSchemas } from "./answer-schemas.ts";
import { headers, responses } from "./answers.ts";
import { chatPaths } from "./chat-paths.ts";
import { chatSchemas } from "./chat-schemas.ts";
import { domainPaths } from "./domain-paths.ts";
import { domainSchemas } from "./domain-schemas.ts";
import { exportPaths } from "./export-paths.ts";
import { googleClassPaths, googleClassSchemas } from "./google-class-paths.ts";
import { mailReportPaths } from "./mail-report-paths.ts";
import { operatorPaths } from "./operator-paths.ts";
import { passKitPaths } from "./pass-kit-paths.ts";
import { publicPaths } from "./public-paths.ts";
import { servicePaths } from "./service-paths.ts";
import { tenantPaths } from "./tenant-paths.ts";
import { walletPaths } from "./wallet-paths.ts";
import { walletSchemas } from "./wallet-schemas.ts";

/** The OpenAPI 3.1 document of everything that the front door answers. */
export function buildApiDocument(options: { readonly version: string; readonly publicUrl: string }): object {
  return {
    openapi: "3.1.0",
    info: {
      title: "Waybill",
      version: options.version,
      summary: "Transactional messages for many tenants, with an exact delivery history.",
      description: DESCRIPTION,
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: options.publicUrl }],
    tags: TAGS,
    paths: {
      ...tenantPaths,
      ...chatPaths,
      ...walletPaths,
      ...googleClassPaths,
      ...domainPaths,
      ...operatorPaths,
      ...mailReportPaths,
      ...exportPaths,
      ...publicPaths,
      ...passKitPaths,
      ...servicePaths,
    },
    components: {
      securitySchemes: SECURITY_SCHEMES,
      headers,
      responses,
      schemas: { ...answerSchemas, ...domainSchemas, ...chatSchemas, ...walletSchemas, ...googleClassSchemas },
    },
  };
}

const DESCRIPTION = `Every send is asynchronous: a request answers 202 with a \`job_id\`, and
\`GET /v1/jobs/{job_id}\` says what became of it.

**Errors** have one shape, \`{"error": "<a sentence>"}\`. The checks run in this order: 401, 429, 403 (channel), 400,
403 (permission), 422, 402, 500. An unknown address is 404; a method that an address does not take is 405 with \`Allow\`.

**Rate limit.** Never more than the plan's number of \`/v1\` requests in any 60 seconds; every authenticated request
counts. Answers say what is left in \`RateLimit-Limit\`, \`RateLimit-Remaining\` and \`RateLimit-Reset\`.

**Repeating a send safely.** Give it an \`Idempotency-Key\`: the same key with the same body within 24 hours answers the
first answer again and queues nothing.

**Tracing.** Every answer carries \`X-Request-Id\`: yours, if you sent one.`;

const TAGS: readonly JsonObject[] = [
  { name: "Send", description: "Queue messages." },
  { name: "Passes", description: "A tenant's wallet passes, once they are created." },
  { name: "Jobs", description: "What became of a message." },
  { name: "Events", description: "The delivery history of a tenant." },
  { name: "Domains", description: "The domains that a tenant sends from." },
  { name: "Tenants", description: "Operators: tenants, their keys, templates, credentials and tokens." },
  { name: "Analysis", description: "Operators: events in bulk." },
  { name: "Plans", description: "Operators: how much a tenant may ask for." },
  { name: "Mail reports", description: "Operators: bounces and complaints that come by mail." },
  { name: "Chat", description: "What comes from the chat provider." },
  { name: "Sandbox", description: "Operators: what reached the stand-ins for the providers." },
  { name: "Pass devices", description: "Apple's PassKit web service, for devices that have passes." },
  { name: "Public links", description: "What the links in messages lead to." },
  { name: "Service", description: "What machines ask about the process." },
];

const SECURITY_SCHEMES: JsonObject = {
  metrics: { type: "http", scheme: "bearer", description: "`METRICS_TOKEN`, where the server has one." },
  apiKey: { type: "apiKey", in: "header", name: "X-API-Key", description: "A tenant's key, issued by the operator." },
  applePass: {
    type: "http",
    scheme: "ApplePass",
    description: "The `authenticationToken` of the pass itself.",
  },
  webhookSignature: {
    type: "apiKey",
    in: "header",
    name: "X-Hub-Signature-256",
    description: "`sha256=` and the HMAC-SHA256 of the body's bytes under the webhook secret, in hexadecimal digits.",
  },
  operator: { type: "http", scheme: "bearer", description: "The operator token." },
};
