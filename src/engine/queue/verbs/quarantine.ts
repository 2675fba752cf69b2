import type { Telemetry } from "../../../domain/telemetry.ts";
import type { RedisConnection } from "../connection.ts";
import { shardPrefix } from "../keys.ts";
import { Script } from "../script.ts";
import quarantineLua from "./quarantine.lua" with { type: "text" };

const script = new Script(quarantineLua, "run");

/** Unreadable data and its location: an entry, which leaves its tenant queue, or a row of a batch. */
export interface Unreadable {
  readonly at: readonly ["entry", tenantQueue: string, id: string] | readonly ["row", batch: string];
  readonly why: string;
  readonly text: string;
}

/**
 * Puts unreadable data aside, so that one bad text does not stop a shard: it is kept (`P:quarantine`), counted, and
 * logged once.
 */
export class Quarantine {
  constructor(
    private readonly connection: RedisConnection,
    private readonly telemetry: Telemetry,
  ) {}

  async put(shard: number, { at, why, text }: Unreadable): Promise<void> {
    await script.run(this.connection, [shardPrefix(shard)], [why, text, ...at]);
    const [what, ...where] = at;
    this.tell(shard, [what, where.join(" ")]);
  }

  /** Logs the data that a script has quarantined: kind and location alternately. */
  tell(shard: number, said: readonly string[]): void {
    for (let at = 0; at + 1 < said.length; at += 2) {
      const what = said[at] ?? "";
      this.telemetry.count("quarantined", { what });
      this.telemetry.log("error", "unreadable data in the queue was quarantined", {
        shard,
        what,
        where: said[at + 1] ?? "",
      });
    }
  }
}
