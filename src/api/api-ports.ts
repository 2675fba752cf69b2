import type { Clock } from "../core/clock.ts";
import type { Domains } from "../core/domain.ts";
import type { JobIds } from "../core/ids.ts";
import type { IncomingMessages } from "../core/incoming-messages.ts";
import type { FrontJournal, IdempotencyKeys } from "../core/journal.ts";
import type { LedgerReader } from "../core/ledger.ts";
import type { LedgerExport } from "../core/ledger-export.ts";
import type { LinkReader } from "../core/links.ts";
import type { PayloadStore } from "../core/payload-store.ts";
import type { PlatformCredentials } from "../core/platform.ts";
import type { Random } from "../core/random.ts";
import type { Registry } from "../core/registry.ts";
import type { SandboxMessage } from "../core/report.ts";
import type { Telemetry } from "../core/telemetry.ts";
import type { TenantDirectory } from "../core/tenant.ts";
import type { Engagement } from "../intake/engagements.ts";
import type { MailReports } from "../intake/mail-reports.ts";
import type { SuppressionList } from "../intake/suppression-list.ts";
import type { WhatsappStatuses } from "../intake/whatsapp-statuses.ts";
import type { MetricsReaders } from "./metrics-gate.ts";
import type { WrongTokens } from "./operator-gate.ts";
import type { PassKitPorts } from "./pass-kit-ports.ts";
import type { Readiness } from "./readiness.ts";
import type { WalletPorts } from "./wallet-ports.ts";

/** All that the front door needs of the house. */
export interface ApiPorts {
  readonly journal: FrontJournal & IdempotencyKeys;
  /** Where payloads wait that are too large for the journal. */
  readonly payloads: Pick<PayloadStore, "put" | "remove">;
  readonly directory: TenantDirectory;
  readonly registry: Registry;
  readonly domains: Domains;
  readonly ledger: LedgerReader;
  readonly exports: LedgerExport;
  readonly clock: Clock;
  readonly random: Random;
  readonly jobIds: JobIds;
  readonly telemetry: Telemetry;
  /** The Prometheus text exposition of this process. */
  metricsText(): Promise<string>;
  /** Who may read that; programs of this machine where nothing is said. */
  readonly metricsReaders?: MetricsReaders;
  /** Which parts are away. */
  readonly readiness: Pick<Readiness, "look">;
  /** Provider credentials of tenants without their own. */
  readonly platform: PlatformCredentials;
  /** Reads the tokens of public links. */
  readonly links: LinkReader;
  readonly suppressions: Pick<SuppressionList, "put" | "remove" | "page">;
  /** Takes what readers do, and returns at once. */
  readonly engagements: { note(engagement: Engagement): void };
  /** Takes mail that came back. */
  readonly mailReports: Pick<MailReports, "take">;
  /** What the chat provider calls back with. */
  readonly whatsapp: WhatsappPorts;
  /** What devices with passes talk to. */
  readonly passKit: PassKitPorts;
  readonly wallet: WalletPorts;
  /** Null: real providers are in use. */
  readonly sandbox: SandboxView | null;
  /** The files of the operators' page. */
  readonly dashboard: readonly { readonly path: string; readonly contentType: string; readonly file: Bun.BunFile }[];
  /** Bearer token of `/dash/api`. */
  readonly operatorToken: string;
  /** How other processes behind the same address hear of wrong ones; null or absent: there are none. */
  readonly wrongTokens?: WrongTokens | null;
  /** How many processes take requests at this address: they share the room for large bodies. Default 1. */
  readonly processes?: number;
  /** Base address that the documentation names; by default the address a request came to. */
  readonly publicUrl?: string;
  readonly version: string;
  /** Aborts when the process begins to stop: `/ready` then says so, and load balancers look elsewhere. */
  readonly whenDraining?: AbortSignal;
}

/** What reached the sandboxes, wherever they are; newest first, `to` null: everybody's. */
export interface SandboxView {
  messages(to: string | null, limit: number): readonly SandboxMessage[] | Promise<readonly SandboxMessage[]>;
}

/** What takes the chat provider's callbacks. */
export interface WhatsappPorts {
  /** Verify tokens and HMAC keys: any of them will do. */
  readonly webhookSecrets: readonly string[];
  readonly statuses: Pick<WhatsappStatuses, "take">;
  readonly messages: IncomingMessages;
}
