import { type RedisConnection, redisFailure } from "./connection.ts";
import preludeLua from "./prelude.lua" with { type: "text" };

export type ScriptArgument = string | number | Buffer;

/**
 * One of the queue's scripts. `whenFull` says what happens when Redis is out of memory: new work enters only while
 * there is room, but queued work must always be able to leave.
 */
export class Script {
  private readonly text: string;
  private readonly sha: string;

  constructor(body: string, whenFull: "refuse" | "run") {
    this.text = `#!lua${whenFull === "run" ? " flags=allow-oom" : ""}\n${preludeLua}\n${body}`;
    this.sha = new Bun.CryptoHasher("sha1").update(this.text).digest("hex");
  }

  /** Rejects with `TransportError` (effect unknown) or `UnavailableError` (no effect). */
  async run(connection: RedisConnection, keys: readonly string[], args: readonly ScriptArgument[]): Promise<unknown> {
    try {
      return await connection.evalsha(this.sha, keys.length, ...keys, ...args);
    } catch (error) {
      if (!isUnknownScript(error)) throw redisFailure(error);
    }
    try {
      return await connection.eval(this.text, keys.length, ...keys, ...args);
    } catch (error) {
      throw redisFailure(error);
    }
  }
}

function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("NOSCRIPT");
}
