import type { Clock } from "../../../domain/clock.ts";
import { OCCURRED_AT } from "../../../domain/jobs/event.ts";
import type { Observation, ObserveResult } from "../../../domain/jobs/queue.ts";
import type { TenantRef } from "../../../domain/tenants/tenant.ts";
import { engineLimits } from "../../limits.ts";
import { type ChannelLetters, EVENT_LETTER, encodeRecord, encodeResult } from "../codec.ts";
import type { RedisConnection } from "../connection.ts";
import { GroupCommit } from "../group-commit.ts";
import { shardPrefix } from "../keys.ts";
import { Script, type ScriptArgument } from "../script.ts";
import observeLua from "./observe.lua" with { type: "text" };

const script = new Script(observeLua, "run");

interface Sighting {
  readonly tenant: TenantRef;
  readonly observation: Observation;
  /** The job's record from the event store, encoded; "": not read yet. */
  readonly told: string;
}

/** The fourth verb: adds later reports from a provider, the MTA or a reader's click, in batches like accept's. */
export class Observer {
  private readonly commits: GroupCommit<Sighting, ObserveResult>;

  constructor(
    private readonly connection: RedisConnection,
    clock: Clock,
    shardsPerCall: "all" | "one",
    private readonly letters: ChannelLetters,
  ) {
    this.commits = new GroupCommit(shardsPerCall, {
      clock,
      itemsMax: engineLimits.acceptBatchJobsMax,
      bytesMax: engineLimits.acceptBatchBytesMax,
      measureBytes: ({ told }) => told.length,
      send: (sightings) => this.send(sightings),
    });
  }

  submit({ tenant, observation }: Omit<Sighting, "told">): Promise<ObserveResult> {
    const { known } = observation;
    const told = known === null ? "" : encodeRecord(this.letters, known);
    return this.commits.submit(tenant.shard, { tenant, observation, told });
  }

  private async send(sightings: readonly Sighting[]): Promise<ObserveResult[]> {
    const answers = new Array<ObserveResult>(sightings.length);
    const shards = byShard(sightings, (sighting) => sighting.tenant.shard);
    const args: ScriptArgument[] = [];
    for (const { items } of shards) {
      args.push(items.length);
      for (const sighting of items) args.push(...encodeSighting(sighting));
    }
    const keys = shards.map((group) => shardPrefix(group.shard));
    // The script answers one word per item.
    const reply = (await script.run(this.connection, keys, args)) as ObserveResult[];
    shards
      .flatMap((group) => group.indexes)
      .forEach((index, i) => {
        answers[index] = reply[i] ?? "unknown";
      });
    return answers;
  }
}

function encodeSighting({ tenant, observation, told }: Sighting): ScriptArgument[] {
  const { jobId, type, result, occurredAtMs, suppress } = observation;
  return [
    tenant.tenantId,
    jobId,
    EVENT_LETTER[type],
    encodeResult(occurredAtMs === undefined ? result : { ...result, [OCCURRED_AT]: occurredAtMs }),
    suppress?.recipient ?? "",
    suppress?.reason ?? "",
    told,
  ];
}

interface ShardGroup<T> {
  readonly shard: number;
  readonly items: readonly T[];
  /** The position of each item in the whole list. */
  readonly indexes: readonly number[];
}

/** Splits a batch by shard, keeping the order within each. */
function byShard<T>(items: readonly T[], getShard: (item: T) => number): ShardGroup<T>[] {
  const groups = new Map<number, { shard: number; items: T[]; indexes: number[] }>();
  items.forEach((item, index) => {
    const shard = getShard(item);
    let group = groups.get(shard);
    if (group === undefined) {
      group = { shard, items: [], indexes: [] };
      groups.set(shard, group);
    }
    group.items.push(item);
    group.indexes.push(index);
  });
  return [...groups.values()];
}
