import { createPrivateKey } from "node:crypto";
import type { Elysia } from "elysia";
import { ApiError } from "../../domain/errors.ts";
import { isJsonObject, type JsonObject } from "../../domain/json.ts";
import type { GoogleIssuer } from "../../domain/wallet.ts";
import type { FrontDoor } from "../../http/front-door.ts";
import { OperatorBody } from "../../http/operator-body.ts";
import { noContent, operatorRoute, tenantIdOf } from "../../http/operator-route.ts";
import { appleCredentialsBody, googleCredentialsBody } from "./operator-bodies.ts";

/** `PUT /dash/api/tenants/{id}/credentials/apple` and `…/google`: a tenant's own. Never given back. */
export function walletCredentialRoutes(app: Elysia, door: FrontDoor): void {
  const { registry, wallet } = door.ports;
  const apple = new OperatorBody(appleCredentialsBody);
  app.put("/dash/api/tenants/:id/credentials/apple", ({ request, params }) =>
    operatorRoute(door, request, async (exchange) => {
      const tenantId = tenantIdOf(params.id);
      const given = await apple.read(door, exchange);
      const signer = {
        certificatePem: given.certificate_pem,
        privateKeyPem: given.private_key_pem,
        passphrase: given.passphrase ?? null,
        wwdrPem: given.wwdr_pem ?? null,
        passTypeId: given.pass_type_id,
        teamId: given.team_id,
      };
      const { problem, warnings } = wallet.checkSigner(signer);
      if (problem !== null) throw new ApiError(400, problem);
      await registry.putAppleCredentials(tenantId, signer);
      await wallet.noteSigner(signer, tenantId);
      return warnings.length === 0 ? noContent(exchange) : exchange.json(200, { warnings });
    }),
  );
  const google = new OperatorBody(googleCredentialsBody);
  app.put("/dash/api/tenants/:id/credentials/google", ({ request, params }) =>
    operatorRoute(door, request, async (exchange) => {
      const tenantId = tenantIdOf(params.id);
      const { service_account, issuer_id } = await google.read(door, exchange);
      await registry.putGoogleCredentials(tenantId, toIssuer(service_account, issuer_id));
      return noContent(exchange);
    }),
  );
}

/** Throws an `ApiError` 400 that names what is missing, and repeats nothing of the key. */
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

/** PKCS #8 in PEM; null: it is no RSA key. Keys that went through an environment variable have `\n` for line ends. */
function readRsaKey(pem: string): string | null {
  try {
    const key = createPrivateKey(pem.replaceAll("\\n", "\n"));
    return key.asymmetricKeyType === "rsa" ? key.export({ type: "pkcs8", format: "pem" }).toString() : null;
  } catch {
    return null;
  }
}
