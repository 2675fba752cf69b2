import { TransportError } from "../../domain/errors.ts";
import type { RedisConnection } from "./connection.ts";

/** Replicas in the same network answer within a millisecond; a replica that has not answered by then is away. */
const WAIT_MS = 1_000;

/**
 * Waits until replicas, too, have this connection's writes. Redis answers a write before its replicas have it, so a
 * master that dies together with its network loses the last writes; writes that were confirmed by this wait survive on
 * the replica that takes over.
 */
export class Replicas {
  constructor(
    private readonly connection: RedisConnection,
    /** How many replicas must have the writes. 0: no waiting. */
    private readonly count: number,
  ) {}

  /**
   * `key` names the server, in a cluster, that received the writes. Rejects with `TransportError` when too few replicas
   * have them in time: the master has the writes, and may lose them.
   */
  async haveWrites(key: string): Promise<void> {
    if (this.count === 0) return;
    // WAIT names no key: the command before it routes the pipeline to the right server.
    const replies = await this.connection
      .pipeline()
      .exists(key)
      .wait(this.count, WAIT_MS)
      .exec()
      .catch((cause: unknown) => Promise.reject(new TransportError("the queue did not answer", { cause })));
    const [error, confirmed] = replies?.[1] ?? [new Error("no reply"), 0];
    if (error !== null) throw new TransportError("the queue did not answer", { cause: error });
    if (Number(confirmed) < this.count) {
      throw new TransportError(`only ${Number(confirmed)} of ${this.count} replicas have the writes`);
    }
  }
}
