import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** A proxy's target. */
export type ProxyTarget = { readonly port: number } | { readonly path: string };

/** Once this many bytes are buffered, the proxy forwards a chunk before it reads more. */
const WAITING_BYTES_MAX = 1024 * 1024;

/**
 * A TCP proxy on loopback that simulates network faults between Waybill and Redis, a mail server or PostgreSQL.
 *
 * - `silenceExisting`: open connections stay open but never carry another byte in either direction. New ones work. This
 *   is how a firewall that lost its state, or a failed-over address, behaves.
 * - `silence`: no connection carries any bytes until `pass`; data written meanwhile arrives then.
 * - `refuse`: connections are reset, and new ones refused, until `pass`.
 */
export class FaultProxy {
  private readonly links = new Set<Link>();
  private server: Server | null = null;
  private gate = openGate();
  private bytesPerSecond = Number.POSITIVE_INFINITY;
  private latencyMs = 0;
  /** When the wire is free for the next byte; all connections share its bandwidth. */
  private wireFreeAtMs = 0;
  port = 0;

  private constructor(private readonly target: ProxyTarget) {}

  static async start(target: ProxyTarget): Promise<FaultProxy> {
    const proxy = new FaultProxy(target);
    await proxy.listen();
    return proxy;
  }

  /** Open connections, including silenced ones. */
  get connections(): number {
    return this.links.size;
  }

  /** Ends silence and refusal. Connections silenced by `silenceExisting` stay dead. */
  async pass(): Promise<void> {
    this.gate.open();
    this.gate = openGate();
    if (this.server === null) await this.listen();
  }

  /** Returns the number of connections that are half-open from now on. */
  silenceExisting(): number {
    for (const link of this.links) link.isSilenced = true;
    return this.links.size;
  }

  silence(): void {
    this.gate.open();
    this.gate = closedGate();
  }

  async silenceFor(ms: number): Promise<void> {
    this.silence();
    await Bun.sleep(ms);
    await this.pass();
  }

  /** For the whole wire, both directions and all connections together; null: unlimited. */
  bandwidth(bytesPerSecond: number | null): void {
    this.bytesPerSecond = bytesPerSecond ?? Number.POSITIVE_INFINITY;
  }

  /** Added to each chunk in each direction. */
  latency(ms: number): void {
    this.latencyMs = ms;
  }

  /** Resets open connections and stops listening. */
  async refuse(): Promise<void> {
    const { server } = this;
    this.server = null;
    this.close();
    if (server !== null) await new Promise<void>((resolve) => server.close(() => resolve()));
  }

  /** Resets open connections. New ones work. */
  close(): void {
    for (const link of this.links) link.destroy();
    this.links.clear();
  }

  async stop(): Promise<void> {
    this.gate.open();
    await this.refuse();
  }

  private async listen(): Promise<void> {
    const server = createServer({ allowHalfOpen: false }, (client) => this.link(client));
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(this.port, "127.0.0.1", resolve);
    });
    // A server that listens on TCP has an address of this form.
    this.port = (server.address() as AddressInfo).port;
    this.server = server;
  }

  private link(client: Socket): void {
    const upstream = "path" in this.target ? connect(this.target.path) : connect(this.target.port, "127.0.0.1");
    const link = new Link(client, upstream);
    this.links.add(link);
    link.start({
      passes: () => this.passes(link),
      onEnd: () => {
        this.links.delete(link);
        link.destroy();
      },
      delay: (bytes) => this.delay(bytes),
    });
  }

  private async passes(link: Link): Promise<boolean> {
    await this.gate.opened;
    return !link.isSilenced;
  }

  /** How long to delay a chunk after reading it. */
  private delay(bytes: number): number {
    const nowMs = performance.now();
    this.wireFreeAtMs = Math.max(nowMs, this.wireFreeAtMs) + (bytes * 1000) / this.bytesPerSecond;
    return this.wireFreeAtMs - nowMs + this.latencyMs;
  }
}

interface Wire {
  /** Resolves once bytes may pass; false: never again. */
  passes(): Promise<boolean>;
  delay(bytes: number): number;
  onEnd(): void;
}

/** One connection and its other half. */
class Link {
  isSilenced = false;

  constructor(
    private readonly client: Socket,
    private readonly upstream: Socket,
  ) {}

  start(wire: Wire): void {
    this.pump(this.client, this.upstream, wire);
    this.pump(this.upstream, this.client, wire);
  }

  destroy(): void {
    this.client.destroy();
    this.upstream.destroy();
  }

  private pump(from: Socket, to: Socket, wire: Wire): void {
    let waiting = 0;
    let chain: Promise<void> = Promise.resolve();
    from.setNoDelay(true);
    from.on("data", (chunk: Buffer) => {
      waiting += chunk.length;
      if (waiting > WAITING_BYTES_MAX) from.pause();
      chain = chain.then(async () => {
        if (!(await wire.passes())) return;
        const delayMs = wire.delay(chunk.length);
        if (delayMs >= 1) await Bun.sleep(delayMs);
        await written(to, chunk);
        waiting -= chunk.length;
        if (waiting <= WAITING_BYTES_MAX) from.resume();
      });
    });
    const end = () => {
      // A silenced connection does not see its other half end either.
      chain = chain.then(async () => {
        if (await wire.passes()) wire.onEnd();
      });
    };
    from.on("end", end);
    from.on("close", end);
    from.on("error", () => {});
  }
}

/** Resolves when the system has taken the chunk, or the socket is gone. */
function written(socket: Socket, chunk: Buffer): Promise<void> {
  if (socket.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => resolve();
    socket.once("close", done);
    socket.write(chunk, () => {
      socket.off("close", done);
      resolve();
    });
  });
}

interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

function closedGate(): Gate {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: resolve };
}

function openGate(): Gate {
  const gate = closedGate();
  gate.open();
  return gate;
}
