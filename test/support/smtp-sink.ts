import { startSmtpServer, type TestSmtpServer } from "./smtp-server.ts";

/** A mail server that accepts all mail and counts messages per Message-ID. */
export interface SmtpSink extends TestSmtpServer {
  readonly received: ReadonlyMap<string, number>;
}

export async function startSmtpSink(): Promise<SmtpSink> {
  const received = new Map<string, number>();
  const server = await startSmtpServer({
    onData(stream, _session, callback) {
      let head = "";
      stream.on("data", (chunk: Buffer) => {
        if (head.length < 4096) head += chunk.toString("latin1");
      });
      stream.on("end", () => {
        const id = /^message-id: <([^>]+)>/im.exec(head)?.[1] ?? "none";
        received.set(id, (received.get(id) ?? 0) + 1);
        callback();
      });
    },
  });
  return { ...server, received };
}
