import { COMMANDS } from "./commands.ts";
import { Keyspace, type Reply, ReplyError, type Snapshot, Status } from "./keyspace.ts";
import { type Chunk, compile } from "./lua-compiler.ts";
import { asText, first, type LuaFunction, LuaTable, type LuaValue, numberText } from "./lua-values.ts";

type Listener = (channel: string, text: string) => void;

/** Scripts by their text: each is compiled once, however many servers run it. */
const chunks = new Map<string, Chunk>();

/**
 * A Redis in memory, as much of one as the queue needs: a command takes effect and is answered at once. All texts have one
 * character per byte. `memory-redis.test.ts` compares it with the real one.
 *
 * `nowMs`: its clock (Unix time).
 */
export class MemoryRedis {
  readonly keys: Keyspace;
  private readonly scripts = new Map<string, Chunk>();
  private readonly listeners = new Set<Listener>();

  constructor(nowMs: () => number) {
    this.keys = new Keyspace(nowMs);
  }

  /** Throws `ReplyError`. */
  call(name: string, args: readonly string[]): Reply {
    switch (name) {
      case "eval":
        return this.run(this.load(args[0] ?? ""), args.slice(1));
      case "evalsha": {
        const script = this.scripts.get(args[0] ?? "");
        if (script === undefined) throw new ReplyError("NOSCRIPT No matching script. Please use EVAL.");
        return this.run(script, args.slice(1));
      }
      case "publish":
        for (const hear of this.listeners) hear(args[0] ?? "", args[1] ?? "");
        return this.listeners.size;
    }
    const command = COMMANDS[name];
    if (command === undefined) throw new ReplyError(`ERR unknown command '${name}'`);
    return command(this.keys, ...args);
  }

  /** Calls `hear` with all that is published, whatever the channel. Returns how to stop that. */
  listen(hear: Listener): () => void {
    this.listeners.add(hear);
    return () => this.listeners.delete(hear);
  }

  snapshot(): Snapshot {
    return this.keys.snapshot();
  }

  restore(snapshot: Snapshot): void {
    this.keys.restore(snapshot);
  }

  private load(text: string): Chunk {
    const chunk = chunks.get(text) ?? compile(text.replace(/^#!.*/, ""));
    chunks.set(text, chunk);
    this.scripts.set(sha1(text), chunk);
    return chunk;
  }

  private run(chunk: Chunk, [count = "0", ...rest]: readonly string[]): Reply {
    const keys = Number(count);
    const globals = {
      KEYS: new LuaTable(rest.slice(0, keys)),
      ARGV: new LuaTable(rest.slice(keys)),
      redis: this.redis,
    };
    return toReply(first(chunk(globals)));
  }

  /** The table that scripts know as `redis`. */
  private readonly redis: Readonly<Record<string, LuaFunction>> = {
    call: (name, ...args) => toLuaValue(this.call(asText(name).toLowerCase(), args.map(toArgument))),
    sha1hex: (text) => sha1(asText(text)),
    status_reply: (text) => {
      const table = new LuaTable();
      table.set("ok", text);
      return table;
    },
  };
}

function sha1(text: string): string {
  return new Bun.CryptoHasher("sha1").update(Buffer.from(text, "latin1")).digest("hex");
}

function toArgument(value: LuaValue): string {
  if (typeof value === "string") return value;
  if (typeof value === "number") return numberText(value, 17);
  throw new ReplyError("ERR Lua redis lib command arguments must be strings or integers");
}

function toLuaValue(reply: Reply): LuaValue {
  if (reply === null) return false;
  if (typeof reply === "number" || typeof reply === "string") return reply;
  if (reply instanceof Status) {
    const table = new LuaTable();
    table.set("ok", reply.text);
    return table;
  }
  return new LuaTable(reply.map(toLuaValue));
}

function toReply(value: LuaValue): Reply {
  if (typeof value === "string") return value;
  if (typeof value === "number") return Math.trunc(value);
  if (value === true) return 1;
  if (!(value instanceof LuaTable)) return null;
  const status = value.get("ok");
  return typeof status === "string" ? new Status(status) : value.list.map(toReply);
}
