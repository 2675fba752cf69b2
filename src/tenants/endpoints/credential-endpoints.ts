import { Type } from "@sinclair/typebox";
import { type CredentialsRecord, whyUnused } from "../../domain/channels/credentials.ts";
import type { Tenant, TenantDirectory } from "../../domain/tenants/tenant.ts";
import { type CredentialKind, credentialsSchema } from "../../http/credential-kind.ts";
import { type Endpoint, operatorEndpoint, reply } from "../../http/endpoint.ts";
import { OPERATOR_NOT_FOUND } from "../../http/failures.ts";
import { tenantIdParameter } from "../../http/parameters.ts";
import { listSchema } from "../../http/schemas.ts";
import { requireResult } from "../../http/store-results.ts";
import type { TenantRegistry } from "../registry.ts";

interface Ports {
  readonly registry: Pick<TenantRegistry, "credentials" | "findCredentials" | "deleteCredentials">;
  readonly directory: Pick<TenantDirectory, "byId">;
}

const COMMON = {
  name: "operator",
  tag: "Tenants",
  params: { id: tenantIdParameter },
  fails: { 404: OPERATOR_NOT_FOUND },
} as const;

/**
 * `/dash/api/tenants/{id}/credentials`: stored credentials, whether they are used, and their removal. The channels' own calls
 * store them. No answer contains a secret.
 */
export function credentialEndpoints(
  { registry, directory }: Ports,
  kinds: readonly CredentialKind[],
): readonly Endpoint[] {
  const shapes = kinds.map((kind) => ({ kind, schema: Type.Unsafe<CredentialsRecord>(credentialsSchema(kind)) }));
  const judge = async (tenantId: string, records: readonly CredentialsRecord[]) =>
    judged(await directory.byId(tenantId), records, kinds);
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
          schema: listSchema("CredentialsList", "credentials", Credentials),
          examples: [{ credentials: kinds.slice(0, 1).map(createExample) }],
        },
      },
      async handle({ params: { id } }) {
        return reply(200, { credentials: await judge(id, requireResult(await registry.credentials(id))) });
      },
    }),
    ...shapes.flatMap(({ kind: { kind, word, ...rest }, schema }) => [
      operatorEndpoint({
        ...COMMON,
        method: "GET",
        path: `/dash/api/tenants/:id/credentials/${kind}`,
        operation: `get${word}Credentials`,
        summary: `A tenant's own ${word} credentials, without their secrets`,
        answers: {
          200: { description: "Done.", schema, examples: [createExample({ kind, word, ...rest })] },
        },
        async handle({ params: { id } }) {
          const record = requireResult(await registry.findCredentials(id, kind));
          const [found = record] = await judge(id, [record]);
          return reply(200, found);
        },
      }),
      operatorEndpoint({
        ...COMMON,
        method: "DELETE",
        path: `/dash/api/tenants/:id/credentials/${kind}`,
        operation: `delete${word}Credentials`,
        summary: `Delete a tenant's own ${word} credentials: from then on the platform's are used; what was made with the deleted ones may no longer be updatable`,
        answers: { 204: { description: "Done.", schema: null } },
        async handle({ params: { id } }) {
          requireResult(await registry.deleteCredentials(id, kind));
          return reply(204, null);
        },
      }),
    ]),
  ];
}

/** The records, with why those are not used yet that the tenant may use. */
function judged(
  tenant: Tenant | null,
  records: readonly CredentialsRecord[],
  kinds: readonly CredentialKind[],
): CredentialsRecord[] {
  return records.map((record) => {
    const kind = kinds.find((one) => one.kind === record.kind);
    const reason = tenant === null || !record.used ? null : (kind?.unusedYet?.(tenant) ?? null);
    return reason === null ? record : { ...record, used: false, reason };
  });
}

function createExample({ kind, channel, example }: CredentialKind): CredentialsRecord {
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
