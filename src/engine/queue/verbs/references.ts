import { Cluster } from "ioredis";
import { type Clock, sleep } from "../../../domain/clock.ts";
import { isOutage } from "../../../domain/errors.ts";
import type { JobAddress, Settlement } from "../../../domain/jobs/queue.ts";
import { limits } from "../../../domain/limits.ts";
import type { Telemetry } from "../../../domain/telemetry.ts";
import { engineLimits } from "../../limits.ts";
import { type RedisConnection, runPipeline } from "../connection.ts";
import { Script, type ScriptArgument } from "../script.ts";
import rememberLua from "./remember.lua" with { type: "text" };

/** Runs even when Redis is full: jobs in the queue must be able to leave, and references expire hourly. */
const script = new Script(rememberLua, "run");

/** How long settlements wait for a node that stores their references, and the wait between two tries. */
const KEEP_MS = 1_000;
const RETRY_MS = 100;

/** The hashes of one call: digests and jobs alternately, by key. */
type Hashes = ReadonlyMap<string, ScriptArgument[]>;

export function isNamed(settlement: Settlement): settlement is NamedSettlement {
  return settlement.kind === "final" && settlement.providerRef !== undefined;
}
type NamedSettlement = Extract<Settlement, { kind: "final" }> & { readonly providerRef: string };

/** The location of a reference within an hour. */
interface Place {
  /** One of sixteen hash tags, which spread the work over the slots of a cluster. */
  readonly tag: string;
  readonly bucket: string;
  /**
   * Ninety-six bits of the SHA-256 of the reference: two of a thousand million references collide with a probability of
   * one in 10^11, so no report reaches another message's job, and a made-up reference finds none.
   */
  readonly field: Buffer;
}

/**
 * References by the hour in which they were written: `wb:{ref<tag>}:<hour>:<bucket>` is a hash, digest -> job id and
 * tenant. With 4096 hashes per hour, each is small enough for compact storage (about 40 bytes plus the tenant's name
 * per reference) up to two million references, and expires whole. References are not in the tenant's shard, because a
 * report does not name the tenant.
 */
export class References {
  private readonly shardsPerCall: "all" | "one";
  /** Tags whose last call was given up, until a call succeeds. */
  private readonly away = new Set<string>();
  private readonly trying = new Set<string>();

  constructor(
    private readonly writer: RedisConnection,
    private readonly reader: RedisConnection,
    private readonly clock: Clock,
    private readonly telemetry: Telemetry,
  ) {
    this.shardsPerCall = writer instanceof Cluster ? "one" : "all";
  }

  /**
   * Resolves when the jobs can be found by the references that their settlements name. Safe to repeat. A cluster's
   * nodes fail one by one: a reference that cannot be written to its node within `KEEP_MS` is given up. Otherwise a
   * message's job could not be settled although its own shard answers. The chat provider's callbacks also name the job
   * themselves.
   */
  async remember(settlements: readonly Settlement[]): Promise<void> {
    const hour = toHour(this.clock.nowMs());
    const calls = new Map<string, Map<string, ScriptArgument[]>>();
    for (const settlement of settlements) {
      if (!isNamed(settlement)) continue;
      const place = locate(settlement.providerRef);
      const call = getOrAdd(calls, this.toCallKey(place), () => new Map<string, ScriptArgument[]>());
      getOrAdd(call, toKey(place, hour), () => []).push(place.field, encodeAddress(settlement.job));
    }
    const sent = Array.from(calls, ([call, hashes]) =>
      this.shardsPerCall === "all" ? this.write(hashes) : this.writeIfSoon(call, hashes),
    );
    await Promise.all(sent);
  }

  /**
   * Writes references. After a node has failed to answer, one call at a time retries it in the background until it
   * answers.
   */
  private async writeIfSoon(call: string, hashes: Hashes): Promise<void> {
    const isAway = this.away.has(call);
    if (isAway && this.trying.has(call)) return this.giveUp(call, hashes);
    const over = new AbortController();
    const giveUpAtMs = this.clock.monotonicMs() + (isAway ? 0 : KEEP_MS);
    if (isAway) this.trying.add(call);
    const written = this.writeUntil(giveUpAtMs, hashes)
      .then((isWritten) => (isWritten ? this.answers(call) : this.giveUp(call, hashes)))
      .finally(() => {
        if (isAway) this.trying.delete(call);
        over.abort();
      });
    if (isAway) return void written.catch(() => {});
    const tooLate = sleep(this.clock, KEEP_MS, over.signal).then(() => {
      if (!over.signal.aborted) this.isAwayNow(call);
    });
    await Promise.race([written, tooLate]);
  }

  /** False: it could not be written by then (monotonic), or after the only try if that came later. */
  private async writeUntil(giveUpAtMs: number, hashes: Hashes): Promise<boolean> {
    while (true) {
      try {
        await this.write(hashes);
        return true;
      } catch (error) {
        if (!isOutage(error)) throw error;
      }
      if (this.clock.monotonicMs() >= giveUpAtMs) return false;
      await sleep(this.clock, RETRY_MS);
    }
  }

  private async write(hashes: Hashes): Promise<void> {
    const args = [...hashes.values()].flatMap((pairs) => [pairs.length / 2, ...pairs]);
    await script.run(this.writer, [...hashes.keys()], [limits.providerRefKeptMs, ...args]);
  }

  private giveUp(call: string, hashes: Hashes): void {
    let count = 0;
    for (const pairs of hashes.values()) count += pairs.length / 2;
    this.telemetry.count("references_not_kept", {}, count);
    this.isAwayNow(call);
  }

  private isAwayNow(call: string): void {
    if (this.away.size === 0) {
      this.telemetry.log("warn", "references of sent messages cannot be stored; jobs are settled without them");
    }
    this.away.add(call);
  }

  private answers(call: string): void {
    if (this.away.delete(call) && this.away.size === 0) {
      this.telemetry.log("info", "references of sent messages are stored again");
    }
  }

  async findReferencedJobs(references: readonly string[]): Promise<readonly (JobAddress | null)[]> {
    const hours = hoursKept(this.clock.nowMs());
    const found = new Array<JobAddress | null>(references.length).fill(null);
    const calls = new Map<string, { readonly place: Place; readonly at: number }[]>();
    references.forEach((reference, at) => {
      const place = locate(reference);
      getOrAdd(calls, this.toCallKey(place), () => []).push({ place, at });
    });
    await Promise.all(
      Array.from(calls.values(), async (asked) => {
        const pipeline = this.reader.pipeline();
        for (const { place } of asked) for (const hour of hours) pipeline.hgetBuffer(toKey(place, hour), place.field);
        const answers = await runPipeline(pipeline);
        asked.forEach(({ at }, i) => {
          for (const answer of answers.slice(i * hours.length, (i + 1) * hours.length)) {
            if (answer instanceof Buffer) found[at] ??= decodeAddress(answer);
          }
        });
      }),
    );
    return found;
  }

  private toCallKey({ tag }: Place): string {
    return this.shardsPerCall === "all" ? "" : tag;
  }
}

function locate(reference: string): Place {
  const digest = new Bun.CryptoHasher("sha256").update(reference).digest();
  const hex = digest.subarray(0, 2).toString("hex");
  return { tag: hex.slice(0, 1), bucket: hex.slice(1, 3), field: digest.subarray(2, 14) };
}

function toKey({ tag, bucket }: Place, hour: number): string {
  return `wb:{ref${tag}}:${hour}:${bucket}`;
}

function toHour(nowMs: number): number {
  return Math.floor(nowMs / engineLimits.providerRefHourMs);
}

/** Returns the hours, the newest first, including the next one: the writer's clock may be ahead of this one. */
function hoursKept(nowMs: number): readonly number[] {
  const newest = toHour(nowMs) + 1;
  const count = 2 + Math.ceil(limits.providerRefKeptMs / engineLimits.providerRefHourMs);
  return Array.from({ length: count }, (_, age) => newest - age);
}

/** Encodes the sixteen bytes of the job's id, then the tenant. */
function encodeAddress({ jobId, tenantId }: JobAddress): Buffer {
  return Buffer.concat([Buffer.from(jobId.replaceAll("-", ""), "hex"), Buffer.from(tenantId)]);
}

function decodeAddress(value: Buffer): JobAddress {
  const hex = value.toString("hex", 0, 16);
  const jobId = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  return { jobId, tenantId: value.toString("utf8", 16) };
}

function getOrAdd<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}
