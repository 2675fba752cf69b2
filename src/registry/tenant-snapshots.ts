import type { ChangeFeed } from "../core/change-feed.ts";
import { type Clock, sleep } from "../core/clock.ts";
import { UnavailableError } from "../core/errors.ts";
import { limits } from "../core/limits.ts";
import type { Telemetry } from "../core/telemetry.ts";
import { TENANT_ID, type Tenant, type TenantDirectory } from "../core/tenant.ts";
import { apiKeyHash, isApiKey } from "./api-key.ts";
import { RecentMisses } from "./recent-misses.ts";
import type { TenantSource } from "./tenant-source.ts";

/** Twice as often as the promise needs, so that a poll may take as long as the pause before it. */
const POLL_MS = limits.snapshotStaleMsMax / 2;
/** How long snapshots are served without word from the registry. */
const TRUSTED_MS = 60_000;
const IDLE_MS = 5 * 60_000;
const SWEEP_MS = 60_000;
const SNAPSHOTS_MAX = 20_000;
const KEYS_MAX = 50_000;
const MISS_KEPT_MS = limits.snapshotStaleMsMax;
const MISSES_MAX = 10_000;
/** Look-ups of keys under way at one time. More than this are a flood of invented keys. */
const KEY_LOADS_MAX = 256;

interface Snapshot {
  readonly tenant: Tenant;
  /** False once it must not be served again. */
  isCurrent: boolean;
  usedAtMs: number;
}

export interface TenantSnapshotsOptions {
  readonly source: TenantSource;
  /** The registry's version when it was opened: what changed before it is in every load. */
  readonly version: number;
  readonly feed: ChangeFeed;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/**
 * What this process remembers of tenants and their keys.
 *
 * Invariants:
 * S1. A load is remembered, and joined by later askers, only while nothing was dropped since it began.
 * S2. Every change that is committed after a load began drops what the load gave: at a message of the feed, or at the
 *     next poll that began after the commit.
 * S3. Nothing is served from memory when the last poll that was answered was sent more than `TRUSTED_MS` ago.
 * S4. A key leads to its tenant's snapshot object: with the snapshot, all keys of the tenant are out of date.
 * S5. All maps are bounded. Names that were not found have maps of their own, so that invented ones push out nothing.
 */
export class TenantSnapshots implements TenantDirectory {
  private readonly snapshots = new Map<string, Snapshot>();
  private readonly keys = new Map<string, Snapshot>();
  private readonly unknownTenants = new RecentMisses(MISS_KEPT_MS, MISSES_MAX);
  private readonly unknownKeys = new RecentMisses(MISS_KEPT_MS, MISSES_MAX);
  private readonly loads = new Map<string, Promise<Snapshot | null>>();
  private readonly keyLoads = new Map<string, Promise<Tenant | null>>();
  /** Counts the calls of `drop` (S1). */
  private drops = 0;
  private seenVersion: number;
  private trustedUntilMs: number;
  private sweptAtMs: number;
  private isReachable = true;
  private readonly stopping = new AbortController();
  private running: Promise<void> | null = null;

  constructor(private readonly options: TenantSnapshotsOptions) {
    const nowMs = options.clock.monotonicMs();
    this.seenVersion = options.version;
    this.trustedUntilMs = nowMs + TRUSTED_MS;
    this.sweptAtMs = nowMs;
  }

  byApiKey(apiKey: string): Tenant | null | Promise<Tenant | null> {
    const nowMs = this.options.clock.monotonicMs();
    if (nowMs < this.trustedUntilMs) {
      const snapshot = this.keys.get(apiKey);
      if (snapshot?.isCurrent) return served(snapshot, nowMs);
      if (this.unknownKeys.has(apiKey, nowMs)) return null;
    }
    return isApiKey(apiKey) ? this.loadKey(apiKey) : null;
  }

  byId(tenantId: string): Tenant | null | Promise<Tenant | null> {
    const nowMs = this.options.clock.monotonicMs();
    if (nowMs < this.trustedUntilMs) {
      const snapshot = this.snapshots.get(tenantId);
      if (snapshot !== undefined) return served(snapshot, nowMs);
      if (this.unknownTenants.has(tenantId, nowMs)) return null;
    }
    if (!TENANT_ID.test(tenantId)) return null;
    return this.load(tenantId).then((snapshot) => snapshot?.tenant ?? null);
  }

  /** Forgets a tenant and its keys; null: all of them. */
  drop(tenantId: string | null): void {
    this.drops += 1;
    this.loads.clear();
    this.keyLoads.clear();
    if (tenantId === null) {
      for (const snapshot of this.snapshots.values()) snapshot.isCurrent = false;
      this.snapshots.clear();
      this.keys.clear();
      this.unknownTenants.clear();
      this.unknownKeys.clear();
    } else {
      this.forget(tenantId);
      this.unknownTenants.delete(tenantId);
    }
  }

  /** Begins to follow the registry's changes. Once only. */
  start(): void {
    if (this.stopping.signal.aborted) return;
    this.running ??= this.follow();
  }

  /** Ends it. Safe to repeat. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  /** Ends with `stopping`. */
  private async follow(): Promise<void> {
    const { feed, clock, telemetry } = this.options;
    const unsubscribe = feed.onChange((tenantId) => this.drop(tenantId));
    while (!this.stopping.signal.aborted) {
      await this.poll();
      this.sweep();
      telemetry.gauge("tenants_remembered", this.snapshots.size);
      await sleep(clock, POLL_MS, this.stopping.signal);
    }
    unsubscribe();
  }

  private async poll(): Promise<void> {
    const { source, clock, telemetry } = this.options;
    const sentAtMs = clock.monotonicMs();
    try {
      const { version, tenantIds } = await source.changesSince(this.seenVersion);
      for (const tenantId of tenantIds ?? [null]) this.drop(tenantId);
      this.seenVersion = version;
      this.trustedUntilMs = sentAtMs + TRUSTED_MS;
      if (!this.isReachable) telemetry.log("info", "the registry is back");
      this.isReachable = true;
    } catch (error) {
      // Whatever it was, the next poll tries again; S3 says how long that may go on.
      telemetry.count("registry_polls_failed");
      if (this.isReachable) telemetry.log("warn", "the registry does not answer", { error: String(error) });
      this.isReachable = false;
    }
  }

  private load(tenantId: string): Promise<Snapshot | null> {
    return shared(this.loads, tenantId, () => this.readTenant(tenantId));
  }

  private async readTenant(tenantId: string): Promise<Snapshot | null> {
    const [drops, nowMs] = [this.drops, this.options.clock.monotonicMs()];
    const tenant = await this.options.source.tenant(tenantId);
    const snapshot = tenant === null ? null : { tenant, isCurrent: true, usedAtMs: nowMs };
    if (drops !== this.drops) return snapshot;
    if (snapshot === null) {
      this.forget(tenantId);
      this.unknownTenants.add(tenantId, nowMs);
    } else {
      this.remember(tenantId, snapshot);
    }
    return snapshot;
  }

  private loadKey(apiKey: string): Promise<Tenant | null> {
    if (this.keyLoads.size >= KEY_LOADS_MAX && !this.keyLoads.has(apiKey)) {
      return Promise.reject(new UnavailableError("too many API keys are being looked up"));
    }
    return shared(this.keyLoads, apiKey, () => this.readKey(apiKey));
  }

  private async readKey(apiKey: string): Promise<Tenant | null> {
    const [drops, nowMs] = [this.drops, this.options.clock.monotonicMs()];
    const tenantId = await this.options.source.tenantOfKey(apiKeyHash(apiKey));
    const snapshot = tenantId === null ? null : await this.snapshotOf(tenantId);
    if (drops === this.drops) {
      if (snapshot === null) this.unknownKeys.add(apiKey, nowMs);
      else putBounded(this.keys, apiKey, snapshot, KEYS_MAX);
    }
    return snapshot?.tenant ?? null;
  }

  private snapshotOf(tenantId: string): Snapshot | Promise<Snapshot | null> {
    const isTrusted = this.options.clock.monotonicMs() < this.trustedUntilMs;
    return (isTrusted ? this.snapshots.get(tenantId) : undefined) ?? this.load(tenantId);
  }

  private remember(tenantId: string, snapshot: Snapshot): void {
    this.forget(tenantId);
    const evicted = putBounded(this.snapshots, tenantId, snapshot, SNAPSHOTS_MAX);
    if (evicted !== null) evicted.isCurrent = false;
  }

  private forget(tenantId: string): void {
    const snapshot = this.snapshots.get(tenantId);
    if (snapshot === undefined) return;
    snapshot.isCurrent = false;
    this.snapshots.delete(tenantId);
  }

  /** Forgets what nobody has asked for in a while. */
  private sweep(): void {
    const nowMs = this.options.clock.monotonicMs();
    if (nowMs - this.sweptAtMs < SWEEP_MS) return;
    this.sweptAtMs = nowMs;
    for (const [tenantId, { usedAtMs }] of this.snapshots) if (nowMs - usedAtMs >= IDLE_MS) this.forget(tenantId);
    for (const [apiKey, { isCurrent }] of this.keys) if (!isCurrent) this.keys.delete(apiKey);
  }
}

function served(snapshot: Snapshot, nowMs: number): Tenant {
  snapshot.usedAtMs = nowMs;
  return snapshot.tenant;
}

/** The promise under way for this name, or a new one, which stays in the map until it settles. */
function shared<T>(underWay: Map<string, Promise<T>>, name: string, begin: () => Promise<T>): Promise<T> {
  const running = underWay.get(name);
  if (running !== undefined) return running;
  const started = begin().finally(() => {
    if (underWay.get(name) === started) underWay.delete(name);
  });
  underWay.set(name, started);
  return started;
}

/** Puts the value last and answers what had to go for it: the first one. */
function putBounded<T>(map: Map<string, T>, name: string, value: T, entriesMax: number): T | null {
  map.delete(name);
  map.set(name, value);
  if (map.size <= entriesMax) return null;
  for (const [oldest, evicted] of map) {
    map.delete(oldest);
    return evicted;
  }
  return null;
}
