import { describe, expect, test } from "bun:test";
import { TransportError } from "../../../src/domain/errors.ts";
import type { Leases } from "../../../src/domain/jobs/queue.ts";
import { limits } from "../../../src/domain/limits.ts";
import { type LeaseTerm, ShardKeeper } from "../../../src/engine/leases/shard-keeper.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { SeededRandom } from "../../support/seeded-random.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";
import { lossy, MemoryRecorderQueue, type Weather } from "../recorder/memory-recorder-queue.ts";

/** Processes that compete for the same shards. */
class Scene {
  readonly clock = new VirtualClock();
  readonly leases = new MemoryRecorderQueue(this.clock, 1);
  readonly terms: LeaseTerm[] = [];
  /** How long the processes were paused: their clocks have gone on, and their timers are late. */
  pausedMs = 0;
  private owners = 0;

  constructor(private readonly shards: number) {}

  /** By default a term's work is over as soon as it is closed. */
  keeper(leases: Leases = this.leases, work: (term: LeaseTerm) => Promise<void> = untilClosed): ShardKeeper {
    return new ShardKeeper({
      leases,
      role: "recorder",
      owner: `p${(this.owners += 1)}`,
      shards: this.shards,
      clock: {
        nowMs: () => this.clock.nowMs() + this.pausedMs,
        monotonicMs: () => this.clock.monotonicMs() + this.pausedMs,
        setTimer: (delayMs, run) => this.clock.setTimer(delayMs, run),
      },
      telemetry: new QuietTelemetry(),
      onTerm: async (term) => {
        this.terms.push(term);
        await work(term);
        this.terms.splice(this.terms.indexOf(term), 1);
      },
    });
  }

  /** Lets pending work proceed, and time pass. */
  async advance(ms: number): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    await this.clock.advance(ms);
  }

  /** The number of shards that each process owns, in the order of the processes. */
  held(): number[] {
    const counts = Array.from({ length: this.owners }, () => 0);
    for (const { lease } of this.terms) {
      const process = Number(lease.token.slice(1).split("-")[0]) - 1;
      counts[process] = (counts[process] ?? 0) + 1;
    }
    return counts;
  }
}

function untilClosed({ closing }: LeaseTerm): Promise<void> {
  return new Promise((resolve) => {
    if (closing.aborted) return resolve();
    closing.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** Leases whose calls fail while `cut`. */
function cuttable(leases: Leases) {
  const line = { cut: false };
  const pass = <T>(call: () => Promise<T>) => (line.cut ? Promise.reject(new TransportError("cut")) : call());
  const way: Leases = {
    leases: (...args) => pass(() => leases.leases(...args)),
    acquire: (...args) => pass(() => leases.acquire(...args)),
    renew: (...args) => pass(() => leases.renew(...args)),
    release: (...args) => pass(() => leases.release(...args)),
    heartbeat: (...args) => pass(() => leases.heartbeat(...args)),
    resign: (...args) => pass(() => leases.resign(...args)),
    onRelease: (listener) => leases.onRelease((...hint) => line.cut || listener(...hint)),
  };
  return { way, line };
}

describe("shard keepers", () => {
  test("share the shards fairly as processes come and go", async () => {
    const scene = new Scene(16);
    const keepers = [scene.keeper(), scene.keeper(), scene.keeper()];
    keepers[0]?.start();
    await scene.advance(100);
    expect(scene.held()).toEqual([16, 0, 0]);
    keepers[1]?.start();
    await scene.advance(5_000);
    expect(scene.held()).toEqual([8, 8, 0]);
    keepers[2]?.start();
    await scene.advance(5_000);
    expect(scene.held().toSorted((a, b) => a - b)).toEqual([4, 6, 6]);
    const stopping = keepers[0]?.stop();
    await scene.advance(2_000);
    await stopping;
    expect(scene.held()).toEqual([0, 8, 8]);
    await Promise.all(keepers.map((keeper) => keeper.stop()));
    expect(scene.held()).toEqual([0, 0, 0]);
  });

  test("replace a cut-off process in time, and that process knows before that it lost its shards", async () => {
    const scene = new Scene(4);
    const { way, line } = cuttable(scene.leases);
    const first = scene.keeper(way);
    first.start();
    await scene.advance(4_000);
    const mine = [...scene.terms];
    expect(mine).toHaveLength(4);
    line.cut = true;
    const second = scene.keeper();
    second.start();
    for (let ms = 0; ms < limits.takeoverMsMax; ms += 100) {
      await scene.advance(100);
      expect(mine.some((term) => term.isSurelyHeld() && scene.leases.holder(term.shard) !== term.lease.token)).toBe(
        false,
      );
    }
    // It cannot notice: its deliveries in flight go on, and no new one starts.
    expect(mine.map((term) => term.lost.aborted || term.isSurelyHeld())).toEqual([false, false, false, false]);
    expect(scene.held()).toEqual([4, 4]);
    line.cut = false;
    await scene.advance(5_000);
    expect(mine.map((term) => term.lost.aborted && term.closing.aborted)).toEqual([true, true, true, true]);
    expect(scene.held()).toEqual([2, 2]);
    expect(mine.some((term) => term.isSurelyHeld())).toBe(false);
    await Promise.all([first.stop(), second.stop()]);
  });

  test("lose a term at once when its renewal is refused", async () => {
    const scene = new Scene(1);
    const keeper = scene.keeper();
    keeper.start();
    await scene.advance(100);
    const [term] = scene.terms;
    if (term === undefined) throw new Error("there is no term");
    await scene.leases.release(term.lease);
    await scene.leases.acquire(0, "recorder", "p9", null);
    await scene.advance(limits.leaseRenewMs);
    expect([term.lost.aborted, term.isSurelyHeld()]).toEqual([true, false]);
    await keeper.stop();
  });

  test("lose nothing, and start nothing, while the store is silent for longer than a lease", async () => {
    const scene = new Scene(4);
    const { way, line } = cuttable(scene.leases);
    const keepers = [scene.keeper(way), scene.keeper(way), scene.keeper(way)];
    for (const keeper of keepers) keeper.start();
    await scene.advance(5_000);
    const before = [...scene.terms];
    expect(before).toHaveLength(4);
    line.cut = true;
    await scene.advance(limits.leaseTtlMs * 6);
    expect(before.map((term) => term.isSurelyHeld())).toEqual([false, false, false, false]);
    const goesOn = Promise.all(before.map((term) => term.whenSurelyHeld()));
    line.cut = false;
    await scene.advance(limits.leaseCompeteMs * 2);
    expect(await goesOn).toEqual([true, true, true, true]);
    await scene.advance(limits.leaseTtlMs * 3);
    expect(scene.terms).toEqual(before);
    expect(before.every((term) => term.isSurelyHeld() && !term.lost.aborted)).toBe(true);
    const stopping = Promise.all(keepers.map((keeper) => keeper.stop()));
    await scene.advance(1_000);
    await stopping;
  });

  test("never count the store's silence against a living owner, whichever is heard first afterwards", async () => {
    const scene = new Scene(2);
    const owner = cuttable(scene.leases);
    const candidate = cuttable(scene.leases);
    const keepers = [scene.keeper(owner.way), scene.keeper(candidate.way)];
    keepers[0]?.start();
    await scene.advance(100);
    const [kept] = scene.terms;
    keepers[1]?.start();
    await scene.advance(5_000);
    owner.line.cut = true;
    candidate.line.cut = true;
    await scene.advance(limits.leaseTtlMs * 2);
    candidate.line.cut = false;
    await scene.advance(3_000);
    owner.line.cut = false;
    await scene.advance(2_000);
    expect([kept?.lost.aborted, kept?.isSurelyHeld()]).toEqual([false, true]);
    await Promise.all(keepers.map((keeper) => keeper.stop()));
  });

  test("doubt a lease after a pause, until a renewal that was sent later succeeds", async () => {
    const scene = new Scene(1);
    const keeper = scene.keeper();
    keeper.start();
    await scene.advance(limits.leaseRenewMs - 1);
    const [term] = scene.terms;
    expect(term?.isSurelyHeld()).toBe(true);
    scene.pausedMs = limits.leaseTtlMs;
    expect([term?.isSurelyHeld(), term?.lost.aborted]).toEqual([false, false]);
    await scene.advance(10);
    expect([term?.isSurelyHeld(), term?.lost.aborted]).toEqual([true, false]);
    await keeper.stop();
  });

  test("take a shard that another process hands over at once", async () => {
    const scene = new Scene(6);
    const [first, second] = [scene.keeper(), scene.keeper()];
    first.start();
    await scene.advance(100);
    second.start();
    await scene.advance(100);
    expect(scene.held()).toEqual([6, 0]);
    // The first learns of the second with its next heartbeat; its releases then need no further heartbeat.
    await scene.advance(limits.leaseCompeteMs - 90);
    expect(scene.held()).toEqual([3, 3]);
    const stopping = first.stop();
    await scene.advance(20);
    await stopping;
    expect(scene.held()).toEqual([0, 6]);
    await second.stop();
  });

  test("take back at once what they handed to a process that leaves within the second", async () => {
    const scene = new Scene(6);
    const [staying, passing] = [scene.keeper(), scene.keeper()];
    staying.start();
    await scene.advance(100);
    passing.start();
    await scene.advance(limits.leaseCompeteMs);
    expect(scene.held()).toEqual([3, 3]);
    const stopping = passing.stop();
    await scene.advance(20);
    await stopping;
    expect(scene.held()).toEqual([6, 0]);
    await staying.stop();
  });

  test("leave the members before their work is over, so that nobody waits for it", async () => {
    const scene = new Scene(4);
    let finish = () => {};
    const slow = scene.keeper(scene.leases, () => new Promise((resolve) => (finish = resolve)));
    slow.start();
    await scene.advance(100);
    const stopping = slow.stop();
    await scene.advance(10);
    expect(scene.leases.members()).toEqual([]);
    finish();
    await scene.advance(100);
    await Promise.race([stopping, scene.advance(1_000)]);
  });

  test("replace a dead process within the promised time", async () => {
    const scene = new Scene(8);
    const { way, line } = cuttable(scene.leases);
    const [dying, heir] = [scene.keeper(way), scene.keeper()];
    dying.start();
    heir.start();
    await scene.advance(5_000);
    expect(scene.held()).toEqual([4, 4]);
    line.cut = true;
    await scene.advance(limits.takeoverMsMax);
    expect(scene.held()[1]).toBe(8);
    expect(scene.leases.members()).toEqual(["p2"]);
    await heir.stop();
    await dying.stop();
  });

  test("do not compete for a shard again before their last term's work is over", async () => {
    const scene = new Scene(1);
    const { way, line } = cuttable(scene.leases);
    let begun = 0;
    let finish = () => {};
    const keeper = scene.keeper(way, () => {
      begun += 1;
      return new Promise((resolve) => {
        finish = resolve;
      });
    });
    keeper.start();
    await scene.advance(1_000);
    line.cut = true;
    const other = scene.keeper(scene.leases, untilClosed);
    other.start();
    await scene.advance(20_000);
    line.cut = false;
    await scene.advance(2_000);
    expect(scene.leases.holder(0)).toMatch(/^p2/);
    await other.stop();
    await scene.advance(20_000);
    expect(begun).toBe(1);
    finish();
    await scene.advance(3_000);
    expect(begun).toBe(2);
    finish();
    await keeper.stop();
  });

  test("hold a closing shard until its work is over, then release it", async () => {
    const scene = new Scene(1);
    let finish = () => {};
    const keeper = scene.keeper(scene.leases, async () => {
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
    });
    keeper.start();
    await scene.advance(1_000);
    const [term] = scene.terms;
    let over = false;
    const stopping = Promise.all([keeper.stop(), keeper.stop()]).then(() => {
      over = true;
    });
    await scene.advance(60_000);
    expect([over, term?.closing.aborted, term?.lost.aborted, term?.isSurelyHeld()]).toEqual([false, true, false, true]);
    finish();
    await stopping;
    expect(scene.leases.holder(0)).toBeNull();
  });

  test("take a shard up again after its work failed", async () => {
    const scene = new Scene(1);
    let begun = 0;
    const keeper = scene.keeper(scene.leases, (term) => {
      begun += 1;
      return begun === 1 ? Promise.reject(new Error("a mistake")) : untilClosed(term);
    });
    keeper.start();
    await scene.advance(limits.leaseCompeteMs * 2);
    expect(begun).toBe(2);
    await keeper.stop();
  });

  test("may stop before they start", async () => {
    const scene = new Scene(1);
    const keeper = scene.keeper();
    await keeper.stop();
    keeper.start();
    await scene.advance(5_000);
    expect(scene.terms).toEqual([]);
  });
});

const SEEDS = Number(process.env["SEEDS"] ?? 30);
const FIRST_SEED = Number(process.env["SEED"] ?? 1);

test(`no shard is surely held twice, and all are held in the end, despite lost calls and deaths (${SEEDS} seeds)`, async () => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed += 1) {
    try {
      await runSeed(seed);
    } catch (error) {
      throw new Error(`replay with: SEED=${seed} SEEDS=1 bun test test/engine/leases/shard-keeper.test.ts`, {
        cause: error,
      });
    }
  }
}, 300_000);

async function runSeed(seed: number): Promise<void> {
  const shards = 5;
  const scene = new Scene(shards);
  const random = new SeededRandom(seed);
  const weather: Weather = { failing: 0.5, delayMsMax: 600 };
  const birth = () => {
    const { way, process } = lossy(scene.leases, scene.clock, random, weather);
    const keeper = scene.keeper(way);
    keeper.start();
    return { keeper, process };
  };
  const alive = [birth(), birth(), birth()];
  for (let step = 0; step < 300; step += 1) {
    await scene.advance(random.next() * 400);
    for (const term of scene.terms.filter((each) => each.isSurelyHeld())) {
      expect(scene.leases.holder(term.shard)).toBe(term.lease.token);
    }
    if (random.next() < 0.03) {
      const dying = alive.shift();
      if (dying !== undefined) dying.process.dead = true;
      alive.push(birth());
    }
  }
  weather.failing = 0;
  weather.delayMsMax = 10;
  await scene.advance(30_000);
  const held = scene.terms.filter((term) => term.isSurelyHeld()).map(({ shard }) => shard);
  expect(held.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4]);
  const stopping = Promise.all(alive.map(({ keeper }) => keeper.stop()));
  await scene.advance(3_000);
  await stopping;
}
