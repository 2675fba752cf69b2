import { type Clock, sleep } from "../../../domain/clock.ts";
import type { Lease, LeaseRole, LeaseState } from "../../../domain/jobs/queue.ts";
import { limits } from "../../../domain/limits.ts";
import type { Random } from "../../../domain/random.ts";
import { type RedisConnection, redisFailure } from "../connection.ts";
import { beatsKey, shardPrefix } from "../keys.ts";
import membersLua from "../members.lua" with { type: "text" };
import { Script, type ScriptArgument } from "../script.ts";
import leaseLua from "./lease.lua" with { type: "text" };

const leaseScript = new Script(leaseLua, "run");
const membersScript = new Script(membersLua, "run");

/** The leases of shards, and the living members that share them. */
export class RedisLeases {
  constructor(
    private readonly connection: RedisConnection,
    private readonly clock: Clock,
    private readonly random: Random,
  ) {}

  /**
   * Reads from a cluster's nodes concurrently and does not wait for nodes that do not answer soon: the caller gives up
   * after `leaseCompeteMs`, and keeps the other nodes' answers.
   */
  async leases(role: LeaseRole, shards: number): Promise<readonly (LeaseState | null | undefined)[]> {
    const looks = Array.from({ length: shards }, (_, shard) => this.look(role, shard));
    const first = Promise.any(looks);
    await first.catch((error: AggregateError) => Promise.reject(redisFailure(error.errors[0])));
    const late = new AbortController();
    const tooLate = sleep(this.clock, limits.leaseCompeteMs / 2, late.signal).then(() => undefined);
    const states = looks.map((look) => Promise.race([look.catch(() => undefined), tooLate]));
    const seen = await Promise.all(states);
    late.abort();
    return seen;
  }

  private async look(role: LeaseRole, shard: number): Promise<LeaseState | null> {
    const [token, renewals] = await this.connection.hmget(`${shardPrefix(shard)}:lease:${role}`, "token", "renewals");
    return typeof token !== "string" ? null : { token, renewals: Number(renewals ?? 0) };
  }

  async acquire(shard: number, role: LeaseRole, owner: string, seen: LeaseState | null): Promise<Lease | null> {
    const bits = Buffer.from(this.random.fill(new Uint8Array(16))).toString("hex");
    const expected = seen === null ? ["", ""] : [seen.token, seen.renewals];
    const token = await this.call(shard, ["acquire", role, bits, owner, ...expected]);
    return token === null ? null : { shard, role, token: String(token) };
  }

  async renew(lease: Lease): Promise<boolean> {
    return (await this.call(lease.shard, ["renew", lease.role, lease.token])) !== null;
  }

  async release(lease: Lease): Promise<void> {
    await this.call(lease.shard, ["release", lease.role, lease.token, lease.shard]);
  }

  /**
   * Releases every lease of an owner, and removes it from the living members. Leases granted to another process since
   * stay.
   */
  async releaseAll(role: LeaseRole, owner: string, shards: number): Promise<void> {
    await this.resign(role, owner);
    for (let shard = 0; shard < shards; shard += 1) {
      const key = `${shardPrefix(shard)}:lease:${role}`;
      const [holder, token] = await this.connection.hmget(key, "owner", "token");
      if (holder === owner && typeof token === "string") await this.release({ shard, role, token });
    }
  }

  async heartbeat(role: LeaseRole, owner: string): Promise<ReadonlyMap<string, number>> {
    // The script answers processes and counts alternately.
    const told = (await membersScript.run(this.connection, [beatsKey(role)], ["beat", owner])) as string[];
    const beats = new Map<string, number>();
    for (let at = 0; at + 1 < told.length; at += 2) beats.set(told[at] ?? "", Number(told[at + 1]));
    return beats;
  }

  async resign(role: LeaseRole, owner: string, beats?: number): Promise<void> {
    await membersScript.run(this.connection, [beatsKey(role)], ["leave", owner, beats ?? ""]);
  }

  private call(shard: number, args: ScriptArgument[]): Promise<unknown> {
    return leaseScript.run(this.connection, [shardPrefix(shard)], args);
  }
}
