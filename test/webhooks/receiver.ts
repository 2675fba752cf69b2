import { Webhook } from "standardwebhooks";

/** A call that a receiver got. */
export interface ReceivedCall {
  readonly id: string;
  readonly text: string;
  readonly headers: Readonly<Record<string, string>>;
}

interface ReceivedEvent {
  readonly type: string;
  readonly timestamp: string;
  readonly data: {
    readonly event_id: number;
    readonly job_id: string;
    /** The fields of an incoming text. */
    readonly message_id?: string;
    readonly text?: string;
  };
}

/** A tenant's end of a webhook: an HTTP server that answers as the test says. */
export class Receiver {
  readonly calls: ReceivedCall[] = [];
  /** Calls in flight now, and the most at one time. */
  inFlight = 0;
  mostInFlight = 0;
  reply: (call: ReceivedCall) => Response | Promise<Response> = () => new Response(null, { status: 204 });
  private readonly server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 60,
    fetch: async (request) => {
      const headers = Object.fromEntries(request.headers);
      const call = { id: headers["webhook-id"] ?? "", text: await request.text(), headers };
      this.calls.push(call);
      this.inFlight += 1;
      this.mostInFlight = Math.max(this.mostInFlight, this.inFlight);
      try {
        return await this.reply(call);
      } finally {
        this.inFlight -= 1;
      }
    },
  });

  get url(): string {
    return `http://127.0.0.1:${this.server.port}/hook`;
  }

  /** The ids of the events, in the order of their arrival, including refused ones. */
  get eventIds(): readonly number[] {
    return this.calls.flatMap(eventsIn).map(({ data }) => data.event_id);
  }

  /** The incoming texts, in the order of their arrival. */
  get texts(): readonly string[] {
    return this.calls.flatMap(eventsIn).flatMap(({ data }) => data.text ?? []);
  }

  stop(): Promise<void> {
    return this.server.stop(true);
  }
}

export function eventsIn({ text }: ReceivedCall): readonly ReceivedEvent[] {
  const body: unknown = JSON.parse(text);
  // The tests check the type.
  return (Array.isArray(body) ? body : [body]) as readonly ReceivedEvent[];
}

/** Whether the field's own library accepts the signature. */
export function isSignedWith(secret: string, { text, headers }: ReceivedCall): boolean {
  try {
    new Webhook(secret).verify(text, { ...headers });
    return true;
  } catch {
    return false;
  }
}
