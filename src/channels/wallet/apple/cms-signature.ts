import type { Certificate } from "./certificate.ts";
import { der, encodeSet, oid, TAG } from "./der.ts";

/** The signer, with every part of the signature that never changes. */
export interface CmsSigner {
  readonly key: CryptoKey;
  /** IssuerAndSerialNumber. */
  readonly sid: Uint8Array;
  /** CertificateSet: the signer's certificate and, if known, its issuer's. */
  readonly certificates: Uint8Array;
}

const VERSION_1 = der(TAG.integer, Uint8Array.of(1));
const NULL = der(TAG.null);
const DATA = oid("1.2.840.113549.1.7.1");
const SIGNED_DATA = oid("1.2.840.113549.1.7.2");
const SHA_256 = der(TAG.sequence, oid("2.16.840.1.101.3.4.2.1"), NULL);
const RSA_ENCRYPTION = der(TAG.sequence, oid("1.2.840.113549.1.1.1"), NULL);
const CONTENT_TYPE = der(TAG.sequence, oid("1.2.840.113549.1.9.3"), encodeSet(DATA));
const MESSAGE_DIGEST = oid("1.2.840.113549.1.9.4");
const SIGNING_TIME = oid("1.2.840.113549.1.9.5");
const ENCAPSULATED = der(TAG.sequence, DATA);
const YEAR_2050_MS = Date.UTC(2050, 0);

/** Prepares a signer. `key`: RSASSA-PKCS1-v1_5 with SHA-256. `issuer` is null if unknown. */
export function cmsSigner(key: CryptoKey, certificate: Certificate, issuer: Certificate | null): CmsSigner {
  return {
    key,
    sid: der(TAG.sequence, certificate.issuer, certificate.serialNumber),
    certificates: der(TAG.context0, certificate.der, ...(issuer === null ? [] : [issuer.der])),
  };
}

/**
 * Creates a detached CMS signature (RFC 5652, SignedData) over the content, in the form that Wallet requires: with the
 * signer's certificate, its issuer's, and the signing time among the signed attributes. Digest and RSA run off this
 * thread.
 */
export async function cmsSignature(signer: CmsSigner, content: Uint8Array<ArrayBuffer>, nowMs: number) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", content));
  const attributes = encodeSet(
    CONTENT_TYPE,
    der(TAG.sequence, SIGNING_TIME, encodeSet(time(nowMs))),
    der(TAG.sequence, MESSAGE_DIGEST, encodeSet(der(TAG.octetString, digest))),
  );
  // Signed as a SET OF, sent under an implicit tag (RFC 5652, 5.4).
  const signature = new Uint8Array(await crypto.subtle.sign("RSASSA-PKCS1-v1_5", signer.key, attributes));
  const sentAttributes = attributes.slice();
  sentAttributes[0] = TAG.context0;
  const signerInfo = der(
    TAG.sequence,
    VERSION_1,
    signer.sid,
    SHA_256,
    sentAttributes,
    RSA_ENCRYPTION,
    der(TAG.octetString, signature),
  );
  const signedData = der(
    TAG.sequence,
    VERSION_1,
    encodeSet(SHA_256),
    ENCAPSULATED,
    signer.certificates,
    encodeSet(signerInfo),
  );
  return der(TAG.sequence, SIGNED_DATA, der(TAG.context0, signedData));
}

/** Encodes a time (RFC 5652, 11.3): UTCTime through 2049, GeneralizedTime from 2050; both without fractions. */
function time(ms: number): Uint8Array {
  const digits = new Date(ms).toISOString().slice(0, 19).replace(/\D/g, "");
  const [tag, text] = ms < YEAR_2050_MS ? [TAG.utcTime, digits.slice(2)] : [TAG.generalizedTime, digits];
  return der(tag, Buffer.from(`${text}Z`, "latin1"));
}
