/**
 * Caches what was derived from a text; drops the least recently used entries first. Bounded by the length of the texts,
 * because inline HTML makes every text new; a derived value may take a multiple of that.
 */
export class TextCache<T> {
  private readonly entries = new Map<string, T>();
  private chars = 0;

  constructor(
    private readonly charsMax: number,
    private readonly make: (text: string) => T,
  ) {}

  get(text: string): T {
    const found = this.entries.get(text);
    if (found !== undefined) {
      // A Map lists its keys in insertion order: entries are reinserted on use, so the first is the least recently
      // used.
      this.entries.delete(text);
      this.entries.set(text, found);
      return found;
    }
    const made = this.make(text);
    // A single huge text must not displace all other entries.
    if (text.length > this.charsMax / 8) return made;
    this.entries.set(text, made);
    this.chars += text.length + ENTRY_CHARS;
    this.shrink();
    return made;
  }

  private shrink(): void {
    for (const text of this.entries.keys()) {
      if (this.chars <= this.charsMax) return;
      this.entries.delete(text);
      this.chars -= text.length + ENTRY_CHARS;
    }
  }
}

/** The overhead of an entry beside its text. */
const ENTRY_CHARS = 256;
