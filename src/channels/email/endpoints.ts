import type { Endpoint } from "../../http/endpoint.ts";
import type { PassDesk } from "../../http/sending/carried-pass.ts";
import type { RegistryTools } from "../../storage/registry.ts";
import { type CredentialEndpointPorts, credentialEndpoints, type EmailRegistry } from "./credential-endpoints.ts";
import { emailSecret } from "./credentials.ts";
import { type DomainEndpointPorts, domainEndpoints } from "./domains/domain-endpoints.ts";
import { type OperatorDomainEndpointPorts, operatorDomainEndpoints } from "./domains/operator-domain-endpoints.ts";
import { type TrackingEndpointPorts, trackingEndpoints } from "./links/tracking-endpoints.ts";
import { type UnsubscribeEndpointPorts, unsubscribeEndpoints } from "./links/unsubscribe-endpoints.ts";
import { type MailReportEndpointPorts, mailReportEndpoints } from "./reports/mail-report-endpoints.ts";
import { sendEmail, sendEmailBatch } from "./routes.ts";

export type EmailEndpointPorts = DomainEndpointPorts &
  OperatorDomainEndpointPorts &
  CredentialEndpointPorts &
  MailReportEndpointPorts &
  TrackingEndpointPorts &
  UnsubscribeEndpointPorts & {
    /** Accepts passes that messages carry. */
    readonly passDesk: PassDesk;
  };

export function emailEndpoints(ports: EmailEndpointPorts): readonly Endpoint[] {
  return [
    sendEmail(ports.passDesk),
    sendEmailBatch,
    ...domainEndpoints(ports),
    ...operatorDomainEndpoints(ports),
    ...credentialEndpoints(ports),
    ...mailReportEndpoints(ports),
    ...trackingEndpoints(ports),
    ...unsubscribeEndpoints(ports),
  ];
}

/** Creates the channel's part of the registry. */
export function emailRegistry({ credentials }: RegistryTools): EmailRegistry {
  return {
    async putEmailCredentials(tenantId, given) {
      const secret = emailSecret(tenantId, given);
      return secret.kind === "done" ? credentials.put(secret.value, "email") : secret;
    },
  };
}

declare module "../../storage/registry.ts" {
  interface Registry extends EmailRegistry {}
}
