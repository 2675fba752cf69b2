import { PassPusher } from "../channels/wallet/apple/push/pass-pusher.ts";
import { WalletChannel } from "../channels/wallet/wallet-channel.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { systemRandom } from "../runtime/system-random.ts";
import type { ChannelPorts, StartedChannel } from "./app-channel.ts";
import { startApplePush } from "./apple.ts";
import type { Shutdown } from "./shutdown.ts";

/** Passes for Apple's wallet, whose devices are told of changes, and for Google's. */
export async function startWallet(
  { config, telemetry, google }: ChannelPorts,
  shutdown: Shutdown,
): Promise<StartedChannel> {
  const { connections, inbox, url } = await startApplePush(config, telemetry, shutdown);
  return {
    urls: { apnsUrl: url },
    inbox,
    open({ registry: { passes, devices }, bundles }) {
      const pusher = new PassPusher({ connections, devices, clock: systemClock, random: systemRandom, telemetry });
      const wallet = new WalletChannel({ passes, bundles, pusher, google, telemetry });
      shutdown.add("providers", "pushes", () => wallet.close());
      return wallet;
    },
  };
}
