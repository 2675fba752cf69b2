import type { GoogleClasses } from "../../domain/google-classes.ts";
import type { OutboundGuard } from "../../domain/outbound.ts";
import type { BundleMaker, GooglePasses, PassDevices, PassStore, SaveLinks } from "../../domain/passes.ts";
import type { AppleSigner } from "../../domain/wallet.ts";

/** What the wallet's routes need from the app. */
export interface WalletPorts {
  readonly passes: PassStore;
  readonly devices: Pick<PassDevices, "count">;
  readonly bundles: BundleMaker;
  readonly google: GooglePasses;
  readonly classes: GoogleClasses;
  readonly saveLinks: SaveLinks;
  /** Why credentials for Apple's passes cannot be used, or why devices will not take what they sign, for the operator. */
  checkSigner(signer: AppleSigner): { readonly problem: string | null; readonly warnings: readonly string[] };
  /** The tenant's credentials were stored: from now on the metrics say how long they last. Never rejects. */
  noteSigner(signer: AppleSigner, tenantId: string): Promise<void>;
  /** Where tenants' webhooks may go. */
  readonly outbound: OutboundGuard;
}
