import type { Domains, DomainView, SenderDomain } from "../../../domain/channels/domain.ts";
import { ApiError } from "../../../http/api-error.ts";
import { type Endpoint, operatorEndpoint, reply } from "../../../http/endpoint.ts";
import { OPERATOR_CONFLICT, OPERATOR_NOT_FOUND } from "../../../http/failures.ts";
import { tenantIdParameter } from "../../../http/parameters.ts";
import { requireResult } from "../../../http/store-results.ts";
import { domainBody, domainParameter, FAILED_EXAMPLE, OperatorDomain, OperatorDomainList } from "./domain-schemas.ts";

export interface OperatorDomainEndpointPorts {
  readonly domains: Pick<Domains, "register" | "all" | "one" | "verify" | "delete">;
  readonly senderDomain: SenderDomain;
}

const ofTenant = { name: "operator", tag: "Tenants", fails: { 404: OPERATOR_NOT_FOUND } } as const;
const ofDomain = {
  ...ofTenant,
  path: "/dash/api/tenants/:id/domains/:domain",
  params: { id: tenantIdParameter, domain: domainParameter },
} as const;

/** `/dash/api/tenants/{id}/domains`: registers domains and shows what each check of the last verification found. */
export function operatorDomainEndpoints({ domains, senderDomain }: OperatorDomainEndpointPorts): readonly Endpoint[] {
  return [...tenantDomainEndpoints(domains), ...oneDomainEndpoints(domains), ...senderDomainEndpoints(senderDomain)];
}

function tenantDomainEndpoints(domains: OperatorDomainEndpointPorts["domains"]): readonly Endpoint[] {
  return [
    operatorEndpoint({
      ...ofTenant,
      method: "GET",
      path: "/dash/api/tenants/:id/domains",
      operation: "listTenantDomains",
      summary: "A tenant's domains, with what the last verification found",
      params: { id: tenantIdParameter },
      answers: {
        200: { description: "All of them.", schema: OperatorDomainList, examples: [{ domains: [FAILED_EXAMPLE] }] },
      },
      handle: async ({ params: { id } }) =>
        reply(200, { domains: requireResult(await domains.all(id)).map(toOperatorDomain) }),
    }),
    operatorEndpoint({
      ...ofTenant,
      method: "POST",
      path: "/dash/api/tenants/:id/domains",
      operation: "registerDomain",
      audit: { body: ["domain", "relay_enabled", "smtp_enabled"] },
      summary: "Register a domain for a tenant, with a new DKIM key",
      params: { id: tenantIdParameter },
      body: domainBody,
      answers: {
        201: {
          description: "Registered, not verified yet.",
          schema: OperatorDomain,
          examples: [{ ...FAILED_EXAMPLE, RelayStatus: "pending", checked_at: null, checks: [] }],
        },
      },
      fails: { ...ofTenant.fails, 409: OPERATOR_CONFLICT },
      async handle({ params: { id }, body }) {
        const { domain, relay_enabled: relayEnabled = true, smtp_enabled: smtpEnabled = false } = body;
        const registered = await domains.register(id, { domain, relayEnabled, smtpEnabled });
        return reply(201, toOperatorDomain(registeredDomain(registered)));
      },
    }),
  ];
}

/** One domain of a tenant. */
function oneDomainEndpoints(domains: OperatorDomainEndpointPorts["domains"]): readonly Endpoint[] {
  return [
    operatorEndpoint({
      ...ofDomain,
      method: "GET",
      operation: "getTenantDomain",
      summary: "One domain: which record fails, and why",
      answers: { 200: { description: "The domain.", schema: OperatorDomain, examples: [FAILED_EXAMPLE] } },
      handle: async ({ params: { id, domain } }) =>
        reply(200, toOperatorDomain(requireResult(await domains.one(id, domain)))),
    }),
    operatorEndpoint({
      ...ofDomain,
      method: "POST",
      path: "/dash/api/tenants/:id/domains/:domain/verify",
      operation: "verifyTenantDomain",
      audit: {},
      summary: "Look at the records of a tenant's domain again",
      description: "As the tenant does it. A name server that does not answer changes no status.",
      answers: { 200: { description: "The domain as it is now.", schema: OperatorDomain, examples: [FAILED_EXAMPLE] } },
      handle: async ({ params: { id, domain } }) =>
        reply(200, toOperatorDomain(requireResult(await domains.verify(id, domain)))),
    }),
    operatorEndpoint({
      ...ofDomain,
      method: "DELETE",
      operation: "deleteDomain",
      summary: "Forget a domain and its key: sends from it are refused",
      answers: { 204: { description: "Deleted.", schema: null } },
      async handle({ params: { id, domain } }) {
        requireResult(await domains.delete(id, domain));
        return reply(204, null);
      },
    }),
  ];
}

/** `/dash/api/sender-domain`: the domain of the platform's own sender. */
function senderDomainEndpoints(senderDomain: SenderDomain): readonly Endpoint[] {
  const common = { name: "operator", tag: "Domains", params: {} } as const;
  return [
    operatorEndpoint({
      ...common,
      method: "GET",
      path: "/dash/api/sender-domain",
      operation: "getSenderDomain",
      summary: "The domain of the platform's own sender (`MAIL_FROM`), with the records to publish for it",
      description: "Mail of tenants without a domain of their own is signed by it once it is verified.",
      answers: { 200: { description: "The domain.", schema: OperatorDomain, examples: [FAILED_EXAMPLE] } },
      handle: async () => reply(200, toOperatorDomain(await senderDomain.view())),
    }),
    operatorEndpoint({
      ...common,
      method: "POST",
      path: "/dash/api/sender-domain/verify",
      operation: "verifySenderDomain",
      audit: {},
      summary: "Look at the records of the platform's sender again",
      description: "A name server that does not answer changes no status.",
      answers: { 200: { description: "The domain as it is now.", schema: OperatorDomain, examples: [FAILED_EXAMPLE] } },
      handle: async () => reply(200, toOperatorDomain(await senderDomain.verify())),
    }),
  ];
}

/** Adds the members for operators to the tenants' view of a domain. */
function toOperatorDomain({ record, details }: DomainView) {
  return { ...record, ...details };
}

/** Throws an `ApiError`: 409 if the domain is taken or the tenant has as many as it may have. */
function registeredDomain(result: Awaited<ReturnType<Domains["register"]>>): DomainView {
  if (result.kind === "full")
    throw new ApiError("limit_reached", `The tenant has ${result.most} domains, and cannot have more.`);
  if (result.kind === "taken")
    throw new ApiError("already_exists", `The domain ${result.domain} is registered already.`);
  return requireResult(result);
}
