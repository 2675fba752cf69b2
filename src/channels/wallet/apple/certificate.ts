import { X509Certificate } from "node:crypto";
import { type RelativeDistinguishedNames, Certificate as X509 } from "pkijs";

/** The parts of an X.509 certificate (RFC 5280) that signing passes needs. */
export interface Certificate {
  readonly der: Uint8Array<ArrayBuffer>;
  /** Names in DER, compared byte by byte. */
  readonly issuer: Uint8Array<ArrayBuffer>;
  readonly subject: Uint8Array<ArrayBuffer>;
  /** DER of the INTEGER. */
  readonly serialNumber: Uint8Array<ArrayBuffer>;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  /** Pass types from the subject (`UID`, and `CN` if it has the right form) and from Apple's own extension. */
  readonly passTypeIds: readonly string[];
  /** `OU` of the subject: the team. */
  readonly teamIds: readonly string[];
  /** Whether it may sign passes with `nfc`: Apple issues such certificates on request only. */
  readonly permitsNfc: boolean;
  /** Lets the runtime's own library compare keys and check signatures. */
  readonly x509: X509Certificate;
}

const OID = {
  userId: "0.9.2342.19200300.100.1.1",
  commonName: "2.5.4.3",
  organizationalUnit: "2.5.4.11",
  /** Apple's extension with the identifier that the certificate was issued for. */
  applePassType: "1.2.840.113635.100.6.1.16",
  /** Apple's extension in certificates that are named `Pass Type ID with NFC`. */
  appleNfc: "1.2.840.113635.100.6.1.26",
} as const;

const PEM_CHARS_MAX = 64 * 1024;
const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----/g;
const PASS_TYPE_NAME = /^Pass Type ID(?: with NFC)?: (.+)$/;
const NFC_NAME = /^Pass Type ID with NFC: /;

/** Reads the first certificate of a PEM text (RFC 7468), or returns null if none can be read. */
export function readCertificate(pem: string): Certificate | null {
  return readCertificates(pem, 1)[0] ?? null;
}

/** Reads the first `max` certificates of a PEM text, without unreadable ones. */
export function readCertificates(pem: string, max: number): readonly Certificate[] {
  if (pem.length > PEM_CHARS_MAX) return [];
  const bodies = pem.matchAll(PEM_CERTIFICATE).take(max);
  return [...bodies].flatMap(([, body = ""]) => read(new Uint8Array(Buffer.from(body, "base64"))) ?? []);
}

/** Whether `issuer` signed the certificate: by name and by signature. */
export function isIssuedBy(certificate: Certificate, issuer: Certificate): boolean {
  if (Buffer.compare(certificate.issuer, issuer.subject) !== 0) return false;
  try {
    return certificate.x509.verify(issuer.x509.publicKey);
  } catch {
    // The key is of another kind than the signature.
    return false;
  }
}

function read(der: Uint8Array<ArrayBuffer>): Certificate | null {
  try {
    return describe(der);
  } catch {
    // Any library error means that this is no certificate.
    return null;
  }
}

function describe(der: Uint8Array<ArrayBuffer>): Certificate {
  const certificate = X509.fromBER(der);
  const extensions = new Map((certificate.extensions ?? []).map((one) => [one.extnID, one]));
  const passType = extensions.get(OID.applePassType)?.extnValue.valueBlock.valueHexView;
  const names = readTexts(certificate.subject, OID.commonName);
  const named = names.flatMap((name) => PASS_TYPE_NAME.exec(name)?.[1] ?? []);
  const passTypeIds = [...readTexts(certificate.subject, OID.userId), ...named];
  return {
    der,
    issuer: new Uint8Array(certificate.issuer.toSchema().toBER()),
    subject: new Uint8Array(certificate.subject.toSchema().toBER()),
    serialNumber: new Uint8Array(certificate.serialNumber.toBER()),
    notBeforeMs: certificate.notBefore.value.getTime(),
    notAfterMs: certificate.notAfter.value.getTime(),
    passTypeIds: passType === undefined ? passTypeIds : [...passTypeIds, stringIn(passType)],
    teamIds: readTexts(certificate.subject, OID.organizationalUnit),
    // Either one suffices: a pass that a phone refuses costs less than refusing to sign one that Apple permits.
    permitsNfc: extensions.has(OID.appleNfc) || names.some((name) => NFC_NAME.test(name)),
    x509: new X509Certificate(der),
  };
}

function readTexts(name: RelativeDistinguishedNames, oid: string): readonly string[] {
  return name.typesAndValues.flatMap(({ type, value }) => (type === oid ? [String(value.valueBlock.value)] : []));
}

/** Reads the text of a short string of any DER string type. */
function stringIn(element: Uint8Array): string {
  return Buffer.from(element.subarray(2)).toString("utf8");
}
