import { type ApnsSandbox, startApnsSandbox } from "../../src/channels/wallet/sandbox/apns-sandbox.ts";
import { makeAppleIdentity, readAppleIdentity } from "../../src/channels/wallet/sandbox/apple-identity.ts";
import {
  type GoogleOutcome,
  type GoogleSandbox,
  startGoogleSandbox,
} from "../../src/channels/wallet/sandbox/google-sandbox.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { FaultProxy } from "../support/fault-proxy.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";
import { WalletDevice } from "../support/wallet-device.ts";

const DEVICES = 12;

/** Google's wallet and Apple's push service: the sandbox's, outside of the program; and some phones with passes. */
export class WalletProvider {
  /** Share of Google's calls that meet each trouble. */
  trouble: { readonly outcome: GoogleOutcome; readonly share: number } | null = null;
  readonly devices: readonly WalletDevice[] = Array.from(
    { length: DEVICES },
    (_, at) => new WalletDevice(`soak-device-${at}`, at.toString(16).padStart(4, "a").repeat(8)),
  );
  private google!: GoogleSandbox;
  private apns!: ApnsSandbox;
  googleProxy!: FaultProxy;
  apnsProxy!: FaultProxy;

  static async start(): Promise<WalletProvider> {
    const provider = new WalletProvider();
    provider.google = await startGoogleSandbox({
      clock: systemClock,
      outcomeFor: () => {
        const { trouble } = provider;
        return trouble !== null && Math.random() < trouble.share ? trouble.outcome : null;
      },
    });
    const identity = readAppleIdentity(await makeAppleIdentity(Date.now()));
    if (identity === null) throw new Error("the sandbox's certificates cannot be read");
    provider.apns = await startApnsSandbox({
      server: identity.server,
      clock: systemClock,
      telemetry: new QuietTelemetry(),
      onPush: ({ topic, pushToken }) => provider.devices.find((one) => one.pushToken === pushToken)?.push(topic),
    });
    provider.googleProxy = await FaultProxy.start({ port: Number(new URL(provider.google.apiUrl).port) });
    provider.apnsProxy = await FaultProxy.start({ port: Number(new URL(provider.apns.url).port) });
    return provider;
  }

  get environment(): Readonly<Record<string, string>> {
    const google = `http://127.0.0.1:${this.googleProxy.port}`;
    return {
      GOOGLE_WALLET_API_URL: google,
      // An assertion names its token endpoint, so this one is reached directly.
      GOOGLE_TOKEN_URL: this.google.tokenUrl,
      APNS_URL: `https://127.0.0.1:${this.apnsProxy.port}`,
    };
  }

  goAway(): void {
    this.apns.goAway();
  }

  get complaints(): readonly string[] {
    return this.devices.flatMap((device) => device.complaints);
  }

  async stop(): Promise<void> {
    await this.googleProxy.stop();
    await this.apnsProxy.stop();
    await this.google.stop();
    await this.apns.stop();
  }
}
