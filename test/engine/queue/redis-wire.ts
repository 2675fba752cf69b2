import { connect, createServer, type Server, type Socket } from "node:net";

/**
 * Where a connection breaks: while it sends the text, or when the text's reply arrives. Redis has the text in the
 * second case only.
 */
interface Break {
  readonly text: string;
  readonly at: "request" | "reply";
}

/**
 * A wire to Redis, on which connections fall silent or break at a chosen moment. New ones work unless `isMute` is set.
 */
export class RedisWire {
  private readonly sockets = new Set<Socket>();
  private next: Break | null = null;

  /** Where Redis listens, once it does. */
  redisPort = 0;
  /** Whether new connections forward no bytes. */
  isMute = false;

  private constructor(
    private readonly server: Server,
    readonly port: number,
  ) {}

  static async start(): Promise<RedisWire> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    const wire = new RedisWire(server, address.port);
    server.on("connection", (socket) => wire.join(socket, connect(wire.redisPort, "127.0.0.1")));
    return wire;
  }

  private join(client: Socket, redis: Socket): void {
    for (const socket of [client, redis]) {
      this.sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => this.sockets.delete(socket));
    }
    if (this.isMute) {
      client.resume();
      return;
    }
    client.on("close", () => redis.destroy());
    redis.on("close", () => client.destroy());
    let breaks = false;
    client.on("data", (data) => {
      if (this.next === null || !data.toString().toLowerCase().includes(this.next.text)) {
        redis.write(data);
        return;
      }
      const { at } = this.next;
      this.next = null;
      if (at === "request") {
        client.destroy();
        return;
      }
      breaks = true;
      redis.write(data);
    });
    redis.on("data", (data) => {
      if (breaks) client.destroy();
      else client.write(data);
    });
  }

  /** Existing connections silently stop forwarding bytes in both directions. */
  silenceExisting(): void {
    for (const socket of this.sockets) {
      socket.removeAllListeners("data");
      socket.on("data", () => {});
    }
  }

  breakExisting(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  /** The next connection that sends this text (in lower case) breaks, once. */
  breakNext(text: string, at: Break["at"]): void {
    this.next = { text, at };
  }

  get hasBroken(): boolean {
    return this.next === null;
  }

  stop(): void {
    this.server.close();
    this.breakExisting();
  }
}
