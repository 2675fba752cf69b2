/** A span as a collector gets it, with its attributes as an object. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status?: { readonly code: number; readonly message: string };
  readonly attributes: Readonly<Record<string, unknown>>;
  /** Attributes of its resource. */
  readonly resource: Readonly<Record<string, unknown>>;
}

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

interface Body {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly {
      readonly spans: readonly (ReceivedSpan & { attributes: readonly Attribute[] })[];
    }[];
  }[];
}

/** An OpenTelemetry collector that takes OTLP over HTTP in JSON. */
export class Collector {
  readonly spans: ReceivedSpan[] = [];
  readonly headers: Headers[] = [];
  requests = 0;
  /** Decides about a request; spans answered with 200 are kept. Default: 200. */
  answer: () => number | Promise<number> = () => 200;
  private readonly server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: (request) => this.take(request) });

  get url(): string {
    return `http://127.0.0.1:${this.server.port}`;
  }

  stop(): Promise<void> {
    return this.server.stop(true);
  }

  private async take(request: Request): Promise<Response> {
    this.requests += 1;
    this.headers.push(request.headers);
    const isTraces = request.method === "POST" && new URL(request.url).pathname === "/v1/traces";
    if (!isTraces || request.headers.get("content-type") !== "application/json")
      return new Response("", { status: 404 });
    // The exporter's output is under test, so its form is not checked here.
    const body = (await request.json()) as Body;
    const status = await this.answer();
    if (status === 200) this.spans.push(...listSpans(body));
    return Response.json({}, { status });
  }
}

function listSpans({ resourceSpans }: Body): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        ...span,
        attributes: toObject(span.attributes),
        resource: toObject(resource.attributes),
      })),
    ),
  );
}

function toObject(attributes: readonly Attribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
