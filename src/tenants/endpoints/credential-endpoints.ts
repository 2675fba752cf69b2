import { Type } from "@sinclair/typebox";
import { type CredentialsRecord, whyUnused } from "../../domain/channels/credentials.ts";
import { type CredentialKind, credentialsSchema } from "../../http/credential-kind.ts";
import { type Endpoint, operatorEndpoint, reply } from "../../http/endpoint.ts";
import { OPERATOR_NOT_FOUND } from "../../http/failures.ts";
import { tenantIdParameter } from "../../http/parameters.ts";
import { listOf } from "../../http/schemas.ts";
import { resultOf } from "../../http/store-results.ts";
import type { TenantRegistry } from "../registry.ts";

interface Ports {
  readonly registry: Pick<TenantRegistry, "credentials" | "credentialsOf" | "deleteCredentials">;
}

const COMMON = {
  name: "operator",
  tag: "Tenants",
  params: { id: tenantIdParameter },
  fails: { 404: OPERATOR_NOT_FOUND },
} as const;

/**
 * `/dash/api/tenants/{id}/credentials`: what is stored, whether it is used, and its removal. The channels' own calls store
 * them. No answer holds a secret.
 */
export function credentialEndpoints({ registry }: Ports, kinds: readonly CredentialKind[]): readonly Endpoint[] {
  const shapes = kinds.map((kind) => ({ kind, schema: Type.Unsafe<CredentialsRecord>(credentialsSchema(kind)) }));
  const Credentials = Type.Unsafe<CredentialsRecord>(Type.Union(shapes.map(({ schema }) => schema)));
  return [
    operatorEndpoint({
      ...COMMON,
      method: "GET",
      path: "/dash/api/tenants/:id/credentials",
      operation: "listCredentials",
      summary: "List a tenant's own credentials, without their secrets",
      answers: {
        200: {
          description: "All of them.",
          schema: listOf("CredentialsList", "credentials", Credentials),
          examples: [{ credentials: kinds.slice(0, 1).map(exampleOf) }],
        },
      },
      handle: async ({ params: { id } }) => reply(200, { credentials: resultOf(await registry.credentials(id)) }),
    }),
    ...shapes.flatMap(({ kind: { kind, word, ...rest }, schema }) => [
      operatorEndpoint({
        ...COMMON,
        method: "GET",
        path: `/dash/api/tenants/:id/credentials/${kind}`,
        operation: `get${word}Credentials`,
        summary: `A tenant's own ${word} credentials, without their secrets`,
        answers: {
          200: { description: "Done.", schema, examples: [exampleOf({ kind, word, ...rest })] },
        },
        handle: async ({ params: { id } }) => reply(200, resultOf(await registry.credentialsOf(id, kind))),
      }),
      operatorEndpoint({
        ...COMMON,
        method: "DELETE",
        path: `/dash/api/tenants/:id/credentials/${kind}`,
        operation: `delete${word}Credentials`,
        summary: `Delete a tenant's own ${word} credentials: from then on the platform's are used; what was made with the deleted ones may no longer be updatable`,
        answers: { 204: { description: "Done.", schema: null } },
        async handle({ params: { id } }) {
          resultOf(await registry.deleteCredentials(id, kind));
          return reply(204, null);
        },
      }),
    ]),
  ];
}

function exampleOf({ kind, channel, example }: CredentialKind): CredentialsRecord {
  return {
    ...example,
    kind,
    channel,
    used: false,
    reason: whyUnused(channel),
    created_at: "2026-11-21T07:30:00.000Z",
    changed_at: "2026-11-21T07:30:00.000Z",
  };
}
