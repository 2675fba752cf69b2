/**
 * Remembers what was made of a text, least recently used ones dropped first. It is bounded by the length of the texts,
 * because inline HTML makes every text a new one; what is made of one may take a multiple of it.
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
      // A Map lists its keys in the order of insertion: put back at the end, the first one is the least recently used.
      this.entries.delete(text);
      this.entries.set(text, found);
      return found;
    }
    const made = this.make(text);
    // One giant must not drive out everything else.
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

/** What an entry costs beside its text. */
const ENTRY_CHARS = 256;
