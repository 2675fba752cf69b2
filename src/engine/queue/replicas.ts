import { TransportError } from "../../domain/errors.ts";
import type { RedisConnection } from "./connection.ts";

/** Replicas of one network answer within a millisecond; one that has not by then is away. */
const WAIT_MS = 1_000;

/**
 * Waits until replicas, too, have what this connection has written. Redis answers a write before its replicas have it,
 * so a master that dies together with its network takes the last writes along; what has been waited for is found again
 * on the replica that takes over.
 */
export class Replicas {
  constructor(
    private readonly connection: RedisConnection,
    /** How many must have it. 0: nothing is waited for. */
    private readonly count: number,
  ) {}

  /**
   * `key` names the server, in a cluster, that the writes went to. Rejects with `TransportError` when too few replicas
   * have them in time: then the writes are there, and may be lost.
   */
  async haveWrites(key: string): Promise<void> {
    if (this.count === 0) return;
    // WAIT names no key: the command before it leads the pipeline to the right server.
    const replies = await this.connection
      .pipeline()
      .exists(key)
      .wait(this.count, WAIT_MS)
      .exec()
      .catch((cause: unknown) => Promise.reject(new TransportError("the queue did not answer", { cause })));
    const [error, confirmed] = replies?.[1] ?? [new Error("no reply"), 0];
    if (error !== null) throw new TransportError("the queue did not answer", { cause: error });
    if (Number(confirmed) < this.count) {
      throw new TransportError(`only ${Number(confirmed)} of ${this.count} replicas have what was written`);
    }
  }
}
