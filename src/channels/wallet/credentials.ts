import type { AppleSigner, GoogleIssuer } from "../../domain/channels/wallet.ts";
import { isJsonObject, type JsonObject } from "../../domain/texts/json.ts";
import type { Secret, SecretPlace } from "../../storage/vault.ts";

/** Returns the location of a tenant's credentials for Apple passes in the registry. */
export function applePlace(tenantId: string): SecretPlace {
  return { tenantId, kind: "apple", field: "credentials" };
}

/** Returns the location of a tenant's credentials for Google passes in the registry. */
export function googlePlace(tenantId: string): SecretPlace {
  return { tenantId, kind: "google", field: "credentials" };
}

/** Converts the signer to its stored form. The caller has checked that it can sign. */
export function appleSecret(tenantId: string, signer: AppleSigner): Secret {
  return { place: applePlace(tenantId), text: JSON.stringify(signer) };
}

/** Parses the output of `appleSecret`. */
export function parseAppleSigner(text: string): AppleSigner {
  const { certificatePem, privateKeyPem, passphrase, wwdrPem, passTypeId, teamId } = parseMembers(text);
  return {
    certificatePem: requireText(certificatePem),
    privateKeyPem: requireText(privateKeyPem),
    passphrase: typeof passphrase === "string" ? passphrase : null,
    wwdrPem: typeof wwdrPem === "string" ? wwdrPem : null,
    passTypeId: requireText(passTypeId),
    teamId: requireText(teamId),
  };
}

/** Converts the issuer to its stored form. */
export function googleSecret(tenantId: string, issuer: GoogleIssuer): Secret {
  return { place: googlePlace(tenantId), text: JSON.stringify(issuer) };
}

/** Parses the output of `googleSecret`. */
export function parseGoogleIssuer(text: string): GoogleIssuer {
  const { issuerId, clientEmail, privateKeyPem } = parseMembers(text);
  return {
    issuerId: requireText(issuerId),
    clientEmail: requireText(clientEmail),
    privateKeyPem: requireText(privateKeyPem),
  };
}

function parseMembers(text: string): JsonObject {
  const value: unknown = JSON.parse(text);
  return isJsonObject(value) ? value : {};
}

function requireText(value: unknown): string {
  if (typeof value !== "string") throw new Error("stored wallet credentials are incomplete");
  return value;
}
