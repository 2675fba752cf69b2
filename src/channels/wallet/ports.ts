import type { AppleSigner } from "../../domain/channels/wallet.ts";
import type { OutboundGuard } from "../../domain/texts/outbound.ts";
import type { CallTurns } from "../../http/call-turns.ts";
import type { GoogleCallbacks } from "./google/callbacks/google-callbacks.ts";
import type { GoogleClasses } from "./google-classes.ts";
import type { GoogleSaves } from "./google-saves.ts";
import type { FileLinks } from "./pass-file-links.ts";
import type { BundleMaker, GooglePasses, PassDevices, PassStore, SaveLinks } from "./passes.ts";

/** Dependencies of the wallet's routes. */
export interface WalletPorts {
  readonly passes: PassStore;
  readonly devices: Pick<PassDevices, "count">;
  readonly bundles: BundleMaker;
  readonly google: GooglePasses;
  readonly classes: GoogleClasses;
  readonly callbacks: Pick<GoogleCallbacks, "open">;
  readonly saves: GoogleSaves;
  readonly saveLinks: SaveLinks;
  readonly fileLinks: FileLinks;
  /**
   * Tenants take turns to read files of their passes, so that one with many large files cannot block the registry for
   * the others.
   */
  readonly fileTurns: CallTurns;
  /**
   * Returns, for the operator, why credentials for Apple passes are unusable, or why devices reject passes signed with
   * them.
   */
  checkSigner(signer: AppleSigner): { readonly problem: string | null; readonly warnings: readonly string[] };
  /** Reports the remaining life of the tenant's new credentials in the metrics. Never rejects. */
  noteSigner(signer: AppleSigner, tenantId: string): Promise<void>;
  /** The guard that decides which addresses tenants' webhooks may use. */
  readonly outbound: OutboundGuard;
}
