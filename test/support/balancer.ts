/** How often a balancer asks each process whether it is ready. */
const LOOK_MS = 150;

export interface Backend {
  readonly url: string;
  /** Taken out by hand, whatever it says. */
  isOut: boolean;
  /** Requests that it has not answered yet. */
  underWay: number;
}

/**
 * A load balancer, as a client of several processes: sends to those whose `/ready` says so, and moves on to another
 * one when a connection is refused, which is all that may be tried twice without looking into the request.
 */
export class Balancer {
  private readonly backends: readonly Backend[];
  private readonly ready = new Set<Backend>();
  private readonly looking: readonly Promise<void>[];
  private isStopped = false;
  private turn = 0;

  constructor(urls: readonly string[]) {
    this.backends = urls.map((url) => ({ url, isOut: false, underWay: 0 }));
    this.looking = this.backends.map((backend) => this.watch(backend));
  }

  backend(url: string): Backend {
    const found = this.backends.find((one) => one.url === url);
    if (found === undefined) throw new Error(`there is no process at ${url}`);
    return found;
  }

  isReady(url: string): boolean {
    return this.ready.has(this.backend(url));
  }

  /** Rejects when no process takes it, and whenever one has taken it and does not answer. */
  async send(path: string, init: RequestInit): Promise<Response> {
    for (let tries = 0; tries < 2 * this.backends.length; tries += 1) {
      const choices = [...this.ready].filter((backend) => !backend.isOut);
      const backend = choices[this.turn++ % Math.max(choices.length, 1)];
      if (backend === undefined) {
        await Bun.sleep(LOOK_MS);
        continue;
      }
      backend.underWay += 1;
      try {
        return await fetch(`${backend.url}${path}`, init);
      } catch (error) {
        if (!isRefused(error)) throw error;
        this.ready.delete(backend);
      } finally {
        backend.underWay -= 1;
      }
    }
    throw new Error("no process is ready");
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    await Promise.all(this.looking);
  }

  private async watch(backend: Backend): Promise<void> {
    while (!this.isStopped) {
      const signal = AbortSignal.timeout(2_000);
      const isReady = await fetch(`${backend.url}/ready`, { signal }).then(
        ({ ok }) => ok,
        () => false,
      );
      if (isReady) this.ready.add(backend);
      else this.ready.delete(backend);
      await Bun.sleep(LOOK_MS);
    }
  }
}

function isRefused(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ConnectionRefused";
}
