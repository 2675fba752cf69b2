import net from "node:net";

export interface RawAnswer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/** One TCP connection, written byte by byte, for requests that HTTP clients refuse to send. */
export class RawConnection {
  private received = "";
  private ended = false;
  private wake: () => void = () => {};

  private constructor(private readonly socket: net.Socket) {
    socket.setEncoding("latin1");
    socket.on("data", (text: string) => this.note(text));
    socket.on("error", () => this.note(""));
    socket.on("close", () => {
      this.ended = true;
      this.note("");
    });
  }

  static open(port: number): Promise<RawConnection> {
    return new Promise((resolve, reject) => {
      const socket = net.connect(port, "127.0.0.1", () => resolve(new RawConnection(socket)));
      socket.once("error", reject);
    });
  }

  /** Resolves when the bytes have left this process, or cannot any more. */
  write(bytes: string | Uint8Array): Promise<void> {
    return new Promise((resolve) => {
      this.socket.write(bytes, () => resolve());
    });
  }

  /** The next answer, whose body must have a Content-Length. Rejects when the connection closes before it is whole. */
  async answer(): Promise<RawAnswer> {
    while (true) {
      const taken = this.take();
      if (taken !== null) return taken;
      if (this.ended) throw new Error(`the connection was closed after ${JSON.stringify(this.received)}`);
      await this.news();
    }
  }

  async closed(): Promise<void> {
    while (!this.ended) await this.news();
  }

  close(): void {
    this.socket.destroy();
  }

  private take(): RawAnswer | null {
    const headEnd = this.received.indexOf("\r\n\r\n");
    if (headEnd === -1) return null;
    const [statusLine = "", ...lines] = this.received.slice(0, headEnd).split("\r\n");
    const headers = new Map(
      lines.map((line): [string, string] => {
        const colon = line.indexOf(":");
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
      }),
    );
    const end = headEnd + 4 + Number(headers.get("content-length") ?? 0);
    if (this.received.length < end) return null;
    const body = this.received.slice(headEnd + 4, end);
    this.received = this.received.slice(end);
    return { status: Number(statusLine.split(" ")[1]), headers, body };
  }

  private note(text: string): void {
    this.received += text;
    this.wake();
  }

  private news(): Promise<void> {
    return new Promise((resolve) => {
      this.wake = resolve;
    });
  }
}
