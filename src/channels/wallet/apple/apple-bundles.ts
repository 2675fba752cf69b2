import type { Unusable } from "../../../domain/channels/wallet.ts";
import type { Telemetry } from "../../../domain/telemetry.ts";
import type { Tenant } from "../../../domain/tenants/tenant.ts";
import type { BundleMaker, Pass, PassBundle, PassStore, SignablePass, TokenSigner } from "../passes.ts";
import { resolveAppleSigner, type WalletPlatform } from "../platform.ts";
import { cmsSignature } from "./cms-signature.ts";
import { type PassSigner, type PassSigners, PLATFORM } from "./pass-signers.ts";
import { signedBundle } from "./signed-bundle.ts";

export interface AppleBundlesOptions {
  readonly passes: Pick<PassStore, "bundle" | "putBundle" | "signable">;
  readonly signers: PassSigners;
  readonly platform: WalletPlatform;
  /** Base URL that devices call; they append `/v1/…`. Apple's devices accept only `https`. */
  readonly publicUrl: string;
  readonly telemetry: Telemetry;
  /** Milliseconds since 1970 (Unix). */
  nowMs(): number;
}

/** Signs Apple passes with their tenant's credentials, or else the platform's. Each version is signed once. */
export class AppleBundles implements BundleMaker, TokenSigner {
  constructor(private readonly options: AppleBundlesOptions) {}

  async getBundle(pass: Pass, tenant: Tenant): Promise<PassBundle | Unusable | null> {
    const { passes, telemetry } = this.options;
    const kept = await passes.bundle(pass.passId);
    if (kept !== null && kept.version >= pass.version) return kept;
    // Signs the newest version, because an update since the pass was read may have removed its images.
    const newest = await passes.signable(tenant.tenantId, pass.passId);
    if (newest === null) return null;
    const bytes = await this.sign(newest, tenant);
    if ("why" in bytes) return bytes;
    telemetry.count("passes_signed");
    return passes.putBundle(pass.passId, newest.pass.version, bytes);
  }

  async signText(text: string, pass: Pass, tenant: Tenant): Promise<Uint8Array<ArrayBuffer> | Unusable> {
    const signer = await this.findSigner(pass, tenant);
    if ("why" in signer) return signer;
    return cmsSignature(signer.cms, new TextEncoder().encode(text), this.options.nowMs());
  }

  /**
   * Finds the signer of the pass. `Unusable`: the credentials are missing or invalid, or belong to another pass type
   * than the pass; devices do not know the pass under that type.
   */
  async findSigner(pass: Pass, tenant: Tenant): Promise<PassSigner | Unusable> {
    const credentials = resolveAppleSigner(tenant, this.options.platform);
    if (credentials === null) {
      const where = `PUT /dash/api/tenants/${tenant.tenantId}/credentials/apple`;
      return { why: `the wallet channel has no credentials for Apple's passes; they are set by ${where}` };
    }
    const owner = credentials === this.options.platform.apple ? PLATFORM : tenant.tenantId;
    const signer = await this.options.signers.open(credentials, owner);
    if ("why" in signer || pass.passTypeId === signer.passTypeId) return signer;
    const types = `${pass.passTypeId}, and the credentials are for ${signer.passTypeId}`;
    return { why: `the pass was made for the pass type ${types}` };
  }

  private async sign({ pass, images }: SignablePass, tenant: Tenant): Promise<Uint8Array<ArrayBuffer> | Unusable> {
    const { content, serial, authenticationToken } = pass;
    if (content.type !== "apple" || authenticationToken === null) return { why: "the pass is not one of Apple's" };
    const signer = await this.findSigner(pass, tenant);
    if ("why" in signer) return signer;
    const webServiceUrl = `${this.options.publicUrl}/wallet`;
    const parts = { content, serial, authenticationToken, webServiceUrl, images };
    const bytes = await signedBundle(parts, signer, this.options.nowMs());
    return bytes ?? { why: "an image of the pass is missing" };
  }
}
