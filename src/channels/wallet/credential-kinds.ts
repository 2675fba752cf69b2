import { createHash, createPublicKey } from "node:crypto";
import { Type } from "@sinclair/typebox";
import type { CredentialKind } from "../../http/credential-kind.ts";
import { readCertificate } from "./apple/certificate.ts";
import { parseAppleSigner, parseGoogleIssuer } from "./credentials.ts";

/** The signers and issuers of tenants' own passes. */
export const WALLET_CREDENTIALS: readonly CredentialKind[] = [
  {
    kind: "apple",
    channel: "wallet",
    word: "Apple",
    expires: { as: "apple_certificate", namedBy: "pass_type_id" },
    members: { pass_type_id: Type.String(), team_id: Type.String() },
    example: {
      pass_type_id: "pass.com.acme.ticket",
      team_id: "A1B2C3D4E5",
      fingerprint: "9c41be07a25d6f38",
      expires_at: "2027-11-21T07:30:00.000Z",
    },
    show(text) {
      const { certificatePem, passTypeId, teamId } = parseAppleSigner(text);
      const certificate = readCertificate(certificatePem);
      return {
        pass_type_id: passTypeId,
        team_id: teamId,
        fingerprint: computeFingerprint(certificate?.der ?? Buffer.from(certificatePem)),
        expires_at: certificate === null ? null : new Date(certificate.notAfterMs).toISOString(),
      };
    },
  },
  {
    kind: "google",
    channel: "wallet",
    word: "Google",
    members: { issuer_id: Type.String(), client_email: Type.String() },
    example: {
      issuer_id: "3388000000012345678",
      client_email: "passes@acme.iam.gserviceaccount.com",
      fingerprint: "e8a90c5d7b3f1246",
      expires_at: null,
    },
    show(text) {
      const { issuerId, clientEmail, privateKeyPem } = parseGoogleIssuer(text);
      const publicKey = createPublicKey(privateKeyPem).export({ type: "spki", format: "der" });
      return {
        issuer_id: issuerId,
        client_email: clientEmail,
        fingerprint: computeFingerprint(publicKey),
        expires_at: null,
      };
    },
  },
];

/** Computes a fingerprint of public data: a certificate, or the public half of a key. */
function computeFingerprint(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex").slice(0, 16);
}
