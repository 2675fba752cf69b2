import { type Certificate, isIssuedBy, readCertificate } from "./certificate.ts";
import g3 from "./wwdr/AppleWWDRCAG3.pem" with { type: "text" };
import g4 from "./wwdr/AppleWWDRCAG4.pem" with { type: "text" };
import g5 from "./wwdr/AppleWWDRCAG5.pem" with { type: "text" };
import g6 from "./wwdr/AppleWWDRCAG6.pem" with { type: "text" };

/**
 * Apple's unexpired Worldwide Developer Relations intermediates (https://www.apple.com/certificateauthority/): G3 to
 * 2030-02-20, G4 and G5 to 2030-12-10, G6 to 2036-03-19. Pass certificates come from G4 today.
 */
const WWDR_CERTIFICATES: readonly Certificate[] = [g3, g4, g5, g6].flatMap((pem) => readCertificate(pem) ?? []);

/** Apple's intermediate that issued the certificate, or null if none of those known here did. */
export function wwdrCertificateFor(certificate: Certificate): Certificate | null {
  return WWDR_CERTIFICATES.find((issuer) => isIssuedBy(certificate, issuer)) ?? null;
}
