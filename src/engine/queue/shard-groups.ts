export interface ShardGroup<T> {
  readonly shard: number;
  readonly items: readonly T[];
  /** The position of each item in the whole list. */
  readonly indexes: readonly number[];
}

/** Splits a batch by shard, keeping the order within each. */
export function byShard<T>(items: readonly T[], shardOf: (item: T) => number): ShardGroup<T>[] {
  const groups = new Map<number, { shard: number; items: T[]; indexes: number[] }>();
  items.forEach((item, index) => {
    const shard = shardOf(item);
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
