import { createHash, type KeyObject } from "node:crypto";
import { ApiError } from "../../../domain/errors.ts";
import { remember } from "../../../domain/remember.ts";
import type { Telemetry } from "../../../domain/telemetry.ts";
import type { AppleSigner } from "../../../domain/wallet.ts";
import { checkedSigner } from "./check-apple-signer.ts";
import { type CmsSigner, cmsSigner } from "./cms-signature.ts";

/** Credentials that are ready for use. */
export interface PassSigner {
  /** The same for the same certificate and key, whoever's they are. */
  readonly id: string;
  readonly passTypeId: string;
  readonly teamId: string;
  readonly cms: CmsSigner;
  readonly notAfterMs: number;
  /** What a connection to the push service shows: the certificate with its issuer's where that is known, and the key, not encrypted. */
  readonly tls: { readonly cert: string; readonly key: string };
}

export interface PassSignersOptions {
  readonly telemetry: Telemetry;
  /** Milliseconds since 1970 (Unix). */
  nowMs(): number;
}

const SIGNERS_MAX = 1_000;
const DAY_MS = 24 * 60 * 60 * 1000;

/**
 * Credentials of tenants, read and checked once.
 *
 * Invariants:
 * G1. A signer is handed out only while its certificates are valid.
 * G2. There are never more than `SIGNERS_MAX`; the least recently used one makes room. So it is with what is known of
 *     their ends.
 */
export class PassSigners {
  private readonly signers = new Map<string, Promise<PassSigner>>();
  /** When the certificate ends that an owner used last, Unix ms, by owner. */
  private readonly ends = new Map<string, { readonly passTypeId: string; readonly notAfterMs: number }>();

  constructor(private readonly options: PassSignersOptions) {}

  /**
   * `owner`: the tenant, or `-` for the platform's own. Rejects with `ApiError` 500 where the credentials cannot sign: a
   * sentence that says why.
   */
  async open(credentials: AppleSigner, owner: string): Promise<PassSigner> {
    const id = fingerprintOf(credentials);
    const known = this.signers.get(id);
    const opening = known ?? this.read(credentials, id);
    remember(this.signers, { key: id, value: opening, max: SIGNERS_MAX });
    try {
      const signer = await opening;
      const { passTypeId, notAfterMs } = signer;
      remember(this.ends, { key: owner, value: { passTypeId, notAfterMs }, max: SIGNERS_MAX });
      if (notAfterMs <= this.options.nowMs()) throw refused("the certificate expired");
      return signer;
    } catch (error) {
      // Read again the next time: what is wrong may be a matter of the clock.
      if (this.signers.get(id) === opening) this.signers.delete(id);
      throw error;
    }
  }

  /** Has the metrics say how long the certificates last that were used here: by now, and not when they were used. */
  measure(): void {
    for (const [tenant, { passTypeId, notAfterMs }] of this.ends) {
      const days = Math.floor((notAfterMs - this.options.nowMs()) / DAY_MS);
      this.options.telemetry.gauge("apple_certificate_expiry_days", days, { tenant, pass_type: passTypeId });
    }
  }

  private async read(credentials: AppleSigner, id: string): Promise<PassSigner> {
    const checked = checkedSigner(credentials, this.options.nowMs());
    if (typeof checked === "string") throw refused(checked);
    const { certificate, wwdr, privateKey, warnings } = checked;
    const chain = wwdr === null ? [certificate] : [certificate, wwdr];
    if (warnings.length > 0) {
      const fields = { pass_type: credentials.passTypeId, why: warnings.join("; ") };
      this.options.telemetry.log("warn", "no device of Apple's will accept what these credentials sign", fields);
    }
    return {
      id,
      passTypeId: credentials.passTypeId,
      teamId: credentials.teamId,
      cms: cmsSigner(await signingKey(privateKey), certificate, wwdr),
      notAfterMs: Math.min(...chain.map((one) => one.notAfterMs)),
      tls: {
        cert: chain.map(({ x509 }) => x509.toString().trim()).join("\n"),
        key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
      },
    };
  }
}

function refused(why: string): ApiError {
  return new ApiError(500, `the credentials of the Apple wallet cannot sign: ${why}`);
}

function signingKey(key: KeyObject): Promise<CryptoKey> {
  const pkcs8 = new Uint8Array(key.export({ type: "pkcs8", format: "der" }));
  return crypto.subtle.importKey("pkcs8", pkcs8, { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" }, false, ["sign"]);
}

function fingerprintOf(credentials: AppleSigner): string {
  const { certificatePem, privateKeyPem, passphrase, wwdrPem, passTypeId, teamId } = credentials;
  const parts = [certificatePem, privateKeyPem, passphrase, wwdrPem, passTypeId, teamId];
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}
