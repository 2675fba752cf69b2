import type { Dice } from "../simulation/dice.ts";
import type { Api } from "./api.ts";
import type { Book } from "./book.ts";
import type { ChatProvider } from "./chat-provider.ts";
import type { FaultLog } from "./fault-log.ts";
import type { MailProvider } from "./mail-provider.ts";
import type { SoakOptions } from "./options.ts";
import type { Receivers } from "./receivers.ts";
import type { Service } from "./service.ts";
import type { SoakStores } from "./soak-stores.ts";
import type { Tenants } from "./tenants.ts";
import type { WalletProvider } from "./wallet-provider.ts";

/** All parts of a soak. */
export interface SoakWorld {
  readonly options: SoakOptions;
  readonly folder: string;
  readonly book: Book;
  readonly faults: FaultLog;
  readonly service: Service;
  /** A second start that only delivers, from a folder of its own; null: without servers there is one start. */
  readonly side: Service | null;
  readonly api: Api;
  readonly mail: MailProvider;
  readonly chat: ChatProvider;
  readonly wallet: WalletProvider;
  readonly receivers: Receivers;
  readonly stores: SoakStores;
  readonly tenants: Tenants;
  readonly keys: RotatedKeys;
  /** Port of the analysts' ClickHouse, and of the listener for SMTP. */
  readonly analystsPort: number;
  readonly smtpPort: number;
  /** The error of the processes' clocks. */
  readonly clockFile: string;
}

/** The keys that a restart rotates: the newest first. */
export interface RotatedKeys {
  masterKeys: readonly string[];
  webhookSecrets: readonly string[];
}

/** The state that the parts of the load share. */
export interface LoadContext extends SoakWorld {
  readonly dice: Dice;
  /** Runs it later, and counts it as load until it is done. */
  later(ms: number, run: () => Promise<void>): void;
  /** Counts the actions, by name. */
  did(what: string): void;
}
