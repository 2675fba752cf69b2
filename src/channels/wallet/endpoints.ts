import type { Clock } from "../../domain/clock.ts";
import type { JobIds } from "../../domain/ids.ts";
import type { Random } from "../../domain/random.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import { CallTurns } from "../../http/call-turns.ts";
import type { Endpoint } from "../../http/endpoint.ts";
import type { RegistryTools } from "../../storage/registry.ts";
import { type WalletCredentialPorts, type WalletRegistry, walletCredentialEndpoints } from "./credential-endpoints.ts";
import { appleSecret, googleSecret } from "./credentials.ts";
import { passKitEndpoints } from "./devices/pass-kit-endpoints.ts";
import type { PassKitPorts } from "./devices/pass-kit-ports.ts";
import { personalizeEndpoint } from "./devices/personalize-endpoint.ts";
import { googleCallbackEndpoint } from "./google-callback-endpoint.ts";
import { googleClassEndpoints } from "./google-class-endpoints.ts";
import { walletLimits } from "./limits.ts";
import { passEndpoints } from "./pass-endpoints.ts";
import { passFileEndpoint, passLinkEndpoint } from "./pass-file-endpoint.ts";
import type { WalletPlatform } from "./platform.ts";
import type { WalletPorts } from "./ports.ts";
import { type SendWalletPorts, sendWalletEndpoints } from "./send-endpoints.ts";
import { type WalletWebhookPorts, walletWebhookEndpoint } from "./webhook-endpoint.ts";

/** Dependencies of the channel's endpoints. */
export interface WalletEndpointPorts {
  readonly wallet: WalletPorts;
  /** Dependencies of the endpoints for devices. */
  readonly passKit: PassKitPorts;
  readonly registry: SendWalletPorts["registry"] & WalletCredentialPorts["registry"] & WalletWebhookPorts["registry"];
  /** Provider credentials for tenants without their own. */
  readonly platform: WalletPlatform;
  readonly queue: SendWalletPorts["queue"];
  readonly clock: Clock;
  readonly random: Random;
  readonly jobIds: JobIds;
  readonly telemetry: Pick<Telemetry, "log" | "count">;
}

/** Lists the endpoints for tenants' passes and classes, for devices, and for operators. */
export function walletEndpoints(ports: WalletEndpointPorts): readonly Endpoint[] {
  const fileTurns = new CallTurns(walletLimits.fileReads, ports.clock);
  return [
    ...sendWalletEndpoints(ports),
    ...passEndpoints(ports),
    passLinkEndpoint(ports),
    ...googleClassEndpoints(ports),
    googleCallbackEndpoint(ports),
    ...passKitEndpoints(ports.passKit, ports.clock, fileTurns),
    personalizeEndpoint(ports.passKit, ports.clock),
    passFileEndpoint(ports.wallet, fileTurns),
    ...walletCredentialEndpoints(ports),
    walletWebhookEndpoint(ports),
  ];
}

/** Creates the channel's part of the registry. */
export function walletRegistry({ credentials }: RegistryTools): WalletRegistry {
  return {
    putAppleCredentials: (tenantId, signer) => credentials.put(appleSecret(tenantId, signer), "wallet"),
    putGoogleCredentials: (tenantId, issuer) => credentials.put(googleSecret(tenantId, issuer), "wallet"),
  };
}

declare module "../../storage/registry.ts" {
  interface Registry extends WalletRegistry {}
}
