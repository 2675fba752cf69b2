import type { Clock } from "../../domain/clock.ts";
import type { JobIds } from "../../domain/ids.ts";
import type { PlatformCredentials } from "../../domain/platform.ts";
import type { IdempotencyKeys } from "../../domain/queue.ts";
import type { Random } from "../../domain/random.ts";
import type { Registry } from "../../domain/registry.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import type { Endpoint } from "../../http/endpoint.ts";
import { walletCredentialEndpoints } from "./credential-endpoints.ts";
import { passKitEndpoints } from "./devices/pass-kit-endpoints.ts";
import type { PassKitPorts } from "./devices/pass-kit-ports.ts";
import { googleClassEndpoints } from "./google-class-endpoints.ts";
import { passEndpoints } from "./pass-endpoints.ts";
import type { WalletPorts } from "./ports.ts";
import { sendWalletEndpoints } from "./send-endpoints.ts";
import { walletWebhookEndpoint } from "./webhook-endpoint.ts";

/** Everything that the channel's endpoints need. */
export interface WalletEndpointPorts {
  readonly wallet: WalletPorts;
  /** What the endpoints for devices need. */
  readonly passKit: PassKitPorts;
  readonly registry: Pick<Registry, "tenant" | "putAppleCredentials" | "putGoogleCredentials" | "putWalletWebhook">;
  /** Provider credentials for tenants without their own. */
  readonly platform: PlatformCredentials;
  readonly queue: IdempotencyKeys;
  readonly clock: Clock;
  readonly random: Random;
  readonly jobIds: JobIds;
  readonly telemetry: Pick<Telemetry, "log">;
}

/** Wallet passes: endpoints for tenants' passes and classes, for devices, and for operators. */
export function walletEndpoints(ports: WalletEndpointPorts): readonly Endpoint[] {
  return [
    ...sendWalletEndpoints(ports),
    ...passEndpoints(ports),
    ...googleClassEndpoints(ports),
    ...passKitEndpoints(ports.passKit),
    ...walletCredentialEndpoints(ports),
    walletWebhookEndpoint(ports),
  ];
}
