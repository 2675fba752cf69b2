import type { AppleSigner } from "../../../domain/channels/wallet.ts";
import {
  type CertificateRequest,
  type Identity,
  issueCertificate,
  SUBJECT,
} from "../../../runtime/certificates/certificate-authority.ts";

/** Stand-ins for Apple's certificates: no device trusts them, but every tool can verify them. */
export interface AppleIdentity {
  readonly signer: AppleSigner;
  /** The push service's certificate and key. */
  readonly server: Identity;
  /** The root that issued all of them, directly or indirectly. */
  readonly rootPem: string;
}

const PASS_TYPE_ID = "pass.test.waybill.sandbox";
const TEAM_ID = "SANDBOX001";
const YEARS = 20;
const DAY_MS = 24 * 60 * 60 * 1000;

/**
 * Creates a root, an intermediate like Apple's, a Pass Type ID certificate and the push service's, concatenated in PEM,
 * with the keys of the last two before them. Created once and kept: signatures under another root could not be
 * verified.
 */
export async function makeAppleIdentity(nowMs: number): Promise<string> {
  const root = await issueCertificate(authority("Waybill Sandbox Root", "Sandbox", nowMs), null);
  const name = "Waybill Sandbox Developer Relations Certification Authority";
  const wwdr = await issueCertificate(authority(name, "S1", nowMs), root);
  const signer = await issueCertificate(
    {
      subject: [
        [SUBJECT.userId, PASS_TYPE_ID],
        // So that passes can be tried with any content.
        [SUBJECT.commonName, `Pass Type ID with NFC: ${PASS_TYPE_ID}`],
        [SUBJECT.organizationalUnit, TEAM_ID],
        [SUBJECT.organization, "Waybill Sandbox"],
      ],
      ...validity(nowMs),
      purpose: "client",
      passTypeId: PASS_TYPE_ID,
    },
    wwdr,
  );
  const subject = [[SUBJECT.commonName, "localhost"]] as const;
  const server = await issueCertificate({ subject, ...validity(nowMs), purpose: "server" }, root);
  const blocks = [root.certificatePem, wwdr.certificatePem, signer.privateKeyPem, signer.certificatePem];
  return [...blocks, server.privateKeyPem, server.certificatePem].join("");
}

/** Parses the output of `makeAppleIdentity`; null for any other text. */
export function readAppleIdentity(pem: string): AppleIdentity | null {
  const blocks = pem.match(/-----BEGIN [A-Z ]+-----[^-]+-----END [A-Z ]+-----/g) ?? [];
  const [rootPem, wwdrPem, privateKeyPem, certificatePem, serverKeyPem, serverPem] = blocks;
  if (rootPem === undefined || wwdrPem === undefined || privateKeyPem === undefined) return null;
  if (certificatePem === undefined || serverKeyPem === undefined || serverPem === undefined) return null;
  return {
    signer: { certificatePem, privateKeyPem, passphrase: null, wwdrPem, passTypeId: PASS_TYPE_ID, teamId: TEAM_ID },
    server: { certificatePem: serverPem, privateKeyPem: serverKeyPem },
    rootPem,
  };
}

function authority(commonName: string, unit: string, nowMs: number): CertificateRequest {
  const subject = [
    [SUBJECT.commonName, commonName],
    [SUBJECT.organizationalUnit, unit],
    [SUBJECT.organization, "Waybill Sandbox"],
  ] as const;
  return { subject, ...validity(nowMs), purpose: "authority" };
}

/** Returns a validity from yesterday on, for machines whose clocks disagree. */
function validity(nowMs: number): Pick<CertificateRequest, "notBeforeMs" | "notAfterMs"> {
  return { notBeforeMs: nowMs - DAY_MS, notAfterMs: nowMs + YEARS * 365 * DAY_MS };
}
