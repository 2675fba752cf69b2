import { createPrivateKey, type KeyObject, sign } from "node:crypto";
import type { GoogleContent, GoogleIssuer, Unusable } from "../../../domain/channels/wallet.ts";
import { jobTimeMs } from "../../../domain/ids.ts";
import { remember } from "../../../domain/remember.ts";
import { walletLimits } from "../limits.ts";
import type { Pass } from "../passes.ts";

/**
 * Signs save links: `<base>/<JWT>` (RFC 7519, RS256). The token only names the object and its class, which Google
 * already has: with the content included, it would exceed the length limit of links (1,800 characters). It does not
 * expire.
 */
export class SaveLinkSigner {
  /** By their text: reading a key takes half as long as signing with it. */
  private readonly keys = new Map<string, KeyObject>();

  /** `base` has no trailing slash. */
  constructor(private readonly base: string) {}

  /** Returns the same link for the same pass and key. */
  sign(pass: Pass, { kind, classId }: GoogleContent, issuer: GoogleIssuer): string | Unusable {
    const claims = {
      iss: issuer.clientEmail,
      aud: "google",
      typ: "savetowallet",
      // The pass's creation time keeps the link the same on every request.
      iat: Math.floor(jobTimeMs(pass.jobId) / 1000),
      payload: { [`${kind}Objects`]: [{ id: pass.serial, classId }] },
      // Origins are for buttons on web pages: a link with any of them can fail when opened from an e-mail.
      origins: [],
    };
    const signed = `${HEADER}.${base64Url(claims)}`;
    const signature = this.signText(signed, issuer.privateKeyPem);
    if (signature === null) return KEY_CANNOT_SIGN;
    return `${this.base}/${signed}.${signature.toString("base64url")}`;
  }

  private signText(text: string, pem: string): Buffer | null {
    try {
      return sign("sha256", Buffer.from(text), this.getKey(pem));
    } catch {
      return null;
    }
  }

  private getKey(pem: string): KeyObject {
    const known = this.keys.get(pem);
    if (known !== undefined) return known;
    const key = createPrivateKey(pem);
    remember(this.keys, { key: pem, value: key, max: walletLimits.googleAccountsMax });
    return key;
  }
}

const KEY_CANNOT_SIGN: Unusable = {
  why: "the private key of the Google service account cannot sign: set the credentials again",
};
const HEADER = base64Url({ alg: "RS256", typ: "JWT" });

function base64Url(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}
