import { type GraphSandbox, startGraphSandbox } from "../../src/channels/whatsapp/sandbox/graph-sandbox.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { FaultProxy } from "../support/fault-proxy.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";
import { SeededRandom } from "../support/seeded-random.ts";
import type { Book } from "./book.ts";
import { Silence } from "./silence.ts";

/**
 * How the provider answers: as it should; 503 to every call; never; that the number sends too fast; it accepts the
 * message but its answer is lost on the way (504).
 */
export type ChatMood = "ok" | "broken" | "silent" | "throttled" | "lost";

/**
 * The number of message `seq` is this plus `seq`; the last four digits 0001 to 0005 have special meanings in the
 * sandbox.
 */
const FIRST_NUMBER = 5_490_000_000_000;
const LAST_DIGITS = 10_000;

export function formatPhone(seq: number): string {
  return String(FIRST_NUMBER + seq);
}

/** Whether the sandbox accepts the number's messages, and reports them as delivered. */
export function isGoodPhone(seq: number): boolean {
  const last = seq % LAST_DIGITS;
  return last < 1 || last > 5;
}

/**
 * The chat provider: the sandbox's, whose callbacks come shuffled, twice, and some before the answer; in front of it a
 * gateway that has moods and notes accepted messages.
 */
export class ChatProvider {
  mood: ChatMood = "ok";
  private readonly silence = new Silence();
  private server!: Bun.Server<undefined>;
  proxy!: FaultProxy;

  private constructor(
    private readonly book: Book,
    private readonly sandbox: GraphSandbox,
  ) {}

  static async start(book: Book, webhookSecret: string): Promise<ChatProvider> {
    const sandbox = startGraphSandbox({
      webhookSecret,
      clock: systemClock,
      random: new SeededRandom(1),
      telemetry: new QuietTelemetry(),
      shuffled: true,
      doubled: true,
      early: true,
    });
    const provider = new ChatProvider(book, sandbox);
    provider.server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      idleTimeout: 90,
      fetch: (request) => provider.answer(request),
      // A caller that is killed breaks off its request.
      error: () => new Response(null, { status: 500 }),
    });
    provider.proxy = await FaultProxy.start({ port: provider.server.port ?? 0 });
    return provider;
  }

  get url(): string {
    return `http://127.0.0.1:${this.proxy.port}`;
  }

  callBack(url: string): void {
    this.sandbox.callBack(url);
  }

  setMood(mood: ChatMood): void {
    this.mood = mood;
    if (mood !== "silent") this.silence.end();
  }

  async stop(): Promise<void> {
    this.setMood("ok");
    await this.proxy.stop();
    await this.server.stop(true);
    await this.sandbox.stop();
  }

  private async answer(request: Request): Promise<Response> {
    const body = await request.text();
    const { method, headers, url } = request;
    if (this.mood === "silent") await this.silence.wait();
    if (this.mood === "broken") return new Response("upstream is away", { status: 503 });
    if (this.mood === "throttled") return Response.json(TOO_FAST, { status: 429 });
    const answer = await fetch(`${this.sandbox.url}${new URL(url).pathname}`, { method, headers, body });
    const text = await answer.text();
    const isLost = this.mood === "lost";
    if (answer.ok) this.note(body, isLost);
    if (isLost) return new Response(null, { status: 504 });
    return new Response(text, { status: answer.status, headers: { "content-type": "application/json" } });
  }

  private note(body: string, isUnanswered: boolean): void {
    const to: unknown = Reflect.get(Object(JSON.parse(body)), "to");
    const seq = Number(to) - FIRST_NUMBER;
    this.book.arrived(seq, null, isUnanswered);
    if (isGoodPhone(seq)) this.book.confirmed.add(seq);
  }
}

const TOO_FAST = {
  error: {
    message: "(#130429) Rate limit hit",
    type: "OAuthException",
    code: 130429,
    error_data: { messaging_product: "whatsapp", details: "Too many messages were sent from this phone number" },
    fbtrace_id: "Soak",
  },
};
