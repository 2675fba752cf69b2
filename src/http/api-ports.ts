import type { MailReports } from "../channels/email/reports/mail-reports.ts";
import type { PassKitPorts } from "../channels/wallet/devices/pass-kit-ports.ts";
import type { WalletPorts } from "../channels/wallet/ports.ts";
import type { WhatsappStatuses } from "../channels/whatsapp/statuses.ts";
import type { Clock } from "../domain/clock.ts";
import type { Domains } from "../domain/domain.ts";
import type { LedgerExport } from "../domain/event-export.ts";
import type { LedgerReader } from "../domain/event-store.ts";
import type { JobIds } from "../domain/ids.ts";
import type { IncomingMessages } from "../domain/incoming-messages.ts";
import type { LinkReader } from "../domain/links.ts";
import type { PayloadStore } from "../domain/payload-store.ts";
import type { PlatformCredentials } from "../domain/platform.ts";
import type { FrontJournal, IdempotencyKeys } from "../domain/queue.ts";
import type { Random } from "../domain/random.ts";
import type { Registry } from "../domain/registry.ts";
import type { SandboxMessage } from "../domain/report.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { TenantDirectory } from "../domain/tenant.ts";
import type { Engagement } from "../engine/reports/engagements.ts";
import type { SuppressionList } from "../tenants/suppression-list.ts";
import type { MetricsReaders } from "./metrics-gate.ts";
import type { WrongTokens } from "./operator-gate.ts";
import type { Readiness } from "./readiness.ts";

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
