import type { Domains } from "../../../domain/channels/domain.ts";
import { type Endpoint, reply, tenantEndpoint } from "../../../http/endpoint.ts";
import { tenantFailure } from "../../../http/failures.ts";
import { requireResult } from "../../../http/store-results.ts";
import { DOMAIN_EXAMPLE, Domain, DomainList, domainParameter } from "./domain-schemas.ts";

export interface DomainEndpointPorts {
  readonly domains: Pick<Domains, "all" | "one" | "verify">;
}

const NO_SUCH_DOMAIN = tenantFailure(
  "NoSuchDomain",
  "There is no such domain, or it is another tenant's.",
  "there is no such domain",
);

/** `/v1/domains`: a tenant's sending domains, the records to publish for them, and their verification. */
export function domainEndpoints({ domains }: DomainEndpointPorts): readonly Endpoint[] {
  return [
    tenantEndpoint({
      method: "GET",
      path: "/v1/domains",
      name: "domains",
      operation: "listDomains",
      tag: "Domains",
      summary: "The tenant's sending domains",
      answers: { 200: { description: "All of them.", schema: DomainList, examples: [{ domains: [DOMAIN_EXAMPLE] }] } },
      async handle({ tenant: { tenantId } }) {
        const views = requireResult(await domains.all(tenantId));
        return reply(200, { domains: views.map(({ record }) => record) });
      },
    }),
    tenantEndpoint({
      method: "GET",
      path: "/v1/domains/:domain",
      name: "domain",
      operation: "getDomain",
      tag: "Domains",
      summary: "One domain, with the records to publish for it",
      params: { domain: domainParameter },
      answers: { 200: { description: "The domain.", schema: Domain, examples: [DOMAIN_EXAMPLE] } },
      fails: { 404: NO_SUCH_DOMAIN },
      async handle({ tenant: { tenantId }, params: { domain } }) {
        const { record } = requireResult(await domains.one(tenantId, domain));
        return reply(200, record);
      },
    }),
    tenantEndpoint({
      method: "POST",
      path: "/v1/domains/:domain/verify",
      name: "verify_domain",
      operation: "verifyDomain",
      tag: "Domains",
      summary: "Look at a domain's records again",
      description:
        "A name server that does not answer changes no status. Mail can be sent from the domain once it is verified.",
      // The result depends only on the name servers.
      effect: "report",
      isPaced: true,
      params: { domain: domainParameter },
      answers: { 200: { description: "The domain as it is now.", schema: Domain, examples: [DOMAIN_EXAMPLE] } },
      fails: { 404: NO_SUCH_DOMAIN },
      async handle({ tenant: { tenantId }, params: { domain } }) {
        const { record } = requireResult(await domains.verify(tenantId, domain));
        return reply(200, record);
      },
    }),
  ];
}
