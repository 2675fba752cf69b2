import { beforeEach, expect, test } from "bun:test";
import fc from "fast-check";
import { TransportError, UnavailableError } from "../../src/domain/errors.ts";
import { jobIdAt } from "../../src/domain/ids.ts";
import type { JobRecord, JobStatus, SuppressionReason } from "../../src/domain/jobs/job.ts";
import { FENCED, type Fenced, type Lease, type Observation, type ObserveResult } from "../../src/domain/jobs/queue.ts";
import type { Page } from "../../src/domain/page.ts";
import { type Done, done } from "../../src/domain/store-result.ts";
import {
  readSuppressionName,
  type Suppression,
  type SuppressionIndex,
  type SuppressionRecord,
  suppressionName,
} from "../../src/domain/tenants/suppressions.ts";
import { recipientIndex } from "../../src/storage/recipient-index.ts";
import type { ErasedNames, SuppressionRegistry } from "../../src/tenants/registry.ts";
import { SuppressionList } from "../../src/tenants/suppression-list.ts";
import { aTenant } from "../support/tenants.ts";

const tenant = aTenant();
const lease: Lease = { shard: 0, role: "dispatcher", token: "1-a" };
const ACCEPTED_MS = Date.parse("2026-11-21T08:00:00Z");
const JOB_ID = jobIdAt(ACCEPTED_MS);
const JOB: JobRecord = {
  jobId: JOB_ID,
  tenantId: tenant.tenantId,
  channel: "email",
  status: "success",
  attempts: 1,
  result: {},
  events: [],
};
const recipients = recipientIndex(new Uint8Array(32).fill(7));
const RUNNING = new AbortController().signal;

/** A registry and an index in memory, whose every call runs when the test says so, and can be lost. */
class World implements SuppressionRegistry, SuppressionIndex {
  readonly list = new Map<string, SuppressionReason>();
  readonly index = new Map<string, string>();
  readonly observed: Observation[] = [];
  /** The status of the reported job; null: there is none. */
  status: JobStatus | null = "success";
  isLoaded = false;
  isFenced = false;
  /** When a recipient was erased. */
  readonly erasedMs = new Map<string, number>();
  /** The calls so far, in order. */
  readonly log: string[] = [];
  /** Runs before a call takes effect. */
  before: (call: string) => Promise<void> | void = () => {};

  private async call<T>(name: string, effect: () => T): Promise<T> {
    await this.before(name);
    this.log.push(name);
    return effect();
  }

  private readonly record = (name: string, reason: SuppressionReason): SuppressionRecord => ({
    ...readSuppressionName(name),
    reason,
    created_at: "2026-11-21T00:00:00Z",
  });

  putSuppression(of: string, address: string, reason: SuppressionReason): Promise<Done<SuppressionRecord>>;
  putSuppression(of: object, address: string, reason: SuppressionReason): Promise<void>;
  putSuppression(of: unknown, address: string, reason: SuppressionReason): Promise<never> {
    const isList = typeof of === "string";
    return this.call(isList ? "list.put" : "index.put", () => {
      if (!isList) this.index.set(address, reason);
      // As the registry does, which does not store an erased address again.
      const erased = recipients.erasedName(tenant.tenantId, address);
      const name = this.findNames(readSuppressionName(erased).address).length > 0 ? erased : address;
      if (isList) this.list.set(name, reason);
      // The list's callers read the record; the index's ignore it.
      return done(this.record(name, reason)) as never;
    });
  }
  putOwnSuppression(of: string, address: string, reason: SuppressionReason): Promise<Done<SuppressionRecord>> {
    return this.putSuppression(of, address, reason);
  }
  deleteSuppression(_of: string, address: string, reason?: SuppressionReason): Promise<Done<boolean>> {
    return this.call("list.delete", () => {
      if (reason !== undefined && this.list.get(address) !== reason) return done(false);
      const wasErased = this.list.delete(recipients.erasedName(tenant.tenantId, address));
      return done(this.list.delete(address) || wasErased);
    });
  }
  eraseSuppression(_of: string, address: string, isAdded: boolean): Promise<Done<ErasedNames>> {
    return this.call("list.erase", () => {
      const names = this.findNames(address);
      for (const name of isAdded ? new Set([...names, address]) : names) {
        const erased = recipients.erasedName(tenant.tenantId, name);
        if (!this.list.has(erased)) this.list.set(erased, this.list.get(name) ?? "manual");
        this.list.delete(name);
      }
      const erased = this.findNames(recipients.erasedName(tenant.tenantId, address)).map(readSuppressionName);
      return done({ rows: names.length, names: erased.map(({ topic }) => suppressionName(address, topic)) });
    });
  }
  private findNames(address: string): readonly string[] {
    return [...this.list.keys()].filter((name) => readSuppressionName(name).address === address);
  }
  suppressionReason(_of: string, address: string): Promise<SuppressionReason | null> {
    return this.call("list.read", () => this.list.get(address) ?? null);
  }
  suppressions(): Promise<Done<Page<SuppressionRecord>>> {
    return Promise.resolve(done({ items: [], nextCursor: null }));
  }
  suppressionsOfShard(_shard: number, after: Suppression | null): Promise<readonly Suppression[]> {
    return this.call("list.page", () =>
      [...this.list]
        .map(([address, reason]) => ({ tenantId: tenant.tenantId, address, reason }))
        .filter(({ address }) => after === null || address > after.address)
        .sort((one, other) => (one.address < other.address ? -1 : 1))
        .slice(0, 2),
    );
  }
  wasErasedSince(_of: object, address: string, sinceMs: number): Promise<boolean> {
    return this.call("index.erased", () => (this.erasedMs.get(address) ?? 0) >= sinceMs);
  }
  removeSuppression(_of: object, address: string): Promise<void> {
    return this.call("index.remove", () => {
      if (this.isLoaded) this.index.delete(address);
      else this.index.set(address, "");
    });
  }
  loadSuppressions(
    _lease: Lease,
    entries: readonly Suppression[],
    isLast: boolean,
  ): Promise<"loading" | "loaded" | Fenced> {
    return this.call("index.load", () => {
      if (this.isFenced) return FENCED;
      if (this.isLoaded) return "loaded";
      for (const { address, reason } of entries) if (!this.index.has(address)) this.index.set(address, reason);
      this.isLoaded = isLast;
      return isLast ? "loaded" : "loading";
    });
  }
  async job(): Promise<JobRecord | null> {
    return this.status === null ? null : { ...JOB, status: this.status };
  }
  observe(_of: object, observation: Observation): Promise<ObserveResult> {
    return this.call("observe", () => {
      this.observed.push(observation);
      const { suppress } = observation;
      if (suppress !== null) this.index.set(suppress.recipient, suppress.reason);
      return "recorded";
    });
  }

  /** Returns the recipients that `pull` would suppress. */
  suppressed(): Record<string, string> {
    return Object.fromEntries([...this.index].filter(([address, reason]) => reason !== "" && address !== "sha:"));
  }
}

let world: World;
let list: SuppressionList;
beforeEach(() => {
  world = new World();
  world.isLoaded = true;
  list = new SuppressionList({ registry: world, index: world, queue: world, recipients });
});

const bounce = (recipient: string): Observation => ({
  jobId: JOB_ID,
  type: "bounced",
  result: {},
  suppress: { recipient, reason: "bounced" },
  known: null,
});

test("a change is in the registry before it is in the index, and addresses are compared without regard to case", async () => {
  await list.put(tenant, "Ann@Example.COM", "manual");
  expect(world.log.slice(0, 3)).toEqual(["list.put", "list.read", "index.put"]);
  expect(world.suppressed()).toEqual({ "ann@example.com": "manual" });
  expect(await list.remove(tenant, "ANN@example.com")).toEqual(done(true));
  expect([world.list.size, world.suppressed()]).toEqual([0, {}]);
});

test("a bounce is in the registry before its event is recorded, even if the event was recorded before", async () => {
  expect(await list.observe(tenant, bounce("Ann@x.example"))).toBe("recorded");
  expect(world.log.slice(0, 3)).toEqual(["list.put", "index.erased", "observe"]);
  expect(world.observed[0]?.suppress?.recipient).toBe("ann@x.example");
  expect(world.suppressed()).toEqual(Object.fromEntries(world.list));
  expect(await list.observe(tenant, { ...bounce("x"), suppress: null })).toBe("recorded");
  expect(world.list.size).toBe(1);
});

test("a late bounce or unsubscribe brings no erased address back, and a later message's is kept as usual", async () => {
  world.erasedMs.set("ann@x.example", ACCEPTED_MS + 1);
  world.erasedMs.set("bob@x.example", ACCEPTED_MS - 1);
  const quoting = (address: string) => ({
    ...bounce(address),
    result: { code: 550, diagnostic: `550 <${address}> unknown` },
  });
  await list.observe(tenant, quoting("Ann@x.example"));
  await list.ensure(tenant, { jobId: JOB_ID, recipient: "Ann@x.example" }, "unsubscribed");
  await list.observe(tenant, quoting("bob@x.example"));
  const results = world.observed.map(({ result }) => result);
  expect(results).toEqual([
    { code: 550, diagnostic: "(erased)" },
    { code: 550, diagnostic: "550 <bob@x.example> unknown" },
  ]);
  const erased = recipients.erasedName(tenant.tenantId, "ann@x.example");
  expect(Object.fromEntries(world.list)).toEqual({ [erased]: "unsubscribed", "bob@x.example": "bounced" });
  expect(world.suppressed()).toEqual(Object.fromEntries(world.list));
  expect(JSON.stringify(world.observed)).not.toContain("nn@");
});

test("whenever a bounce meets an erasure, the address does not stay", async () => {
  for (let at = 0; at < 12; at += 1) {
    world = new World();
    world.isLoaded = true;
    list = new SuppressionList({ registry: world, index: world, queue: world, recipients });
    let calls = 0;
    let erasure: Promise<unknown> = Promise.resolve();
    world.before = async () => {
      calls += 1;
      if (calls - 1 !== at) return;
      world.before = () => {};
      // As `eraseRecipient` does: it updates the queue first, then the list.
      world.erasedMs.set("ann@x.example", ACCEPTED_MS + 1);
      erasure = list.erase(tenant, "ann@x.example", false);
      if (at % 2 === 0) await erasure;
    };
    await list.observe(tenant, bounce("ann@x.example"));
    await erasure;
    if (calls > at) expect([at, [...world.list.keys()].filter((name) => !name.startsWith("sha:"))]).toEqual([at, []]);
    if (calls > at) expect([at, Object.keys(world.suppressed())]).toEqual([at, [...world.list.keys()]]);
  }
});

test("a report about an unknown job suppresses no address, and one that overtakes our own record of the hand-over does", async () => {
  world.status = null;
  expect(await list.observe(tenant, bounce("a@x.example"))).toBe("unknown");
  expect([world.list.size, world.suppressed(), world.observed.length]).toEqual([0, {}, 0]);
  world.status = "running";
  expect(await list.observe(tenant, bounce("a@x.example"))).toBe("recorded");
  world.status = null;
  expect(await list.observe(tenant, { ...bounce("b@x.example"), known: JOB })).toBe("recorded");
  expect(Object.keys(world.suppressed())).toEqual(["a@x.example", "b@x.example"]);
});

test("while the registry is away a bounce is not recorded, so its report is repeated", async () => {
  world.before = (call) => {
    if (call === "list.put") throw new UnavailableError("away");
  };
  expect(await list.observe(tenant, bounce("a@x.example")).catch((error: unknown) => error)).toBeInstanceOf(
    UnavailableError,
  );
  expect(world.observed).toEqual([]);
});

test("a repeat after a lost call corrects the index, even if the registry has the change already", async () => {
  let isLost = true;
  world.before = (call) => {
    if (isLost && call.startsWith("index.")) throw new TransportError("lost");
  };
  await list.put(tenant, "a@x.example", "manual").catch(() => {});
  expect([world.list.size, world.suppressed()]).toEqual([1, {}]);
  isLost = false;
  await list.put(tenant, "a@x.example", "manual");
  expect(world.suppressed()).toEqual({ "a@x.example": "manual" });
  isLost = true;
  await list.remove(tenant, "a@x.example").catch(() => {});
  isLost = false;
  expect(await list.remove(tenant, "a@x.example")).toEqual(done(false));
  expect(world.suppressed()).toEqual({});
});

test("what is on the list already is not written to the registry again, and the index is corrected all the same", async () => {
  let isLost = true;
  world.before = (call) => {
    if (isLost && call.startsWith("index.")) throw new TransportError("lost");
  };
  await list.ensure(tenant, { jobId: JOB_ID, recipient: "Ann@x.example" }, "unsubscribed").catch(() => {});
  isLost = false;
  expect([world.list.size, world.suppressed()]).toEqual([1, {}]);
  world.log.length = 0;
  await list.ensure(tenant, { jobId: JOB_ID, recipient: "ann@X.example" }, "unsubscribed");
  expect([world.suppressed(), world.log.includes("list.put")]).toEqual([{ "ann@x.example": "unsubscribed" }, false]);
  // A changed reason, and a removed entry, are written.
  await list.put(tenant, "ann@x.example", "bounced");
  await list.ensure(tenant, { jobId: JOB_ID, recipient: "ann@x.example" }, "unsubscribed");
  expect(world.suppressed()).toEqual({ "ann@x.example": "unsubscribed" });
  await list.remove(tenant, "ann@x.example");
  await list.ensure(tenant, { jobId: JOB_ID, recipient: "ann@x.example" }, "unsubscribed");
  expect(world.suppressed()).toEqual(Object.fromEntries(world.list));
  await list.erase(tenant, "ann@x.example", false);
  world.log.length = 0;
  await list.ensure(tenant, { jobId: JOB_ID, recipient: "ann@x.example" }, "unsubscribed");
  expect([world.list.size, world.log.includes("list.put")]).toEqual([1, false]);
});

test("an erased recipient stays on registry and index, under a name that only the key can make", async () => {
  await list.put(tenant, "Ann@x.example", "complained");
  expect(await list.erase(tenant, "ann@X.example", false)).toEqual(done(1));
  const name = recipients.erasedName(tenant.tenantId, "ann@x.example");
  expect([...world.list]).toEqual([[name, "complained"]]);
  expect(world.suppressed()).toEqual({ [name]: "complained" });
  expect(world.index.get("sha:")).toBe(recipients.erasedNamesKey(tenant.tenantId));
  expect(await list.erase(tenant, "ann@x.example", true)).toEqual(done(0));
  // Neither a late bounce nor an operator restores the address.
  expect(await list.observe(tenant, bounce("ann@x.example"))).toBe("recorded");
  expect(world.observed.at(-1)?.suppress?.recipient).toBe(name);
  await list.put(tenant, "ann@x.example", "manual");
  expect([[...world.list], world.suppressed()]).toEqual([[[name, "manual"]], { [name]: "manual" }]);
  expect(await list.remove(tenant, "ann@x.example")).toEqual(done(true));
  expect([world.list.size, world.suppressed()]).toEqual([0, {}]);
  expect(await list.erase(tenant, "eve@x.example", false)).toEqual(done(0));
  expect(world.list.size).toBe(0);
  await list.erase(tenant, "eve@x.example", true);
  expect([...world.list.values()]).toEqual(["manual"]);
});

test("a topic's suppression is put, found, erased and taken off by itself", async () => {
  await list.put(tenant, "ann@x.example", "bounced");
  await list.ensure(tenant, { jobId: JOB_ID, recipient: "Ann@x.example", topic: "news" }, "unsubscribed");
  expect(world.suppressed()).toEqual({ "ann@x.example": "bounced", "ann@x.example\tnews": "unsubscribed" });
  world.log.length = 0;
  await list.ensure(tenant, { jobId: JOB_ID, recipient: "ann@x.example", topic: "news" }, "unsubscribed");
  expect(world.log).not.toContain("list.put");
  expect(await list.remove(tenant, "ann@x.example\tnews", "manual")).toEqual(done(false));
  expect(world.suppressed()).toEqual(Object.fromEntries(world.list));
  world.before = (call) => {
    if (call.startsWith("index.")) throw new TransportError("lost");
  };
  await list.erase(tenant, "ann@x.example", false).catch(() => {});
  world.before = () => {};
  expect(await list.erase(tenant, "ann@x.example", false)).toEqual(done(0));
  const person = recipients.erasedName(tenant.tenantId, "ann@x.example");
  expect(world.suppressed()).toEqual({ [person]: "bounced", [`${person}\tnews`]: "unsubscribed" });
  // A late one from an earlier mail: for its own topic, and without the address.
  world.erasedMs.set("eve@x.example", ACCEPTED_MS + 1);
  await list.ensure(tenant, { jobId: JOB_ID, recipient: "eve@x.example", topic: "offers" }, "unsubscribed");
  const eve = recipients.erasedName(tenant.tenantId, "eve@x.example\toffers");
  expect([[...world.list.keys()].at(-1), world.suppressed()[eve]]).toEqual([eve, "unsubscribed"]);
  expect(JSON.stringify([...world.index.keys()])).not.toContain("eve@");
  expect(await list.remove(tenant, "ann@x.example\tnews")).toEqual(done(true));
  expect(world.suppressed()).toEqual(Object.fromEntries(world.list));
});

test("an erasure that died after the registry's change is completed by its repeat", async () => {
  await list.put(tenant, "ann@x.example", "complained");
  world.before = (call) => {
    if (call.startsWith("index.")) throw new TransportError("lost");
  };
  await list.erase(tenant, "ann@x.example", false).catch(() => {});
  world.before = () => {};
  expect(await list.erase(tenant, "ann@x.example", false)).toEqual(done(0));
  expect(world.suppressed()).toEqual({ [recipients.erasedName(tenant.tenantId, "ann@x.example")]: "complained" });
});

test("a lost index is filled with erased names and their key", async () => {
  await list.erase(tenant, "ann@x.example", true);
  world.index.clear();
  world.isLoaded = false;
  expect(await list.fill(lease, RUNNING)).toBe(true);
  expect(world.index.get("sha:")).toBe(recipients.erasedNamesKey(tenant.tenantId));
  expect(world.suppressed()).toEqual(Object.fromEntries(world.list));
});

test("registry and index agree in the end, in whatever order concurrent changes take effect", async () => {
  const change = fc.constantFrom("put", "remove", "bounce", "erase", "ensure");
  await fc.assert(
    fc.asyncProperty(fc.array(change, { minLength: 2, maxLength: 4 }), fc.scheduler(), async (changes, scheduler) => {
      const racing = new World();
      racing.isLoaded = true;
      racing.before = (call) => scheduler.schedule(Promise.resolve(), call);
      const races = new SuppressionList({ registry: racing, index: racing, queue: racing, recipients });
      const calls = changes.map((kind) => {
        if (kind === "put") return races.put(tenant, "a@x.example", "manual");
        if (kind === "ensure") return races.ensure(tenant, { jobId: JOB_ID, recipient: "a@x.example" }, "unsubscribed");
        if (kind === "erase") return races.erase(tenant, "a@x.example", false);
        return kind === "remove" ? races.remove(tenant, "a@x.example") : races.observe(tenant, bounce("a@x.example"));
      });
      await scheduler.waitFor(Promise.all(calls));
      expect(racing.suppressed()).toEqual(Object.fromEntries(racing.list));
    }),
    { numRuns: 300 },
  );
});

test("a lost index is filled page by page, and changes made meanwhile end up as in the registry", async () => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom("put", "remove"), fc.scheduler(), async (kind, scheduler) => {
      const racing = new World();
      for (const name of ["a", "b", "c", "d", "e"]) racing.list.set(`${name}@x.example`, "bounced");
      racing.before = (call) => scheduler.schedule(Promise.resolve(), call);
      const races = new SuppressionList({ registry: racing, index: racing, queue: racing, recipients });
      const changing =
        kind === "put" ? races.put(tenant, "bb@x.example", "manual") : races.remove(tenant, "c@x.example");
      const filling = races.fill(lease, RUNNING);
      await scheduler.waitFor(Promise.all([changing, filling]));
      expect(await filling).toBe(true);
      expect(racing.suppressed()).toEqual(Object.fromEntries(racing.list));
    }),
    { numRuns: 200 },
  );
});

test("filling reads nothing from the registry if the index is complete, and stops when told to or fenced", async () => {
  expect(await list.fill(lease, RUNNING)).toBe(true);
  expect(world.log).toEqual(["index.load"]);
  world.isLoaded = false;
  expect(await list.fill(lease, AbortSignal.abort())).toBe(false);
  world.isFenced = true;
  expect(await list.fill(lease, RUNNING)).toBe(false);
  expect(world.isLoaded).toBe(false);
});
