import type { AppleSigner } from "../../../src/domain/channels/wallet.ts";
import {
  type CertificateRequest,
  type Identity,
  type Issuer,
  issueCertificate,
  SUBJECT,
} from "../../../src/runtime/certificates/certificate-authority.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
export const PASS_TYPE = "pass.test.event";
export const TEAM = "ABCDE12345";

/** A root and an intermediate like Apple's, and certificates from them with any fault that a test asks for. */
export class AppleAuthority {
  private constructor(
    readonly root: Issuer,
    readonly wwdr: Issuer,
  ) {}

  static async make(): Promise<AppleAuthority> {
    const root = await issueCertificate(authority("Test Root"), null);
    return new AppleAuthority(root, await issueCertificate(authority("Test Developer Relations"), root));
  }

  /** Valid credentials, except for the faults in the request. */
  async signer(request: Partial<CertificateRequest> = {}): Promise<AppleSigner> {
    const passTypeId = request.passTypeId ?? PASS_TYPE;
    const { certificatePem, privateKeyPem } = await issueCertificate(
      {
        subject: [
          [SUBJECT.userId, passTypeId],
          [SUBJECT.commonName, `Pass Type ID: ${passTypeId}`],
          [SUBJECT.organizationalUnit, TEAM],
          [SUBJECT.country, "US"],
        ],
        ...validFor(365),
        purpose: "client",
        passTypeId,
        ...request,
      },
      this.wwdr,
    );
    return {
      certificatePem,
      privateKeyPem,
      passphrase: null,
      wwdrPem: this.wwdr.certificatePem,
      passTypeId: PASS_TYPE,
      teamId: TEAM,
    };
  }

  /** The identity of a server on this machine. */
  server(): Promise<Identity> {
    const subject = [[SUBJECT.commonName, "localhost"]] as const;
    return issueCertificate({ subject, ...validFor(30), purpose: "server" }, this.root);
  }
}

export function validFor(days: number): Pick<CertificateRequest, "notBeforeMs" | "notAfterMs"> {
  const nowMs = Date.now();
  return { notBeforeMs: nowMs - DAY_MS, notAfterMs: nowMs + days * DAY_MS };
}

export function authority(commonName: string): CertificateRequest {
  return { subject: [[SUBJECT.commonName, commonName]], ...validFor(3650), purpose: "authority" };
}
