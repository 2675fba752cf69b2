import { createPrivateKey } from "node:crypto";
import type { AppleSigner, GoogleIssuer } from "../../domain/channels/wallet.ts";
import { isJsonObject, type JsonObject } from "../../domain/texts/json.ts";
import { ApiError } from "../../http/api-error.ts";
import {
  credentialsStored,
  credentialsStoredWithWarnings,
  replyStored,
  replyStoredWithWarnings,
} from "../../http/credential-kind.ts";
import { type Endpoint, operatorEndpoint } from "../../http/endpoint.ts";
import { OPERATOR_NOT_FOUND } from "../../http/failures.ts";
import { tenantIdParameter } from "../../http/parameters.ts";
import { requireResult } from "../../http/store-results.ts";
import type { CredentialsPut } from "../../storage/registry.ts";
import { appleCredentialsBody, googleCredentialsBody } from "./operator-bodies.ts";
import type { WalletPorts } from "./ports.ts";

export interface WalletRegistry {
  /** Stored encrypted, never returned. The caller has checked that they fit together. */
  putAppleCredentials(tenantId: string, signer: AppleSigner): Promise<CredentialsPut>;
  /** Stored encrypted, never returned. */
  putGoogleCredentials(tenantId: string, issuer: GoogleIssuer): Promise<CredentialsPut>;
}

export interface WalletCredentialPorts {
  readonly registry: WalletRegistry;
  readonly wallet: Pick<WalletPorts, "checkSigner" | "noteSigner">;
}

/** Members shared by the endpoints. */
const OF_TENANT = {
  method: "PUT",
  name: "operator",
  tag: "Tenants",
  params: { id: tenantIdParameter },
  fails: { 404: OPERATOR_NOT_FOUND },
} as const;

/**
 * `PUT /dash/api/tenants/{id}/credentials/apple` and `…/google`: store a tenant's own credentials. The API never
 * returns them.
 */
export function walletCredentialEndpoints({ registry, wallet }: WalletCredentialPorts): readonly Endpoint[] {
  return [
    operatorEndpoint({
      ...OF_TENANT,
      path: "/dash/api/tenants/:id/credentials/apple",
      operation: "putAppleCredentials",
      audit: { body: ["pass_type_id", "team_id"] },
      summary: "Set what a tenant's own Apple passes are signed with; stored encrypted, never given back",
      body: appleCredentialsBody,
      answers: credentialsStoredWithWarnings,
      async handle({ params: { id }, body }) {
        const signer = {
          certificatePem: body.certificate_pem,
          privateKeyPem: body.private_key_pem,
          passphrase: body.passphrase ?? null,
          wwdrPem: body.wwdr_pem ?? null,
          passTypeId: body.pass_type_id,
          teamId: body.team_id,
        };
        const { problem, warnings } = wallet.checkSigner(signer);
        if (problem !== null) throw new ApiError(400, problem);
        const stored = requireResult(await registry.putAppleCredentials(id, signer));
        await wallet.noteSigner(signer, id);
        return replyStoredWithWarnings("wallet", stored, warnings);
      },
    }),
    operatorEndpoint({
      ...OF_TENANT,
      path: "/dash/api/tenants/:id/credentials/google",
      operation: "putGoogleCredentials",
      audit: { body: ["issuer_id"] },
      summary: "Set a tenant's own issuer of Google passes; stored encrypted, never given back",
      body: googleCredentialsBody,
      answers: credentialsStored,
      handle: async ({ params: { id }, body: { service_account, issuer_id } }) =>
        replyStored(
          "wallet",
          requireResult(await registry.putGoogleCredentials(id, toIssuer(service_account, issuer_id))),
        ),
    }),
  ];
}

/** Throws an `ApiError` 400 that names the missing member and repeats no part of the key. */
function toIssuer(serviceAccount: unknown, issuerId: string): GoogleIssuer {
  const { client_email: clientEmail, private_key: privateKey } = readAccount(serviceAccount);
  if (typeof clientEmail !== "string" || !/^[\x21-\x7e]{1,200}@[\x21-\x7e]{1,200}$/.test(clientEmail)) {
    throw new ApiError(400, "service_account.client_email must be the account's e-mail address");
  }
  const privateKeyPem = typeof privateKey === "string" ? readRsaKey(privateKey) : null;
  if (privateKeyPem === null) {
    throw new ApiError(400, "service_account.private_key must be an RSA private key in PEM, without a passphrase");
  }
  return { issuerId, clientEmail, privateKeyPem };
}

function readAccount(given: unknown): JsonObject {
  const account = typeof given === "string" ? parse(given) : given;
  if (isJsonObject(account)) return account;
  throw new ApiError(400, "service_account must be the JSON key of a service account");
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/**
 * Returns PKCS #8 in PEM; null if it is not an RSA key. Keys that passed through an environment variable have `\n` for
 * line ends.
 */
function readRsaKey(pem: string): string | null {
  try {
    const key = createPrivateKey(pem.replaceAll("\\n", "\n"));
    return key.asymmetricKeyType === "rsa" ? key.export({ type: "pkcs8", format: "pem" }).toString() : null;
  } catch {
    return null;
  }
}
