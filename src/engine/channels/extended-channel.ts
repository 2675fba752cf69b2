import type { Channel } from "../../domain/channels/channel.ts";

/** The channel with some of its members replaced. All others, present or future, stay as they are. */
export function extended(channel: Channel, members: Partial<Channel>): Channel {
  const replaced = new Map<string | symbol, unknown>(Object.entries(members));
  return new Proxy(channel, {
    get(target, member) {
      if (replaced.has(member)) return replaced.get(member);
      const value: unknown = Reflect.get(target, member, target);
      const bound: unknown = typeof value === "function" ? value.bind(target) : value;
      return bound;
    },
  });
}
