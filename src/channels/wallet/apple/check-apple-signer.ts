import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import type { AppleSigner } from "../../../core/wallet.ts";
import { type Certificate, isIssuedBy, readCertificate } from "./certificate.ts";
import { wwdrCertificateFor } from "./wwdr-certificates.ts";

/** Credentials that have been read and fit together. */
export interface CheckedSigner {
  readonly certificate: Certificate;
  /** The intermediate that issued it. */
  readonly wwdr: Certificate;
  readonly privateKey: KeyObject;
}

const RSA_BITS_MIN = 2048;
const KEY_CHARS_MAX = 64 * 1024;

/**
 * What is wrong with credentials for Apple's passes, as a sentence for the operator that holds no secret; null: devices
 * will accept what they sign, as far as can be told without Apple.
 */
export function checkAppleSigner(signer: AppleSigner, nowMs: number): string | null {
  const checked = checkedSigner(signer, nowMs);
  return typeof checked === "string" ? checked : null;
}

/** The credentials, or what is wrong with them. */
export function checkedSigner(signer: AppleSigner, nowMs: number): CheckedSigner | string {
  const certificate = readCertificate(signer.certificatePem);
  if (certificate === null) return "the certificate cannot be read: it should be a certificate in PEM";
  const privateKey = readPrivateKey(signer);
  if (typeof privateKey === "string") return privateKey;
  if (!isKeyOf(privateKey, certificate)) return "the private key does not belong to the certificate";
  const wwdr = wwdrOf(signer, certificate);
  if (typeof wwdr === "string") return wwdr;
  const problem =
    validityProblem("the certificate", certificate, nowMs) ??
    validityProblem("the intermediate certificate", wwdr, nowMs) ??
    identityProblem(signer, certificate);
  return problem ?? { certificate, wwdr, privateKey };
}

function readPrivateKey({ privateKeyPem, passphrase }: AppleSigner): KeyObject | string {
  let key: KeyObject;
  try {
    if (privateKeyPem.length > KEY_CHARS_MAX) throw new RangeError("too long");
    key = createPrivateKey({ key: privateKeyPem, ...(passphrase === null ? {} : { passphrase }) });
  } catch {
    if (!/ENCRYPTED/.test(privateKeyPem)) return "the private key cannot be read: it should be an RSA key in PEM";
    const what = passphrase === null ? "a passphrase is needed" : "the passphrase is wrong";
    return `the private key is encrypted, and ${what}`;
  }
  const { asymmetricKeyType, asymmetricKeyDetails } = key;
  // Apple issues Pass Type ID certificates for RSA keys alone.
  if (asymmetricKeyType !== "rsa") return "the private key should be an RSA key";
  const bits = asymmetricKeyDetails?.modulusLength ?? 0;
  return bits < RSA_BITS_MIN ? `the private key has ${bits} bits; it should have ${RSA_BITS_MIN} or more` : key;
}

function isKeyOf(key: KeyObject, certificate: Certificate): boolean {
  const spki = (each: KeyObject) => each.export({ type: "spki", format: "der" });
  return Buffer.compare(spki(createPublicKey(key)), spki(certificate.x509.publicKey)) === 0;
}

function wwdrOf({ wwdrPem }: AppleSigner, certificate: Certificate): Certificate | string {
  if (wwdrPem === null) {
    return (
      wwdrCertificateFor(certificate) ?? "the certificate was issued by none of Apple's intermediates that are known"
    );
  }
  const given = readCertificate(wwdrPem);
  if (given === null) return "the intermediate certificate cannot be read: it should be a certificate in PEM";
  return isIssuedBy(certificate, given)
    ? given
    : "the intermediate certificate is not the one that issued the certificate";
}

function validityProblem(what: string, { notBeforeMs, notAfterMs }: Certificate, nowMs: number): string | null {
  if (nowMs >= notAfterMs) return `${what} expired on ${dayOf(notAfterMs)}`;
  return nowMs < notBeforeMs ? `${what} is not valid before ${dayOf(notBeforeMs)}` : null;
}

function identityProblem({ passTypeId, teamId }: AppleSigner, { passTypeIds, teamIds }: Certificate): string | null {
  if (passTypeIds.length === 0) return "the certificate is not a Pass Type ID certificate";
  const otherType = passTypeIds.find((id) => id !== passTypeId);
  if (otherType !== undefined)
    return `the certificate is for the pass type ${quoted(otherType)}, not ${quoted(passTypeId)}`;
  if (teamIds.includes(teamId)) return null;
  return `the certificate belongs to the team ${quoted(teamIds.join(", "))}, not ${quoted(teamId)}`;
}

/** What a certificate says can be anything: on one line, and not too long. */
function quoted(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100).toWellFormed()}…` : text);
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
