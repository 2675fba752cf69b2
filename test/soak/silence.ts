/** Callers that a stand-in leaves without an answer, until it ends. */
export class Silence {
  private readonly waiting = new Set<() => void>();

  /** Resolves when the silence ends. */
  wait(): Promise<void> {
    return new Promise((resolve) => this.waiting.add(resolve));
  }

  end(): void {
    for (const release of this.waiting) release();
    this.waiting.clear();
  }
}
