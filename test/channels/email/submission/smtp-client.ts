import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

/** A client that sends any text, however wrong, and shows the replies. */
export class SmtpClient {
  isOpen = true;
  /** "": the connection ended without one. */
  greeting = "";
  private heard = "";
  private listening: (() => void) | null = null;

  private constructor(private socket: Socket) {
    this.listen();
  }

  /** Connects, and waits for the greeting. `closes`: closes its side once the server has closed the other. */
  static async dial(port: number, { closes = true } = {}): Promise<SmtpClient> {
    const client = new SmtpClient(connect({ port, host: "127.0.0.1", allowHalfOpen: !closes }));
    client.greeting = await client.reply();
    return client;
  }

  /** Connects and stays silent. */
  static silent(port: number): SmtpClient {
    return new SmtpClient(connect(port, "127.0.0.1"));
  }

  /** Sends the lines at once. Returns the last line of the next reply, or "" if the connection ends instead. */
  say(...lines: string[]): Promise<string> {
    this.write(lines.map((line) => `${line}\r\n`).join(""));
    return this.reply();
  }

  write(bytes: string | Uint8Array): void {
    this.socket.write(bytes);
  }

  /** The last line of the next reply, or "" if the connection ends instead. */
  async reply(): Promise<string> {
    while (true) {
      const found = /^(?:\d{3}-.*\r\n)*(\d{3} .*)\r\n/.exec(this.heard);
      if (found !== null) {
        this.heard = this.heard.slice(found[0].length);
        return found[1] ?? "";
      }
      if (!this.isOpen) return "";
      await new Promise<void>((resolve) => {
        this.listening = resolve;
      });
    }
  }

  /** Resolves once the other side has ended the connection. */
  async ended(): Promise<void> {
    while (this.isOpen) {
      await new Promise<void>((resolve) => {
        this.listening = resolve;
      });
    }
  }

  /** EHLO and STARTTLS; sends `injected` in the same packet as STARTTLS. */
  async secure(injected = ""): Promise<void> {
    await this.say("EHLO client.test");
    this.write(`STARTTLS\r\n${injected}`);
    await this.reply();
    this.socket.removeAllListeners("data");
    const raw = this.socket;
    const secured = connectTls({ socket: raw, rejectUnauthorized: false });
    this.socket = secured;
    this.listen();
    await new Promise<void>((resolve, reject) => {
      secured.once("secureConnect", () => resolve());
      secured.once("error", reject);
    });
    await this.say("EHLO client.test");
  }

  /** Returns the reply to the login. */
  async logIn(apiKey: string): Promise<string> {
    await this.secure();
    return this.say(`AUTH PLAIN ${Buffer.from(`\0any\0${apiKey}`).toString("base64")}`);
  }

  /** MAIL, RCPT and DATA; returns the last reply. */
  async begin(...recipients: string[]): Promise<string> {
    await this.say("MAIL FROM:<bounces@shop.test>");
    for (const recipient of recipients) await this.say(`RCPT TO:<${recipient}>`);
    return this.say("DATA");
  }

  close(): void {
    this.socket.destroy();
  }

  private listen(): void {
    this.socket.on("data", (chunk: Uint8Array) => {
      this.heard += Buffer.from(chunk).toString();
      this.wake();
    });
    this.socket.on("error", () => {});
    for (const event of ["end", "close"]) {
      this.socket.on(event, () => {
        this.isOpen = false;
        this.wake();
      });
    }
  }

  private wake(): void {
    const { listening } = this;
    this.listening = null;
    listening?.();
  }
}
