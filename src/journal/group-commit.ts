/**
 * Collects what callers ask for while a call to the store is under way, and sends it as one call when that one is back:
 * a lone request goes out at once, a hundred at a time share one script call and one fsync.
 *
 * G1. At most `callsMax` calls are under way. G2. Items go out in the order they came. G3. Each item is answered once.
 */
export class GroupCommit<Item, Answer> {
  private queue: Waiting<Item, Answer>[] = [];
  private calls = 0;

  constructor(
    private readonly options: {
      readonly callsMax: number;
      readonly itemsMax: number;
      readonly bytesMax: number;
      bytesOf(item: Item): number;
      /** Answers in the order of the items. */
      send(items: readonly Item[]): Promise<readonly Answer[]>;
    },
  ) {}

  submit(item: Item): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.queue.push({ item, resolve, reject });
      if (this.calls < this.options.callsMax) void this.run();
    });
  }

  private async run(): Promise<void> {
    this.calls += 1;
    while (this.queue.length > 0) {
      const batch = this.take();
      try {
        const answers = await this.options.send(batch.map((waiting) => waiting.item));
        batch.forEach((waiting, i) => {
          const answer = answers[i];
          if (answer === undefined) waiting.reject(new Error("the store answered fewer items than it was asked"));
          else waiting.resolve(answer);
        });
      } catch (error) {
        for (const waiting of batch) waiting.reject(error);
      }
    }
    this.calls -= 1;
  }

  private take(): Waiting<Item, Answer>[] {
    let count = 0;
    let bytes = 0;
    for (const waiting of this.queue) {
      bytes += this.options.bytesOf(waiting.item);
      if (count > 0 && (count === this.options.itemsMax || bytes > this.options.bytesMax)) break;
      count += 1;
    }
    return this.queue.splice(0, count);
  }
}

interface Waiting<Item, Answer> {
  readonly item: Item;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}
