import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import type { AppleSigner } from "../../../domain/channels/wallet.ts";
import { type Certificate, isIssuedBy, readCertificate, readCertificates } from "./certificate.ts";
import g3 from "./wwdr/AppleWWDRCAG3.pem" with { type: "text" };
import g4 from "./wwdr/AppleWWDRCAG4.pem" with { type: "text" };
import g5 from "./wwdr/AppleWWDRCAG5.pem" with { type: "text" };
import g6 from "./wwdr/AppleWWDRCAG6.pem" with { type: "text" };

/** Credentials that have been read and match each other. */
export interface CheckedSigner {
  readonly certificate: Certificate;
  /** The intermediate that issued the certificate. Null if none is given and none of Apple's issued it. */
  readonly wwdr: Certificate | null;
  readonly privateKey: KeyObject;
  /**
   * Reasons why Apple's devices reject passes signed with them, as sentences without secrets; empty: devices accept
   * them.
   */
  readonly warnings: readonly string[];
}

/** Errors and warnings about credentials. */
export interface SignerVerdict {
  /** The reason why they are unusable, or null. */
  readonly problem: string | null;
  /** As in `CheckedSigner`. */
  readonly warnings: readonly string[];
}

const RSA_BITS_MIN = 2048;
const KEY_CHARS_MAX = 64 * 1024;
/** How many certificates to read from a text that may contain a whole chain. */
const CHAIN_MAX = 8;

/** Checks credentials for Apple passes and reports in sentences for the operator without secrets. */
export function checkAppleSigner(signer: AppleSigner, nowMs: number): SignerVerdict {
  const checked = checkedSigner(signer, nowMs);
  return typeof checked === "string"
    ? { problem: checked, warnings: [] }
    : { problem: null, warnings: checked.warnings };
}

/**
 * Returns the credentials, or a sentence that says why they are invalid. Contradictory credentials are refused.
 * Incomplete ones cannot be one of Apple's certificates, but still sign: for a test, or under an intermediate that is
 * newer than this program.
 */
export function checkedSigner(signer: AppleSigner, nowMs: number): CheckedSigner | string {
  const certificate = readCertificate(signer.certificatePem);
  if (certificate === null) return "the certificate cannot be read: it should be a certificate in PEM";
  const privateKey = readPrivateKey(signer);
  if (typeof privateKey === "string") return privateKey;
  if (!isCertifiedBy(privateKey, certificate)) return "the private key does not belong to the certificate";
  const wwdr = findWwdr(signer, certificate);
  if (typeof wwdr === "string") return wwdr;
  const problem =
    validityProblem("the certificate", certificate, nowMs) ??
    (wwdr === null ? null : validityProblem("the intermediate certificate", wwdr, nowMs)) ??
    identityProblem(signer, certificate);
  return problem ?? { certificate, wwdr, privateKey, warnings: listWarnings(certificate, wwdr) };
}

const nfcBySigner = new WeakMap<AppleSigner, boolean>();

/** Whether a pass with `nfc` opens on devices if these credentials sign it. */
export function permitsNfc(signer: AppleSigner): boolean {
  const known = nfcBySigner.get(signer);
  if (known !== undefined) return known;
  // An unreadable certificate cannot sign either, and is reported elsewhere.
  const permits = readCertificate(signer.certificatePem)?.permitsNfc ?? true;
  nfcBySigner.set(signer, permits);
  return permits;
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
  // Apple issues Pass Type ID certificates for RSA keys only.
  if (asymmetricKeyType !== "rsa") return "the private key should be an RSA key";
  const bits = asymmetricKeyDetails?.modulusLength ?? 0;
  return bits < RSA_BITS_MIN ? `the private key has ${bits} bits; it should have ${RSA_BITS_MIN} or more` : key;
}

function isCertifiedBy(key: KeyObject, certificate: Certificate): boolean {
  const spki = (each: KeyObject) => each.export({ type: "spki", format: "der" });
  return Buffer.compare(spki(createPublicKey(key)), spki(certificate.x509.publicKey)) === 0;
}

function findWwdr({ wwdrPem }: AppleSigner, certificate: Certificate): Certificate | null | string {
  if (wwdrPem === null) return wwdrCertificateFor(certificate);
  const given = readCertificates(wwdrPem, CHAIN_MAX);
  if (given.length === 0) return "the intermediate certificate cannot be read: it should be a certificate in PEM";
  const issuer = given.find((one) => isIssuedBy(certificate, one));
  return issuer ?? "the intermediate certificate is not the one that issued the certificate";
}

function validityProblem(what: string, { notBeforeMs, notAfterMs }: Certificate, nowMs: number): string | null {
  if (nowMs >= notAfterMs) return `${what} expired on ${formatDay(notAfterMs)}`;
  return nowMs < notBeforeMs ? `${what} is not valid before ${formatDay(notBeforeMs)}` : null;
}

function identityProblem({ passTypeId, teamId }: AppleSigner, { passTypeIds, teamIds }: Certificate): string | null {
  const otherType = passTypeIds.find((id) => id !== passTypeId);
  if (otherType !== undefined)
    return `the certificate is for the pass type ${quoted(otherType)}, not ${quoted(passTypeId)}`;
  if (teamIds.length === 0 || teamIds.includes(teamId)) return null;
  return `the certificate belongs to the team ${quoted(teamIds.join(", "))}, not ${quoted(teamId)}`;
}

function listWarnings({ passTypeIds, teamIds }: Certificate, wwdr: Certificate | null): readonly string[] {
  const all = [
    wwdr === null && "the certificate was issued by none of Apple's intermediates that are known, and none is given",
    passTypeIds.length === 0 && "the certificate names no pass type: it is not a Pass Type ID certificate of Apple's",
    teamIds.length === 0 && "the certificate names no team",
  ];
  return all.filter((warning) => warning !== false);
}

/** Quotes a certificate's text, which can be arbitrary, on one line of bounded length. */
function quoted(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100).toWellFormed()}…` : text);
}

function formatDay(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

/**
 * Apple's unexpired Worldwide Developer Relations intermediates (https://www.apple.com/certificateauthority/): G3 to
 * 2030-02-20, G4 and G5 to 2030-12-10, G6 to 2036-03-19. Pass certificates come from G4 today.
 */
const WWDR_PEMS: readonly string[] = [g3, g4, g5, g6];
/** Parsed on first use, because that takes a fifth of the whole program's load time. */
let wwdrCertificates: readonly Certificate[] | null = null;

/** Returns Apple's intermediate that issued the certificate, or null if it is none of those known here. */
function wwdrCertificateFor(certificate: Certificate): Certificate | null {
  wwdrCertificates ??= WWDR_PEMS.flatMap((pem) => readCertificate(pem) ?? []);
  return wwdrCertificates.find((issuer) => isIssuedBy(certificate, issuer)) ?? null;
}
