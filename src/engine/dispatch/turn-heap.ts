/** An entry's position in its heap. */
export interface HeapEntry {
  place: number;
}

/** A binary heap whose entries store their positions, so that any of them can be removed as fast as the first. */
export class TurnHeap<E extends HeapEntry> {
  private readonly entries: E[] = [];

  constructor(private readonly isBefore: (one: E, other: E) => boolean) {}

  get first(): E | undefined {
    return this.entries[0];
  }

  /** In no order. */
  get all(): readonly E[] {
    return this.entries;
  }

  add(entry: E): void {
    this.entries.push(entry);
    this.rise(entry, this.entries.length - 1);
  }

  remove(entry: E): void {
    const last = this.entries.pop();
    if (last === undefined || last === entry) return;
    this.rise(last, entry.place);
    this.sink(last, last.place);
  }

  private rise(entry: E, from: number): void {
    let place = from;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = this.entries[above];
      if (parent === undefined || !this.isBefore(entry, parent)) break;
      this.put(parent, place);
      place = above;
    }
    this.put(entry, place);
  }

  private sink(entry: E, from: number): void {
    let place = from;
    for (;;) {
      const [left, right] = [this.entries[2 * place + 1], this.entries[2 * place + 2]];
      const child = left !== undefined && right !== undefined && this.isBefore(right, left) ? right : left;
      if (child === undefined || !this.isBefore(child, entry)) break;
      const below = child.place;
      this.put(child, place);
      place = below;
    }
    this.put(entry, place);
  }

  private put(entry: E, place: number): void {
    this.entries[place] = entry;
    entry.place = place;
  }
}
