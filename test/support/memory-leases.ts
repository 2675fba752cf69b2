import type { Lease, LeaseRole, LeaseState, Leases } from "../../src/domain/jobs/queue.ts";

/** Leases in memory, for all roles: granted by comparison, never by a clock. */
export class MemoryLeases implements Leases {
  private readonly held = new Map<string, { token: string; renewals: number }>();
  private readonly beats = new Map<LeaseRole, Map<string, number>>();
  private readonly listeners = new Set<(role: LeaseRole, shard: number) => void>();
  private tokens = 0;

  /** The token of the last granted lease that is not released. */
  holder(shard: number, role: LeaseRole = "recorder"): string | null {
    return this.held.get(`${role} ${shard}`)?.token ?? null;
  }

  members(role: LeaseRole = "recorder"): readonly string[] {
    return [...(this.beats.get(role)?.keys() ?? [])];
  }

  async leases(role: LeaseRole, shards: number): Promise<readonly (LeaseState | null)[]> {
    return Array.from({ length: shards }, (_, shard) => {
      const lease = this.held.get(`${role} ${shard}`);
      return lease === undefined ? null : { ...lease };
    });
  }

  async acquire(shard: number, role: LeaseRole, owner: string, seen: LeaseState | null): Promise<Lease | null> {
    const lease = this.held.get(`${role} ${shard}`) ?? null;
    if (lease?.token !== seen?.token || lease?.renewals !== seen?.renewals) return null;
    const token = `${owner}-${(this.tokens += 1)}`;
    this.held.set(`${role} ${shard}`, { token, renewals: 0 });
    return { shard, role, token };
  }

  async renew({ shard, role, token }: Lease): Promise<boolean> {
    const lease = this.held.get(`${role} ${shard}`);
    if (lease?.token !== token) return false;
    lease.renewals += 1;
    return true;
  }

  async release({ shard, role, token }: Lease): Promise<void> {
    if (this.holder(shard, role) !== token) return;
    this.held.delete(`${role} ${shard}`);
    for (const listener of this.listeners) listener(role, shard);
  }

  async heartbeat(role: LeaseRole, owner: string): Promise<ReadonlyMap<string, number>> {
    const beats = this.beats.get(role) ?? new Map<string, number>();
    this.beats.set(role, beats);
    beats.set(owner, (beats.get(owner) ?? 0) + 1);
    return new Map(beats);
  }

  async resign(role: LeaseRole, owner: string, beats?: number): Promise<void> {
    const known = this.beats.get(role);
    if (beats === undefined || known?.get(owner) === beats) known?.delete(owner);
  }

  onRelease(listener: (role: LeaseRole, shard: number) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}
