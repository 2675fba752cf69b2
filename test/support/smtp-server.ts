import type { AddressInfo } from "node:net";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";

/** A mail server for tests, without authentication or TLS, and its port. */
export interface TestSmtpServer {
  readonly port: number;
  readonly url: string;
  stop(): Promise<void>;
}

/** Offers the extensions of every MTA (PIPELINING, 8BITMIME, SMTPUTF8); `options` define how it handles messages. */
export async function startSmtpServer(options: SMTPServerOptions): Promise<TestSmtpServer> {
  const server = new SMTPServer({
    disabledCommands: ["AUTH", "STARTTLS"],
    disableReverseLookup: true,
    maxClients: 1000,
    logger: false,
    closeTimeout: 100,
    ...options,
  });
  // Many of these tests kill a client in the middle of a message.
  server.on("error", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // A server that listens on TCP has an address of this form.
  const { port } = server.server.address() as AddressInfo;
  return {
    port,
    url: `smtp://127.0.0.1:${port}`,
    stop: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}
