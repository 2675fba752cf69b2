import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../../../config/config.ts";
import { generatedAs } from "../../../config/generated-secret.ts";
import type { AppleSigner } from "../../../domain/channels/wallet.ts";
import { ConfigurationError } from "../../../domain/errors.ts";
import type { SandboxInbox } from "../../../domain/jobs/report.ts";
import type { Telemetry } from "../../../domain/telemetry.ts";
import { extractHost, isLoopback } from "../../../domain/texts/host.ts";
import type { Shutdown } from "../../../runtime/shutdown.ts";
import { systemClock } from "../../../runtime/system-clock.ts";
import { systemRandom } from "../../../runtime/system-random.ts";
import { checkAppleSigner } from "../apple/check-apple-signer.ts";
import { ApnsConnections } from "../apple/push/apns-connections.ts";
import { startApnsSandbox } from "../sandbox/apns-sandbox.ts";
import { type AppleIdentity, makeAppleIdentity, readAppleIdentity } from "../sandbox/apple-identity.ts";

const PUBLIC_PUSH_URL = "https://api.push.apple.com";
/** The sandbox's root, intermediate, pass certificate and push server, in the data folder. */
const IDENTITY_FILE = "apple-sandbox.pem";

/**
 * The platform's own credentials for Apple passes, or null. In the sandbox they are generated unless configured. Throws
 * `ConfigurationError` if the configured ones cannot sign.
 */
export async function platformApple(config: Config): Promise<AppleSigner | null> {
  const { appleCertificate, applePrivateKey, applePassTypeId, appleTeamId } = config;
  if (appleCertificate === null || applePrivateKey === null || applePassTypeId === null || appleTeamId === null) {
    return config.providers === "live" ? null : (await sandboxIdentity(config)).signer;
  }
  const signer = {
    certificatePem: appleCertificate,
    privateKeyPem: applePrivateKey,
    passphrase: config.applePassphrase,
    wwdrPem: config.appleWwdr,
    passTypeId: applePassTypeId,
    teamId: appleTeamId,
  };
  const { problem } = checkAppleSigner(signer, systemClock.nowMs());
  if (problem === null) return signer;
  throw new ConfigurationError(`APPLE_CERTIFICATE and what is set with it cannot sign passes: ${problem}`);
}

/** The push service that this process notifies of changes. */
export interface ApplePush {
  readonly connections: ApnsConnections;
  /** Null unless it is a sandbox. */
  readonly inbox: SandboxInbox | null;
  readonly url: string;
}

/** The configured address or the public one; null: a sandbox stands in. */
export function realPushUrl({ apnsUrl, providers }: Config): string | null {
  return apnsUrl ?? (providers === "live" ? PUBLIC_PUSH_URL : null);
}

/** Uses the configured address, the public one, or a sandbox. */
export async function startApplePush(config: Config, telemetry: Telemetry, shutdown: Shutdown): Promise<ApplePush> {
  const { providers } = config;
  const url = realPushUrl(config);
  if (providers === "live" && !config.publicUrl?.startsWith("https:")) {
    telemetry.log(
      "warn",
      "Apple's devices ask for updates of passes over https alone, and PUBLIC_URL is something else",
    );
  }
  if (url !== null) {
    // A stand-in for Apple on this machine has an unknown certificate, and pushes carry no secrets.
    const verifies = !isLoopback(extractHost(new URL(url)));
    return {
      connections: new ApnsConnections({ url, ca: null, verifies, clock: systemClock, random: systemRandom }),
      inbox: null,
      url,
    };
  }
  const { server, rootPem } = await sandboxIdentity(config);
  const sandbox = await startApnsSandbox({ server, clock: systemClock, telemetry });
  shutdown.add("providers", "push sandbox", () => sandbox.stop());
  const connections = new ApnsConnections({
    url: sandbox.url,
    ca: rootPem,
    verifies: true,
    clock: systemClock,
    random: systemRandom,
  });
  return { connections, inbox: sandbox.inbox, url: sandbox.url };
}

/** Created once per data folder, so all processes using it sign with the same identity. */
async function sandboxIdentity({ home }: Config): Promise<AppleIdentity> {
  const file = join(home, IDENTITY_FILE);
  const made = existsSync(file) ? "" : await makeAppleIdentity(systemClock.nowMs());
  return generatedAs(file, () => made, readAppleIdentity);
}
