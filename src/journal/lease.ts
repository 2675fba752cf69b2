import type { Lease, LeaseRole, Leases } from "../core/journal.ts";
import type { Random } from "../core/random.ts";
import type { RedisConnection } from "./connection.ts";
import { membersKey, shardPrefix } from "./keys.ts";
import leaseLua from "./lease.lua" with { type: "text" };
import membersLua from "./members.lua" with { type: "text" };
import { Script, type ScriptArgument } from "./script.ts";

const leaseScript = new Script(leaseLua, "run");
const membersScript = new Script(membersLua, "run");

/** Who may act for which shard, and who is there to share them. */
export class RedisLeases implements Leases {
  constructor(
    private readonly connection: RedisConnection,
    private readonly random: Random,
  ) {}

  async acquire(shard: number, role: LeaseRole, owner: string, ttlMs: number): Promise<Lease | null> {
    const bits = Buffer.from(this.random.fill(new Uint8Array(16))).toString("hex");
    const token = await this.call(shard, ["acquire", role, bits, ttlMs, owner]);
    return token === null ? null : { shard, role, token: String(token) };
  }

  async renew(lease: Lease, ttlMs: number): Promise<boolean> {
    return (await this.call(lease.shard, ["renew", lease.role, lease.token, ttlMs])) !== null;
  }

  async release(lease: Lease): Promise<void> {
    await this.call(lease.shard, ["release", lease.role, lease.token]);
  }

  async heartbeat(role: LeaseRole, owner: string, ttlMs: number): Promise<number> {
    return Number(await membersScript.run(this.connection, [membersKey(role)], ["join", owner, ttlMs]));
  }

  async resign(role: LeaseRole, owner: string): Promise<void> {
    await membersScript.run(this.connection, [membersKey(role)], ["leave", owner]);
  }

  private call(shard: number, args: ScriptArgument[]): Promise<unknown> {
    return leaseScript.run(this.connection, [shardPrefix(shard)], args);
  }
}
