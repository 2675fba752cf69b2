import { Integer, OctetString, Utf8String } from "asn1js";
import {
  AltName,
  AttributeTypeAndValue,
  AuthorityKeyIdentifier,
  BasicConstraints,
  Certificate,
  Extension,
  ExtKeyUsage,
  GeneralName,
  RelativeDistinguishedNames,
  Time,
} from "pkijs";

/** A certificate with its key, both in PEM. The key is not encrypted. */
export interface Identity {
  readonly certificatePem: string;
  /** PKCS #8. */
  readonly privateKeyPem: string;
}

/** An identity that can issue certificates. */
export interface Issuer extends Identity {
  readonly certificate: Certificate;
  readonly key: CryptoKey;
}

export interface CertificateRequest {
  /** Object identifier → value, in the subject's order. */
  readonly subject: readonly (readonly [oid: string, value: string])[];
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  readonly purpose: "authority" | "client" | "server";
  /** Apple's extension in Pass Type ID certificates. */
  readonly passTypeId?: string;
}

export const SUBJECT = {
  userId: "0.9.2342.19200300.100.1.1",
  commonName: "2.5.4.3",
  country: "2.5.4.6",
  organization: "2.5.4.10",
  organizationalUnit: "2.5.4.11",
} as const;

const RSA = {
  name: "RSASSA-PKCS1-v1_5",
  hash: "SHA-256",
  modulusLength: 2048,
  publicExponent: Uint8Array.of(1, 0, 1),
} as const;
const EXTENDED_USAGE = { client: "1.3.6.1.5.5.7.3.2", server: "1.3.6.1.5.5.7.3.1" } as const;

/**
 * Creates a key with a certificate (RFC 5280) that only this machine should trust, self-signed if `issuer` is null. A
 * server certificate is for `127.0.0.1` and `localhost`.
 */
export async function issueCertificate(request: CertificateRequest, issuer: Issuer | null): Promise<Issuer> {
  const keys = await crypto.subtle.generateKey(RSA, true, ["sign", "verify"]);
  const certificate = new Certificate({ version: 2 });
  const serial = crypto.getRandomValues(new Uint8Array(16));
  // Positive and non-zero (RFC 5280, 4.1.2.2).
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40;
  certificate.serialNumber = new Integer({ valueHex: serial });
  certificate.subject = buildName(request.subject);
  certificate.issuer = issuer?.certificate.subject ?? certificate.subject;
  certificate.notBefore = toTime(request.notBeforeMs);
  certificate.notAfter = toTime(request.notAfterMs);
  await certificate.subjectPublicKeyInfo.importKey(keys.publicKey);
  const keyId = await computeKeyId(certificate);
  const issuerKeyId = issuer === null ? keyId : await computeKeyId(issuer.certificate);
  certificate.extensions = buildExtensions(request, { keyId, issuerKeyId });
  await certificate.sign(issuer?.key ?? keys.privateKey, "SHA-256");
  return {
    certificate,
    key: keys.privateKey,
    certificatePem: pem("CERTIFICATE", certificate.toSchema(true).toBER(false)),
    privateKeyPem: pem("PRIVATE KEY", await crypto.subtle.exportKey("pkcs8", keys.privateKey)),
  };
}

function buildName(subject: CertificateRequest["subject"]): RelativeDistinguishedNames {
  const typesAndValues = subject.map(
    ([type, value]) => new AttributeTypeAndValue({ type, value: new Utf8String({ value }) }),
  );
  return new RelativeDistinguishedNames({ typesAndValues });
}

/** Converts a time to whole seconds: UTCTime through 2049, GeneralizedTime from 2050 (RFC 5280, 4.1.2.5). */
function toTime(ms: number): Time {
  return new Time({ type: ms < Date.UTC(2050, 0) ? 0 : 1, value: new Date(Math.floor(ms / 1000) * 1000) });
}

/** Computes the key id by the first method of RFC 5280, 4.2.1.2: SHA-1 of the public key's bits. */
async function computeKeyId(certificate: Certificate): Promise<ArrayBuffer> {
  const bits = new Uint8Array(certificate.subjectPublicKeyInfo.subjectPublicKey.valueBlock.valueHexView);
  return crypto.subtle.digest("SHA-1", bits);
}

function buildExtensions(
  { purpose, passTypeId }: CertificateRequest,
  { keyId, issuerKeyId }: { readonly keyId: ArrayBuffer; readonly issuerKeyId: ArrayBuffer },
): Extension[] {
  const isAuthority = purpose === "authority";
  const extension = (extnID: string, value: ArrayBuffer, critical = false) =>
    new Extension({ extnID, critical, extnValue: value });
  const basic = new BasicConstraints({ cA: isAuthority });
  const authority = new AuthorityKeyIdentifier({ keyIdentifier: new OctetString({ valueHex: issuerKeyId }) });
  const extensions = [
    extension("2.5.29.19", basic.toSchema().toBER(false), true),
    // BIT STRING: keyCertSign and cRLSign, or digitalSignature.
    extension("2.5.29.15", Uint8Array.from(isAuthority ? [3, 2, 1, 6] : [3, 2, 7, 0x80]).buffer, true),
    extension("2.5.29.14", new OctetString({ valueHex: keyId }).toBER(false)),
    extension("2.5.29.35", authority.toSchema().toBER(false)),
  ];
  if (purpose === "authority") return extensions;
  const usage = new ExtKeyUsage({ keyPurposes: [EXTENDED_USAGE[purpose]] });
  extensions.push(extension("2.5.29.37", usage.toSchema().toBER(false)));
  if (purpose === "server") {
    const altNames = [
      new GeneralName({ type: 2, value: "localhost" }),
      new GeneralName({ type: 7, value: new OctetString({ valueHex: Uint8Array.of(127, 0, 0, 1) }) }),
    ];
    extensions.push(extension("2.5.29.17", new AltName({ altNames }).toSchema().toBER(false)));
  }
  if (passTypeId !== undefined) {
    const value = new Utf8String({ value: passTypeId }).toBER(false);
    extensions.push(extension("1.2.840.113635.100.6.1.16", value));
  }
  return extensions;
}

function pem(label: string, der: ArrayBuffer): string {
  const lines =
    Buffer.from(der)
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}
