interface Memory<K, V> {
  readonly key: K;
  readonly value: V;
  readonly max: number;
  /** Whether the oldest entry may leave before there are more. */
  readonly isOver?: (value: V) => boolean;
}

/** Puts the value at the end of the map, and removes the oldest entries while there are more than `max`. Returns the last one removed. */
export function remember<K, V>(map: Map<K, V>, { key, value, max, isOver }: Memory<K, V>): V | undefined {
  map.delete(key);
  map.set(key, value);
  let removed: V | undefined;
  for (const [oldest, its] of map) {
    if (map.size <= max && isOver?.(its) !== true) break;
    map.delete(oldest);
    removed = its;
  }
  return removed;
}
