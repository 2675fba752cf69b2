interface Memory<K, V> {
  readonly key: K;
  readonly value: V;
  readonly max: number;
}

/** Puts the value at the end of the map, and removes the oldest entry if there are more than `max`. */
export function remember<K, V>(map: Map<K, V>, { key, value, max }: Memory<K, V>): void {
  map.delete(key);
  map.set(key, value);
  for (const oldest of map.keys()) {
    if (map.size <= max) return;
    map.delete(oldest);
  }
}
