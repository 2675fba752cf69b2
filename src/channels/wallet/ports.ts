import type { AppleSigner } from "../../domain/channels/wallet.ts";
import type { OutboundGuard } from "../../domain/texts/outbound.ts";
import type { CallTurns } from "../../http/call-turns.ts";
import type { GoogleCallbacks } from "./google/callbacks/google-callbacks.ts";
import type { GoogleClasses } from "./google-classes.ts";
import type { GoogleSaves } from "./google-saves.ts";
import type { FileLinks } from "./pass-file-links.ts";
import type { BundleMaker, GooglePasses, PassDevices, PassStore, SaveLinks } from "./passes.ts";

/** What the wallet's routes need from the app. */
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
  /** Tenants take turns to read files of their passes: one that reads many large ones must not keep the registry from the others. */
  readonly fileTurns: CallTurns;
  /** For the operator: why credentials for Apple passes are unusable, or why devices reject passes signed with them. */
  checkSigner(signer: AppleSigner): { readonly problem: string | null; readonly warnings: readonly string[] };
  /** The tenant's credentials were stored: the metrics now report their remaining life. Never rejects. */
  noteSigner(signer: AppleSigner, tenantId: string): Promise<void>;
  /** Which addresses tenants' webhooks may use. */
  readonly outbound: OutboundGuard;
}
