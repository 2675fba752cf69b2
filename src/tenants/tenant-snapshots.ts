import { isDeepStrictEqual } from "node:util";
import { type Clock, sleep } from "../domain/clock.ts";
import { remember } from "../domain/remember.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import {
  type ChangeFeed,
  type KeyHolder,
  type Plan,
  TENANT_ID,
  type Tenant,
  type TenantDirectory,
} from "../domain/tenants/tenant.ts";
import { apiKeyHash, hasChecksum, isApiKey } from "./api-key.ts";
import { FormerKeys } from "./former-keys.ts";
import { planLimits } from "./limits.ts";
import { LookUps } from "./look-ups.ts";
import { RecentMisses } from "./recent-misses.ts";
import type { KeyOwner, TenantSource } from "./tenant-source.ts";

/** Twice as often as the promise requires, so a poll may take as long as the pause before it. */
const POLL_MS = planLimits.snapshotStaleMsMax / 2;
/** How long snapshots may be served without an answer from the registry. */
const TRUSTED_MS = 60_000;
const IDLE_MS = 5 * 60_000;
const SWEEP_MS = 60_000;
const SNAPSHOTS_MAX = 20_000;
const KEYS_MAX = 50_000;
const MISS_KEPT_MS = planLimits.snapshotStaleMsMax;
const MISSES_MAX = 10_000;
/** Most key lookups in flight. More than this are a flood of invented keys. */
const KEY_LOADS_MAX = 256;
const KEYS_AT_ONCE = 128;
/** On PGlite, reading this many ordinary tenants blocks the thread for about ten milliseconds. */
const TENANTS_AT_ONCE = 50;

interface Snapshot {
  tenant: Tenant;
  /** False once it must no longer be served. */
  isCurrent: boolean;
  usedAtMs: number;
  /** The reading of the plans that it includes. */
  plansRead: number;
}

/** A key in memory. When it expires, it stays and is refused. */
interface KnownKey {
  readonly snapshot: Snapshot;
  readonly owner: KeyOwner;
}

export interface TenantSnapshotsOptions {
  readonly source: TenantSource;
  /** The registry's version when it was opened; every load includes the changes before it. */
  readonly version: number;
  readonly feed: ChangeFeed;
  /** Called at each poll that finds operators changed. If it rejects, the next poll finds the same. */
  onOperators?(): Promise<void>;
  /** A key was used; called for each request, so it must return at once. */
  onKeyUse?(keyId: string): void;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/**
 * This process's cache of tenants and their keys.
 *
 * Invariants:
 * S1. A tenant read from the registry is remembered, and served to later callers, only if it was not dropped since the read
 *     began.
 * S2. Every change committed after a read began drops that read's result: on a message from the feed, or at the next poll that
 *     began after the commit.
 * S3. The cache is not used if the last answered poll was sent more than `TRUSTED_MS` ago.
 * S4. A key maps to its tenant's snapshot object: when the snapshot is outdated, so are all keys of the tenant.
 * S5. All maps are bounded. Names that were not found have their own maps, so invented names evict no real ones.
 * S6. A change of a plan drops no entries: the plans are read again, and replaced in all snapshots, including those being
 *     read meanwhile.
 */
export class TenantSnapshots implements TenantDirectory {
  private readonly snapshots = new Map<string, Snapshot>();
  private readonly keys = new Map<string, KnownKey>();
  private readonly unknownTenants = new RecentMisses(MISS_KEPT_MS, MISSES_MAX);
  private readonly unknownKeys = new RecentMisses(MISS_KEPT_MS, MISSES_MAX);
  private readonly tenantLookUps: LookUps<Snapshot | null>;
  private readonly keyLookUps: LookUps<KeyOwner | null>;
  private readonly formerKeys: FormerKeys;
  private readonly keyLoads = new Map<string, Promise<KeyHolder | null>>();
  /** Counts the calls of `drop` (S1), and records the dropped names while keys are being loaded. */
  private drops = 0;
  private readonly droppedAt = new Map<string | null, number>();
  private keyLoadsInFlight = 0;
  private plans: ReadonlyMap<string, Plan> = new Map();
  private plansAsked = 0;
  /** The latest reading of the plans that is in force. */
  private plansRead = 0;
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
    const { source, clock } = options;
    this.formerKeys = new FormerKeys({ read: (limit) => source.hashesOfFormerKeys(limit), clock });
    this.tenantLookUps = new LookUps({
      read: (tenantIds) => this.readTenants(tenantIds),
      missing: null,
      keep: (tenantId, snapshot, isCurrent) => this.keep(tenantId, snapshot, isCurrent),
      batchMax: TENANTS_AT_ONCE,
      namesMax: SNAPSHOTS_MAX,
      clock,
    });
    this.keyLookUps = new LookUps<KeyOwner | null>({
      read: async (apiKeys) => {
        const found = await source.ownersOfKeys(apiKeys.map(apiKeyHash));
        return new Map(apiKeys.map((key) => [key, fulfilled(found.get(apiKeyHash(key)) ?? null)]));
      },
      missing: null,
      keep: () => undefined,
      batchMax: KEYS_AT_ONCE,
      namesMax: KEY_LOADS_MAX,
      clock,
    });
  }

  byApiKey(apiKey: string): KeyHolder | null | Promise<KeyHolder | null> {
    const nowMs = this.options.clock.monotonicMs();
    if (nowMs < this.trustedUntilMs) {
      const known = this.keys.get(apiKey);
      if (known?.snapshot.isCurrent) {
        const { owner, snapshot } = known;
        return this.isUsable(owner) ? { tenant: served(snapshot, nowMs), key: owner.key } : null;
      }
      if (this.unknownKeys.has(apiKey, nowMs)) return null;
    }
    if (!isApiKey(apiKey)) return null;
    return hasChecksum(apiKey) ? this.loadKey(apiKey) : this.loadFormerKey(apiKey);
  }

  byIdNow(tenantId: string): Tenant | null | undefined {
    const nowMs = this.options.clock.monotonicMs();
    if (nowMs >= this.trustedUntilMs) return undefined;
    const snapshot = this.snapshots.get(tenantId);
    if (snapshot !== undefined) return served(snapshot, nowMs);
    return this.unknownTenants.has(tenantId, nowMs) ? null : undefined;
  }

  byId(tenantId: string): Tenant | null | Promise<Tenant | null> {
    const known = this.byIdNow(tenantId);
    if (known !== undefined) return known;
    if (!TENANT_ID.test(tenantId)) return null;
    return this.tenantLookUps.ask(tenantId).then((snapshot) => snapshot?.tenant ?? null);
  }

  /** Forgets a tenant and its keys; null: all tenants. */
  drop(tenantId: string | null): void {
    this.drops += 1;
    if (this.keyLoadsInFlight > 0) this.droppedAt.set(tenantId, this.drops);
    // The owners of the keys being looked up are not known yet; any of them may be this tenant.
    this.keyLoads.clear();
    this.keyLookUps.outdate(null);
    this.tenantLookUps.outdate(tenantId);
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

  /** Reads the plans and puts them into force. Never rejects: if they cannot be read, everything remembered becomes invalid. */
  async takeNewPlans(): Promise<void> {
    try {
      await this.readPlans();
    } catch {
      this.drop(null);
    }
  }

  /** Whether the registry has answered recently enough for the cache to be used (S3). */
  get isTrusted(): boolean {
    return this.options.clock.monotonicMs() < this.trustedUntilMs;
  }

  /** Starts following the registry's changes. May be called once. */
  start(): void {
    if (this.stopping.signal.aborted) return;
    this.running ??= this.follow();
  }

  /** Stops following. Safe to call twice. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  /** Runs until `stopping`. */
  private async follow(): Promise<void> {
    const { feed, clock, telemetry } = this.options;
    const unsubscribe = feed.onChange((tenantId) =>
      tenantId === null ? void this.takeNewPlans() : this.drop(tenantId),
    );
    while (!this.stopping.signal.aborted) {
      const hasMore = await this.poll();
      this.sweep();
      telemetry.gauge("tenants_remembered", this.snapshots.size);
      await sleep(clock, hasMore ? 0 : POLL_MS, this.stopping.signal);
    }
    unsubscribe();
  }

  /** Returns whether more has changed than one poll reports. */
  private async poll(): Promise<boolean> {
    const { source, clock, telemetry } = this.options;
    const sentAtMs = clock.monotonicMs();
    try {
      const changes = await source.changesSince(this.seenVersion);
      const { version, hasMore, tenantIds } = changes;
      for (const tenantId of tenantIds ?? [null]) this.drop(tenantId);
      if (changes.haveOperatorsChanged) await this.options.onOperators?.();
      if (changes.havePlansChanged) await this.readPlans();
      this.seenVersion = version;
      this.trustedUntilMs = sentAtMs + TRUSTED_MS;
      if (!this.isReachable) telemetry.log("info", "the registry is back");
      this.isReachable = true;
      return hasMore;
    } catch (error) {
      // Whatever the error was, the next poll tries again; S3 limits how long that may go on.
      telemetry.count("registry_polls_failed");
      if (this.isReachable) telemetry.log("warn", "the registry does not answer", { error: String(error) });
      this.isReachable = false;
      return false;
    }
  }

  private async readPlans(): Promise<void> {
    const asked = (this.plansAsked += 1);
    const plans = await this.options.source.plans();
    // A reading that began later, and so has seen more, is already in force.
    if (asked < this.plansRead) return;
    this.plansRead = asked;
    this.plans = plans;
    for (const snapshot of this.snapshots.values()) this.takePlan(snapshot);
  }

  private takePlan(snapshot: Snapshot): void {
    const { tenant } = snapshot;
    const plan = this.plans.get(tenant.plan.name);
    snapshot.plansRead = this.plansRead;
    if (plan !== undefined && !isDeepStrictEqual(plan, tenant.plan)) snapshot.tenant = { ...tenant, plan };
  }

  private async readTenants(
    tenantIds: readonly string[],
  ): Promise<ReadonlyMap<string, PromiseSettledResult<Snapshot | null>>> {
    const { source, clock } = this.options;
    const [usedAtMs, plansRead] = [clock.monotonicMs(), this.plansRead];
    const found = await source.tenants(tenantIds);
    return new Map(
      Array.from(found, ([tenantId, read]) => [
        tenantId,
        read.status === "rejected" ? read : fulfilled({ tenant: read.value, isCurrent: true, usedAtMs, plansRead }),
      ]),
    );
  }

  private keep(tenantId: string, snapshot: Snapshot | null, isCurrent: boolean): void {
    if (snapshot !== null && snapshot.plansRead < this.plansRead) this.takePlan(snapshot);
    if (!isCurrent) return;
    if (snapshot === null) {
      this.forget(tenantId);
      this.unknownTenants.add(tenantId, this.options.clock.monotonicMs());
    } else {
      this.remember(tenantId, snapshot);
    }
  }

  private loadKey(apiKey: string): Promise<KeyHolder | null> {
    const running = this.keyLoads.get(apiKey);
    if (running !== undefined) return running;
    const started = this.readKey(apiKey).finally(() => {
      if (this.keyLoads.get(apiKey) === started) this.keyLoads.delete(apiKey);
    });
    this.keyLoads.set(apiKey, started);
    return started;
  }

  private loadFormerKey(apiKey: string): KeyHolder | null | Promise<KeyHolder | null> {
    const load = (mayBe: boolean) => (mayBe ? this.loadKey(apiKey) : null);
    const mayBe = this.formerKeys.mayHave(apiKey);
    return typeof mayBe === "boolean" ? load(mayBe) : mayBe.then(load);
  }

  private async readKey(apiKey: string): Promise<KeyHolder | null> {
    const [drops, nowMs] = [this.drops, this.options.clock.monotonicMs()];
    this.keyLoadsInFlight += 1;
    try {
      const found = await this.keyLookUps.ask(apiKey);
      const owner = found !== null && this.isUsable(found) ? found : null;
      const snapshot = owner === null ? null : await this.findSnapshot(owner.tenantId);
      const wereAllDropped = this.wasDropped(null, drops);
      if (owner === null || snapshot === null) {
        if (!wereAllDropped) this.unknownKeys.add(apiKey, nowMs);
        return null;
      }
      if (!wereAllDropped && !this.wasDropped(owner.tenantId, drops)) {
        remember(this.keys, { key: apiKey, value: { snapshot, owner }, max: KEYS_MAX });
      }
      return { tenant: snapshot.tenant, key: owner.key };
    } finally {
      this.keyLoadsInFlight -= 1;
      if (this.keyLoadsInFlight === 0) this.droppedAt.clear();
    }
  }

  /** Whether the key has not expired; if so, it is used now. */
  private isUsable({ key, expiresAtMs }: KeyOwner): boolean {
    if (expiresAtMs <= this.options.clock.nowMs()) return false;
    this.options.onKeyUse?.(key.keyId);
    return true;
  }

  /** Whether the tenant was dropped since the count of drops had this value. */
  private wasDropped(tenantId: string | null, drops: number): boolean {
    return (this.droppedAt.get(tenantId) ?? 0) > drops;
  }

  private findSnapshot(tenantId: string): Snapshot | Promise<Snapshot | null> {
    const known = this.isTrusted ? this.snapshots.get(tenantId) : undefined;
    // Urgent, because a request is waiting for it, not only queued jobs.
    return known ?? this.tenantLookUps.ask(tenantId, true);
  }

  private remember(tenantId: string, snapshot: Snapshot): void {
    this.forget(tenantId);
    const evicted = remember(this.snapshots, { key: tenantId, value: snapshot, max: SNAPSHOTS_MAX });
    if (evicted !== undefined) evicted.isCurrent = false;
  }

  private forget(tenantId: string): void {
    const snapshot = this.snapshots.get(tenantId);
    if (snapshot === undefined) return;
    snapshot.isCurrent = false;
    this.snapshots.delete(tenantId);
  }

  /** Forgets entries that have not been used for a while. */
  private sweep(): void {
    const nowMs = this.options.clock.monotonicMs();
    if (nowMs - this.sweptAtMs < SWEEP_MS) return;
    this.sweptAtMs = nowMs;
    for (const [tenantId, { usedAtMs }] of this.snapshots) if (nowMs - usedAtMs >= IDLE_MS) this.forget(tenantId);
    for (const [apiKey, { snapshot }] of this.keys) if (!snapshot.isCurrent) this.keys.delete(apiKey);
  }
}

function served(snapshot: Snapshot, nowMs: number): Tenant {
  snapshot.usedAtMs = nowMs;
  return snapshot.tenant;
}

function fulfilled<T>(value: T): PromiseFulfilledResult<T> {
  return { status: "fulfilled", value };
}
