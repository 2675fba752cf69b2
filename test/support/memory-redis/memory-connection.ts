import { Redis } from "ioredis";
import type { Reply } from "./keyspace.ts";
import { Status } from "./keyspace.ts";
import type { MemoryRedis } from "./memory-redis.ts";

/** A command of ioredis', as far as a connection knows it. */
type Sent = Parameters<Redis["sendCommand"]>[0];

/**
 * ioredis' own client over a Redis in memory instead of a socket: it encodes arguments and decodes replies as it does
 * over one.
 */
export class MemoryConnection extends Redis {
  private readonly channels = new Set<string>();
  private deafen: () => void = () => {};

  constructor(protected readonly server: MemoryRedis) {
    super({ lazyConnect: true });
    this.status = "ready";
  }

  override sendCommand(command: Sent): unknown {
    const args = command.args.map((arg) => encodeText(arg as string | Buffer));
    const isText = Reflect.get(command, "replyEncoding") === "utf8";
    if (command.name === "subscribe") command.resolve(this.subscribeTo(args));
    else
      this.execute(command.name, args).then(
        (reply) => command.resolve(decoded(reply, isText)),
        (error: Error) => command.reject(error),
      );
    return command.promise;
  }

  override disconnect(): void {
    this.status = "end";
    this.deafen();
  }

  /** Carries a command to the server and its reply back. */
  protected async execute(name: string, args: readonly string[]): Promise<Reply> {
    return this.server.call(name, args);
  }

  /** A published text arrives. */
  protected hear(channel: string, text: string): void {
    this.emit("message", channel, text);
  }

  private subscribeTo(names: readonly string[]): number {
    for (const name of names) this.channels.add(name);
    this.deafen();
    this.deafen = this.server.listen((channel, text) => {
      if (this.channels.has(channel)) this.hear(channel, decodeText(text));
    });
    return this.channels.size;
  }
}

/** As ioredis' parser gives it; texts as texts, which saves it the decoding. */
function decoded(reply: Reply, isText: boolean): unknown {
  if (typeof reply === "string") return isText ? decodeText(reply) : Buffer.from(reply, "latin1");
  if (reply instanceof Status) return reply.text;
  return Array.isArray(reply) ? reply.map((each: Reply) => decoded(each, isText)) : reply;
}

const BEYOND_ASCII = /[^\0-\x7f]/;

/** One character per byte. */
export function encodeText(text: string | Buffer): string {
  if (typeof text !== "string") return text.toString("latin1");
  return BEYOND_ASCII.test(text) ? Buffer.from(text).toString("latin1") : text;
}

export function decodeText(bytes: string): string {
  return BEYOND_ASCII.test(bytes) ? Buffer.from(bytes, "latin1").toString("utf8") : bytes;
}
