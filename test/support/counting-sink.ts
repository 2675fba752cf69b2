import { startSmtpServer, type TestSmtpServer } from "./smtp-server.ts";

/** A mail server that accepts all mail and stores only two numbers. */
export interface CountingSink extends TestSmtpServer {
  messages(): number;
  /** The bytes of all messages, without the SMTP commands. */
  bytes(): number;
}

export async function startCountingSink(): Promise<CountingSink> {
  let messages = 0;
  let bytes = 0;
  const server = await startSmtpServer({
    onData(stream, _session, callback) {
      stream.on("data", (chunk: Buffer) => (bytes += chunk.length));
      stream.on("end", () => {
        messages += 1;
        callback();
      });
    },
  });
  return { ...server, messages: () => messages, bytes: () => bytes };
}
