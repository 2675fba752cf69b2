import { createSecureServer, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import type { Identity } from "../../../src/runtime/certificates/certificate-authority.ts";

/** Answers one request, or leaves it unanswered. `nth`: its number among all requests, from 0. */
export type PushScript = (stream: ServerHttp2Stream, token: string, nth: number) => void;

/** A push service that follows the test's script, on a real socket. */
export class PushServer {
  readonly tokens: string[] = [];
  sessions = 0;
  private readonly open = new Set<ServerHttp2Session>();
  private readonly server;

  constructor(
    { certificatePem: cert, privateKeyPem: key }: Identity,
    private script: PushScript,
  ) {
    this.server = createSecureServer({ cert, key, requestCert: true, rejectUnauthorized: false });
    this.server.on("session", (session) => {
      this.sessions += 1;
      this.open.add(session);
      session.once("close", () => this.open.delete(session));
      session.on("error", () => undefined);
      session.on("stream", (stream, headers) => {
        stream.on("error", () => undefined);
        stream.resume();
        const token = String(headers[":path"]).split("/").at(-1) ?? "";
        this.script(stream, token, this.tokens.push(token) - 1);
      });
    });
    this.server.on("tlsClientError", () => undefined);
  }

  async listen(port = 0): Promise<string> {
    await new Promise<void>((resolve) => this.server.listen(port, "127.0.0.1", resolve));
    return `https://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  does(script: PushScript): void {
    this.script = script;
  }

  stop(): void {
    this.server.close();
    for (const session of this.open) session.destroy();
  }
}

export const takes: PushScript = (stream) => {
  stream.respond({ ":status": 200 });
  stream.end();
};

export function answers(status: number, reason: string, timestamp?: number): PushScript {
  return (stream) => {
    stream.respond({ ":status": status });
    stream.end(JSON.stringify({ reason, timestamp }));
  };
}
