import type { Book } from "./book.ts";
import { Silence } from "./silence.ts";

/** How tenants' receivers answer: as they should, with 503, slowly, or never. */
export type ReceiverMood = "ok" | "broken" | "slow" | "silent";

const SLOW_MS = 2_000;
/** Makes a webhook's retry follow soon after the trouble. */
const RETRY_SECONDS = 2;

/** The receivers of all tenants' event webhooks, at `/<tenant>`. A call that they answer 2xx counts as received. */
export class Receivers {
  mood: ReceiverMood = "ok";
  calls = 0;
  private readonly server: Bun.Server<undefined>;
  private readonly silence = new Silence();

  constructor(private readonly book: Book) {
    this.server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      idleTimeout: 60,
      fetch: (request) => this.answer(request),
      // A caller that is killed breaks off its request.
      error: () => new Response(null, { status: 500 }),
    });
  }

  buildUrl(tenant: string): string {
    return `http://127.0.0.1:${this.server.port}/${tenant}`;
  }

  setMood(mood: ReceiverMood): void {
    this.mood = mood;
    if (mood !== "silent") this.silence.end();
  }

  async stop(): Promise<void> {
    this.setMood("ok");
    await this.server.stop(true);
  }

  private async answer(request: Request): Promise<Response> {
    const tenant = new URL(request.url).pathname.slice(1);
    const text = await request.text();
    this.calls += 1;
    if (this.mood === "broken")
      return new Response(null, { status: 503, headers: { "retry-after": String(RETRY_SECONDS) } });
    if (this.mood === "silent") await this.silence.wait();
    if (this.mood === "slow") await Bun.sleep(SLOW_MS);
    this.book.tookEvents(tenant, parseEventIds(text));
    return new Response(null, { status: 204 });
  }
}

function parseEventIds(text: string): readonly number[] {
  const body: unknown = JSON.parse(text);
  const all: readonly unknown[] = Array.isArray(body) ? body : [body];
  return all.flatMap((one) => {
    const id: unknown = Reflect.get(Object(Reflect.get(Object(one), "data")), "event_id");
    return typeof id === "number" ? [id] : [];
  });
}
