import { createHash, type KeyObject } from "node:crypto";
import type { AppleSigner, Unusable } from "../../../domain/channels/wallet.ts";
import { remember } from "../../../domain/remember.ts";
import type { Series, SeriesGauges, Telemetry } from "../../../domain/telemetry.ts";
import { checkedSigner } from "./check-apple-signer.ts";
import { type CmsSigner, cmsSigner } from "./cms-signature.ts";

/** Credentials ready for use. */
export interface PassSigner {
  /** Equal for the same certificate and key, regardless of owner. */
  readonly id: string;
  readonly passTypeId: string;
  readonly teamId: string;
  readonly cms: CmsSigner;
  readonly notAfterMs: number;
  /** The client certificate of connections to the push service, with its issuer's if known, and the unencrypted key. */
  readonly tls: { readonly cert: string; readonly key: string };
}

export interface PassSignersOptions {
  readonly telemetry: Telemetry;
  /** Milliseconds since 1970 (Unix). */
  nowMs(): number;
}

const SIGNERS_MAX = 1_000;
/** The owner of the platform's own credentials. */
export const PLATFORM = "-";
const DAY_MS = 24 * 60 * 60 * 1000;

/**
 * Tenants' credentials, each read and checked once.
 *
 * Invariants:
 * G1. A signer is returned only while its certificates are valid.
 * G2. At most `SIGNERS_MAX` signers are kept; the least recently used one is dropped first. The same bound applies to
 *     the known expiry times.
 */
export class PassSigners {
  private readonly signers = new Map<string, Promise<PassSigner | Unusable>>();
  /** Expiry of each owner's last used certificate (Unix ms). */
  private readonly ends = new Map<string, { readonly passTypeId: string; readonly notAfterMs: number }>();

  constructor(private readonly options: PassSignersOptions) {}

  /** Opens credentials. `owner`: the tenant, or `PLATFORM`. `Unusable`: the credentials cannot sign. */
  async open(credentials: AppleSigner, owner: string): Promise<PassSigner | Unusable> {
    const id = computeFingerprint(credentials);
    const known = this.signers.get(id);
    const opening = known ?? this.read(credentials, id);
    void remember(this.signers, { key: id, value: opening, max: SIGNERS_MAX });
    // Read again next time: the cause may be the clock.
    const forget = () => {
      if (this.signers.get(id) === opening) this.signers.delete(id);
    };
    try {
      const signer = this.validNow(await opening, owner);
      if ("why" in signer) forget();
      return signer;
    } catch (error) {
      forget();
      throw error;
    }
  }

  private validNow(signer: PassSigner | Unusable, owner: string): PassSigner | Unusable {
    if ("why" in signer) return signer;
    const { passTypeId, notAfterMs } = signer;
    remember(this.ends, { key: owner, value: { passTypeId, notAfterMs }, max: SIGNERS_MAX });
    return notAfterMs <= this.options.nowMs() ? unusable("the certificate expired") : signer;
  }

  /** Returns the expiry of the owner's certificate, if it was used here. */
  findEnd(owner: string): { readonly passTypeId: string; readonly notAfterMs: number } | null {
    return this.ends.get(owner) ?? null;
  }

  /**
   * Reports the remaining life of the certificates used here, measured now rather than at their last use. `hasOwn` says whether
   * a tenant still has credentials of its own: those of a former owner are forgotten.
   */
  measure(telemetry: SeriesGauges, hasOwn: (tenantId: string) => boolean): void {
    const days: Series[] = [];
    const seconds: Series[] = [];
    for (const [tenant, { passTypeId, notAfterMs }] of this.ends) {
      if (tenant !== PLATFORM && !hasOwn(tenant)) {
        this.ends.delete(tenant);
        continue;
      }
      const leftMs = notAfterMs - this.options.nowMs();
      days.push([{ tenant, pass_type: passTypeId }, Math.floor(leftMs / DAY_MS)]);
      seconds.push([{ kind: "apple_certificate", tenant, name: passTypeId }, Math.floor(leftMs / 1_000)]);
    }
    telemetry.series("apple_certificate_expiry_days", days);
    telemetry.series("credential_expiry_seconds", seconds);
  }

  private async read(credentials: AppleSigner, id: string): Promise<PassSigner | Unusable> {
    const checked = checkedSigner(credentials, this.options.nowMs());
    if (typeof checked === "string") return unusable(checked);
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

function unusable(why: string): Unusable {
  return { why: `the credentials of the Apple wallet cannot sign: ${why}` };
}

function signingKey(key: KeyObject): Promise<CryptoKey> {
  const pkcs8 = new Uint8Array(key.export({ type: "pkcs8", format: "der" }));
  return crypto.subtle.importKey("pkcs8", pkcs8, { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" }, false, ["sign"]);
}

function computeFingerprint(credentials: AppleSigner): string {
  const { certificatePem, privateKeyPem, passphrase, wwdrPem, passTypeId, teamId } = credentials;
  const parts = [certificatePem, privateKeyPem, passphrase, wwdrPem, passTypeId, teamId];
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}
