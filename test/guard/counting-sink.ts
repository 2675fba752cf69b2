import type { AddressInfo } from "node:net";
import { SMTPServer } from "smtp-server";

/** A mail server with what every MTA offers (PIPELINING, 8BITMIME, SMTPUTF8). It keeps nothing but two numbers. */
export interface CountingSink {
  readonly url: string;
  readonly port: number;
  readonly messages: number;
  /** Of all messages, without the commands around them. */
  readonly bytes: number;
  stop(): Promise<void>;
}

export async function startCountingSink(): Promise<CountingSink> {
  let messages = 0;
  let bytes = 0;
  const server = new SMTPServer({
    disabledCommands: ["AUTH", "STARTTLS"],
    disableReverseLookup: true,
    logger: false,
    closeTimeout: 100,
    onData(stream, _session, callback) {
      stream.on("data", (chunk: Buffer) => (bytes += chunk.length));
      stream.on("end", () => {
        messages += 1;
        callback();
      });
    },
  });
  server.on("error", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // A server that listens on TCP has an address of this form.
  const { port } = server.server.address() as AddressInfo;
  return {
    url: `smtp://127.0.0.1:${port}`,
    port,
    get messages() {
      return messages;
    },
    get bytes() {
      return bytes;
    },
    stop: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}
