import type { Channel } from "../domain/channels/channel.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { type AppChannel, type ChannelContext, collectPassFillers } from "./app-channel.ts";
import { PassCarrier } from "./carried-passes.ts";
import type { Providers } from "./providers.ts";
import { PayloadRoom } from "./stored-payloads.ts";
import type { OpenWallet } from "./wallet.ts";

interface Opening extends Pick<ChannelContext, "publicUrl" | "links" | "registry"> {
  readonly providers: Providers;
  readonly wallet: OpenWallet;
  readonly mailed: Pick<ChannelContext, "suppressions" | "bounces" | "contents">;
}

interface Opener {
  readonly channels: readonly AppChannel[];
  readonly telemetry: Telemetry;
}

/** Opens the channels, whose messages can carry passes. */
export function channelOpener(
  { channels, telemetry }: Opener,
  { providers, wallet: { bundles, messagePasses: passes }, mailed, ...context }: Opening,
): () => readonly Channel[] {
  const room = new PayloadRoom(systemClock);
  const carrier = new PassCarrier({ passes, fillers: collectPassFillers(channels), room, telemetry });
  const contents = carrier.filesOver(mailed.contents);
  return () => {
    const opened = providers.openChannels({ ...context, ...mailed, bundles, contents });
    return opened.map((channel) => carrier.over(channel));
  };
}
