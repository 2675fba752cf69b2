import { existsSync } from "node:fs";
import { join } from "node:path";
import { checkAppleSigner } from "../channels/wallet/apple/check-apple-signer.ts";
import { ApnsConnections } from "../channels/wallet/apple/push/apns-connections.ts";
import { startApnsSandbox } from "../channels/wallet/sandbox/apns-sandbox.ts";
import { type AppleIdentity, makeAppleIdentity, readAppleIdentity } from "../channels/wallet/sandbox/apple-identity.ts";
import type { Config } from "../config/config.ts";
import { generatedSecret } from "../config/generated-secret.ts";
import { ConfigurationError } from "../domain/errors.ts";
import type { SandboxMailbox } from "../domain/report.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { AppleSigner } from "../domain/wallet.ts";
import { systemClock } from "../runtime/system-clock.ts";
import type { Shutdown } from "./shutdown.ts";

const PUBLIC_PUSH_URL = "https://api.push.apple.com";
/** Root, intermediate, pass certificate and push server of the sandbox, in the data folder. */
const IDENTITY_FILE = "apple-sandbox.pem";
const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;

/**
 * The platform's own credentials for Apple's passes; null: there are none. In the sandbox they are made up where nobody
 * configured any. Throws `ConfigurationError` where those that are configured cannot sign.
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

/** The push service that this process tells of changes. */
export interface ApplePush {
  readonly connections: ApnsConnections;
  /** Null: it is not a sandbox. */
  readonly mailbox: SandboxMailbox | null;
  readonly url: string;
}

/** The configured address, the public one, or a sandbox. */
export async function startApplePush(config: Config, telemetry: Telemetry, shutdown: Shutdown): Promise<ApplePush> {
  const { apnsUrl, providers } = config;
  const url = apnsUrl ?? (providers === "live" ? PUBLIC_PUSH_URL : null);
  if (providers === "live" && !config.publicUrl?.startsWith("https:")) {
    telemetry.log(
      "warn",
      "Apple's devices ask for updates of passes over https alone, and PUBLIC_URL is something else",
    );
  }
  if (url !== null) {
    // What stands in for Apple on this machine has a certificate that nobody knows; pushes hold nothing secret.
    const verifies = !LOOPBACK.test(new URL(url).hostname);
    return { connections: new ApnsConnections({ url, ca: null, verifies, clock: systemClock }), mailbox: null, url };
  }
  const { server, rootPem } = await sandboxIdentity(config);
  const sandbox = await startApnsSandbox({ server, clock: systemClock, telemetry });
  shutdown.add("providers", "push sandbox", () => sandbox.stop());
  const connections = new ApnsConnections({ url: sandbox.url, ca: rootPem, verifies: true, clock: systemClock });
  return { connections, mailbox: sandbox.mailbox, url: sandbox.url };
}

/** Made once a data folder: all processes of it sign with the same. */
async function sandboxIdentity({ home }: Config): Promise<AppleIdentity> {
  const file = join(home, IDENTITY_FILE);
  const made = existsSync(file) ? "" : await makeAppleIdentity(systemClock.nowMs());
  const identity = readAppleIdentity(generatedSecret(file, () => made));
  if (identity !== null) return identity;
  throw new ConfigurationError(`${file} is not what the sandbox made; remove it, and it is made anew`);
}
