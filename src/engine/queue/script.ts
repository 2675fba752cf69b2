import { FORMAT_IN_LUA } from "./codec.ts";
import { type RedisConnection, redisFailure } from "./connection.ts";
import { JOBS_CHANNEL, RELEASED_CHANNEL } from "./keys.ts";
import preludeLua from "./prelude.lua" with { type: "text" };

export type ScriptArgument = string | number | Buffer;

/** Named values that a script shares with its caller. */
export type ScriptConstants = Readonly<Record<string, string | number>>;

/** The constants of every script. */
const SHARED: ScriptConstants = { ...FORMAT_IN_LUA, JOBS_CHANNEL, RELEASED_CHANNEL };

/**
 * One of the queue's scripts. Its text begins with the constants it uses, as Lua locals, and the parts of `prelude.lua`
 * it uses: Redis builds all of these anew for each call, and the whole prelude would cost more than a small script
 * itself. `whenFull` selects the behaviour when Redis is out of memory: new work enters only while there is memory, but
 * queued work must always be able to leave.
 */
export class Script {
  private readonly text: string;
  private readonly sha: string;

  constructor(body: string, whenFull: "refuse" | "run", constants: ScriptConstants = {}) {
    const lua = withPrelude(body);
    const locals = luaLocals({ ...SHARED, ...constants }, lua);
    this.text = `#!lua${whenFull === "run" ? " flags=allow-oom" : ""}\n${locals}\n${lua}`;
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

interface Local {
  readonly names: readonly string[];
  readonly words: ReadonlySet<string>;
  readonly text: string;
}

/** The definitions of `prelude.lua`, in order: each of its top-level locals up to the next one. */
const PRELUDE: readonly Local[] = Array.from(
  preludeLua.matchAll(/^local (?:function )?([\w, ]+)[\s\S]*?(?=^local |(?![\s\S]))/gm),
  ([text, names = ""]) => ({ names: names.trim().split(", "), words: extractWords(text), text }),
);

/**
 * Returns the script behind the parts of the prelude that it uses, directly or indirectly. A local can only use earlier
 * ones.
 */
function withPrelude(body: string): string {
  const used = extractWords(body);
  let lua = body;
  for (const { names, words, text } of PRELUDE.toReversed()) {
    if (!names.some((name) => used.has(name))) continue;
    for (const word of words) used.add(word);
    lua = text + lua;
  }
  return lua;
}

function extractWords(lua: string): Set<string> {
  return new Set(lua.replace(/^\s*--.*$/gm, "").match(/\w+/g));
}

/** Defines the constants that the script names: Lua allows 200 locals, and each costs a little in every call. */
function luaLocals(constants: ScriptConstants, lua: string): string {
  const named = extractWords(lua);
  const used = Object.entries(constants).filter(([name]) => named.has(name));
  if (used.length === 0) return "";
  const literals = used.map(([, value]) => (typeof value === "number" ? value : `'${value}'`));
  return `local ${used.map(([name]) => name).join(", ")} = ${literals.join(", ")}`;
}

function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("NOSCRIPT");
}
