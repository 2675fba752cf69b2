/** How often a balancer asks each process whether it still accepts requests. */
const LOOK_MS = 150;
const LOOK_TIMEOUT_MS = 2_000;

export interface Backend {
  readonly url: string;
  /** Removed by hand, whatever `/ready` says. */
  isOut: boolean;
  /** Requests that the process has not answered yet. */
  inFlight: number;
}

/**
 * A load balancer from the point of view of a client of several processes: it moves on when `/ready` says that a
 * process is stopping, and when a connection is refused, the only failure that is safe to retry without knowing the
 * request. A process that lacks a part of the service is kept, because the others lack it, too.
 */
export class Balancer {
  private readonly backends: readonly Backend[];
  private readonly taking = new Set<Backend>();
  private readonly looking: readonly Promise<void>[];
  private isStopped = false;
  private turn = 0;

  constructor(urls: readonly string[]) {
    this.backends = urls.map((url) => ({ url, isOut: false, inFlight: 0 }));
    this.looking = this.backends.map((backend) => this.watch(backend));
  }

  backend(url: string): Backend {
    const found = this.backends.find((one) => one.url === url);
    if (found === undefined) throw new Error(`there is no process at ${url}`);
    return found;
  }

  takes(url: string): boolean {
    return this.taking.has(this.backend(url));
  }

  /** Rejects if no process accepts the request, or if one accepts it and does not answer. */
  async send(path: string, init: RequestInit): Promise<Response> {
    for (let tries = 0; tries < 4 * this.backends.length; tries += 1) {
      const choices = [...this.taking].filter((backend) => !backend.isOut);
      const backend = choices[this.turn++ % Math.max(choices.length, 1)];
      if (backend === undefined) {
        await Bun.sleep(LOOK_MS);
        continue;
      }
      backend.inFlight += 1;
      try {
        return await fetch(`${backend.url}${path}`, init);
      } catch (error) {
        if (!isRefused(error)) throw error;
        this.taking.delete(backend);
      } finally {
        backend.inFlight -= 1;
      }
    }
    throw new Error("no process takes requests");
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    await Promise.all(this.looking);
  }

  private async watch(backend: Backend): Promise<void> {
    while (!this.isStopped) {
      const answer = await look(backend.url);
      if (answer === "takes") this.taking.add(backend);
      else if (answer === "stopping") this.taking.delete(backend);
      await Bun.sleep(LOOK_MS);
    }
  }
}

async function look(url: string): Promise<"takes" | "stopping" | "late"> {
  try {
    const response = await fetch(`${url}/ready`, { signal: AbortSignal.timeout(LOOK_TIMEOUT_MS) });
    const { failing } = (await response.json()) as { readonly failing?: readonly string[] };
    return failing?.includes("stopping") ? "stopping" : "takes";
  } catch (error) {
    return isRefused(error) ? "stopping" : "late";
  }
}

function isRefused(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ECONNREFUSED";
}
