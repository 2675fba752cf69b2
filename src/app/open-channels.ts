import type { AppChannel, ChannelApi, ChannelPorts, OpenChannel } from "../channels/contract.ts";
import type { Config } from "../config/config.ts";
import type { Channel } from "../domain/channels/channel.ts";
import type { Expiring } from "../domain/channels/credentials.ts";
import type { PlatformCredentials } from "../domain/channels/platform.ts";
import type { ContentStore } from "../domain/content-store.ts";
import type { DeviceComplaint, SandboxInbox } from "../domain/jobs/report.ts";
import { PassCarrier } from "../engine/channels/carried-passes.ts";
import { PayloadRoom } from "../engine/channels/payload-room.ts";
import type { DoorPorts } from "../http/front-door.ts";
import type { Shutdown } from "../runtime/shutdown.ts";
import { collectPassFillers } from "./of-channels.ts";

/** All channels of this process together. */
export interface OpenChannels {
  /** Dependencies of their endpoints. */
  readonly api: ChannelApi;
  readonly platform: PlatformCredentials;
  /** Where the sandbox's messages can be read; null if real providers are in use. */
  readonly inbox: SandboxInbox | null;
  /** The providers' addresses, for the other processes of the start: all sandboxes run in one process. */
  readonly settings: Partial<Config>;
  /** Tells the sandbox where to send callbacks: to this process's API, or else to another process's. */
  callBack(apiUrl: string): void;
  measure(): void;
  expiring(): readonly Expiring[];
  /** Newest first. */
  complaints(limit: number): readonly DeviceComplaint[];
  removeOfTenant(tenantId: string): Promise<boolean>;
  /** Returns `host:port`, or null. */
  listen(door: DoorPorts): Promise<string | null>;
  drain(fromMs: number): Promise<void>;
  /** The channels that this process delivers by. Called once. */
  deliverers(contents: Pick<ContentStore, "get">): readonly Channel[];
}

/** Opens the channels, and starts sandboxes for the providers that are not configured. */
export async function openChannels(
  channels: readonly AppChannel[],
  ports: ChannelPorts,
  shutdown: Shutdown,
): Promise<OpenChannels> {
  const opened: OpenChannel[] = [];
  for (const channel of channels) opened.push(await channel.open(ports, shutdown));
  const inboxes = opened.flatMap((each) => each.inboxes ?? []);
  return {
    // Each member of both types is a listed channel's.
    api: Object.assign({}, ...opened.map(({ api }) => api)) as ChannelApi,
    platform: Object.assign({}, ...opened.map(({ platform }) => platform)) as PlatformCredentials,
    settings: Object.assign({}, ...opened.map(({ settings }) => settings)) as Partial<Config>,
    inbox: ports.config.providers === "live" ? null : joinedInbox(inboxes),
    callBack(apiUrl) {
      for (const each of opened) each.callBack?.(apiUrl);
    },
    measure() {
      for (const each of opened) each.measure?.();
    },
    expiring: () => opened.flatMap((each) => each.expiring?.() ?? []),
    complaints: (limit) => opened.flatMap((each) => each.complaints?.(limit) ?? []),
    async removeOfTenant(tenantId) {
      for (const each of opened) if ((await each.removeOfTenant?.(tenantId)) === false) return false;
      return true;
    },
    async listen(door) {
      const addresses = await Promise.all(opened.map(async (each) => (await each.listen?.(door)) ?? null));
      return addresses.find((address) => address !== null) ?? null;
    },
    drain: async (fromMs) => void (await Promise.all(opened.map(async (each) => each.drain?.(fromMs)))),
    deliverers: (contents) => deliverers(channels, opened, { ...ports, contents }),
  };
}

/** Of channels whose messages can carry passes, extended to do so. */
function deliverers(
  channels: readonly AppChannel[],
  opened: readonly OpenChannel[],
  { contents, clock, telemetry }: Pick<ChannelPorts, "clock" | "telemetry"> & { contents: Pick<ContentStore, "get"> },
): readonly Channel[] {
  const passes = opened.find(({ messagePasses }) => messagePasses !== undefined)?.messagePasses;
  if (passes === undefined) return opened.flatMap((each) => each.channel?.({ contents }) ?? []);
  const fillers = collectPassFillers(channels);
  const carrier = new PassCarrier({ passes, fillers, room: new PayloadRoom(clock), telemetry });
  const files = carrier.filesOver(contents);
  return opened.flatMap((each) => each.channel?.({ contents: files }) ?? []).map((channel) => carrier.over(channel));
}

/**
 * The messages of several sandboxes as one list, newest first. In an `api` process without its own dispatcher it shows little:
 * messages stay in the process that delivered them.
 */
export function joinedInbox(inboxes: readonly SandboxInbox[]): SandboxInbox {
  return {
    messages(to, limit) {
      const all = inboxes.flatMap((inbox) => inbox.messages(to, limit));
      // ISO 8601 times in UTC of equal length sort as text. The sort is stable.
      return all
        .sort((a, b) => Number(b.received_at > a.received_at) - Number(b.received_at < a.received_at))
        .slice(0, limit);
    },
    erase: (to) => inboxes.reduce((sum, inbox) => sum + inbox.erase(to), 0),
  };
}
