import { type AddressInfo, createServer, type Server, type Socket } from "node:net";

/** The relay's behaviour towards its clients. */
export interface RelayManners {
  /** Delay before the answer to a whole message. */
  readonly answerMs: number;
  /**
   * The point where it falls silent: it accepts connections without a greeting, or accepts messages and does not
   * answer.
   */
  readonly silentAt: "nowhere" | "connect" | "message";
  /** Its first line, if not the usual one: `421 4.3.2 Service not available`. It hangs up after a 4yz or 5yz. */
  readonly greeting: string | null;
  /** Its answer to every message; null: accepted. */
  readonly verdict: string | null;
}

export interface Arrival {
  readonly messageId: string;
  readonly recipient: string;
  /** A time on `performance.now()`'s clock. */
  readonly atMs: number;
}

const PROMPT: RelayManners = { answerMs: 0, silentAt: "nowhere", greeting: null, verdict: null };
const MESSAGE_HEAD_CHARS = 8 * 1024;

/**
 * A mail server whose behaviour a test changes while it runs. It listens on every loopback address (127.0.0.1,
 * 127.0.7.3, …), so one instance stands for as many relays as a test has tenants, each with its own behaviour. A
 * recipient `takes-9000-….@…` is answered after 9,000 ms, whatever the behaviour.
 */
export class ScriptedRelay {
  readonly arrivals: Arrival[] = [];
  /** Messages accepted, by Message-ID. */
  readonly taken = new Map<string, number>();
  /** When a message to the recipient was first accepted, on `performance.now()`'s clock. */
  readonly firstTaken = new Map<string, number>();
  /** Messages that the verdict refused. */
  refused = 0;
  /** Messages accepted but not answered yet. */
  unanswered = 0;
  /** Connections accepted so far. */
  connected = 0;
  port = 0;
  private readonly manners = new Map<string, RelayManners>();
  private usual: RelayManners = PROMPT;
  private readonly sockets = new Set<Socket>();
  private server: Server | null = null;

  static async start(manners: Partial<RelayManners> = {}): Promise<ScriptedRelay> {
    const relay = new ScriptedRelay();
    relay.behave(manners);
    await relay.openPort();
    return relay;
  }

  /** The URL at one of its addresses. */
  url(host = "127.0.0.1"): string {
    return `smtp://${host}:${this.port}`;
  }

  /**
   * Sets the behaviour from now on; members not given return to their defaults. Applies to one address, or to all
   * addresses without their own.
   */
  behave(manners: Partial<RelayManners>, host?: string): void {
    const whole = { ...PROMPT, ...manners };
    if (host === undefined) this.usual = whole;
    else this.manners.set(host, whole);
  }

  /** Repeated acceptances of messages, summed. */
  get repeats(): number {
    return this.arrivals.length - this.taken.size;
  }

  async openPort(): Promise<void> {
    const server = createServer((socket) => this.serve(socket));
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(this.port, "0.0.0.0", 1024, resolve);
    });
    // A server that listens on TCP has an address of this form.
    this.port = (server.address() as AddressInfo).port;
    this.server = server;
  }

  /** Resets connections and refuses new ones until `openPort`. */
  async closePort(): Promise<void> {
    const { server } = this;
    this.server = null;
    for (const socket of this.sockets) socket.destroy();
    if (server !== null) await new Promise<void>((resolve) => server.close(() => resolve()));
  }

  async stop(): Promise<void> {
    await this.closePort();
  }

  private serve(socket: Socket): void {
    const host = socket.localAddress?.replace("::ffff:", "") ?? "127.0.0.1";
    this.connected += 1;
    this.sockets.add(socket);
    socket.on("close", () => this.sockets.delete(socket));
    socket.on("error", () => {});
    const manners = () => this.manners.get(host) ?? this.usual;
    if (manners().silentAt === "connect") return;
    const session = new Session(socket, manners, {
      take: (message) => this.take(message),
      refuse: () => (this.refused += 1),
      isUnanswered: (by) => (this.unanswered += by),
    });
    session.start();
  }

  private take({ messageId, recipient }: Omit<Arrival, "atMs">): void {
    const atMs = performance.now();
    this.arrivals.push({ messageId, recipient, atMs });
    this.taken.set(messageId, (this.taken.get(messageId) ?? 0) + 1);
    if (!this.firstTaken.has(recipient)) this.firstTaken.set(recipient, atMs);
  }
}

interface Service {
  take(message: Omit<Arrival, "atMs">): void;
  refuse(): void;
  isUnanswered(by: number): void;
}

/** One SMTP session (RFC 5321) without extensions, so clients wait for each answer. */
class Session {
  private text = "";
  private inMessage = false;
  private recipient = "";

  constructor(
    private readonly socket: Socket,
    private readonly manners: () => RelayManners,
    private readonly service: Service,
  ) {}

  start(): void {
    const { greeting } = this.manners();
    this.socket.on("data", (chunk: Buffer) => {
      this.text += chunk.toString("latin1");
      this.read();
    });
    this.say(greeting ?? "220 relay.test ESMTP");
    if (greeting !== null && !greeting.startsWith("2")) this.socket.end();
  }

  private read(): void {
    while (true) {
      if (this.inMessage) {
        const end = this.text.startsWith(".\r\n") ? 0 : this.text.indexOf("\r\n.\r\n");
        if (end === -1) return;
        const head = this.text.slice(0, MESSAGE_HEAD_CHARS);
        this.text = this.text.slice(end + (end === 0 ? 3 : 5));
        this.inMessage = false;
        void this.finish(head);
        continue;
      }
      const end = this.text.indexOf("\r\n");
      if (end === -1) return;
      const line = this.text.slice(0, end);
      this.text = this.text.slice(end + 2);
      this.command(line);
    }
  }

  private command(line: string): void {
    const verb = line.slice(0, 4).toUpperCase();
    switch (verb) {
      case "EHLO":
        return this.say("250-relay.test\r\n250 AUTH PLAIN LOGIN");
      case "RCPT":
        this.recipient = /<([^>]*)>/.exec(line)?.[1] ?? "";
        return this.say("250 2.1.5 Ok");
      case "DATA":
        this.inMessage = true;
        return this.say("354 End data with <CR><LF>.<CR><LF>");
      case "AUTH":
        return this.say("235 2.7.0 Authentication successful");
      case "QUIT":
        this.say("221 2.0.0 Bye");
        this.socket.end();
        return;
      default:
        return this.say("250 2.0.0 Ok");
    }
  }

  /** A message counts as accepted when its last byte is here: its sender cannot take it back after that. */
  private async finish(head: string): Promise<void> {
    const { verdict, silentAt, answerMs } = this.manners();
    const { recipient } = this;
    if (verdict !== null) {
      this.service.refuse();
      return this.say(verdict);
    }
    const messageId = /^message-id:\s*<([^>]+)>/im.exec(head)?.[1] ?? "none";
    this.service.take({ messageId, recipient });
    if (silentAt === "message") return;
    const waitMs = Number(/^takes-(\d+)-/.exec(recipient)?.[1] ?? answerMs);
    this.service.isUnanswered(1);
    if (waitMs > 0) await Bun.sleep(waitMs);
    this.service.isUnanswered(-1);
    this.say("250 2.0.0 Ok: queued as 4jWcZx67mFzMCQZ");
  }

  private say(line: string): void {
    if (!this.socket.destroyed) this.socket.write(`${line}\r\n`);
  }
}
