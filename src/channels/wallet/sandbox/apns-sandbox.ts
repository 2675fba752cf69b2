import {
  createSecureServer,
  type Http2SecureServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import { TLSSocket } from "node:tls";
import { FirstTries, MessageRing } from "../../../domain/channels/sandbox.ts";
import type { Clock } from "../../../domain/clock.ts";
import type { SandboxInbox } from "../../../domain/jobs/report.ts";
import type { Telemetry } from "../../../domain/telemetry.ts";
import type { Identity } from "../../../runtime/certificates/certificate-authority.ts";
import { listenOnLoopback } from "./listen-on-loopback.ts";

/** An accepted push. */
export interface ReceivedPush {
  /** Pass type. */
  readonly topic: string;
  readonly pushToken: string;
}

export interface ApnsSandboxOptions {
  /** The certificate and key that it presents to clients. */
  readonly server: Identity;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Called when a push would reach its device. Must not throw. */
  onPush?(push: ReceivedPush): void;
}

export interface ApnsSandbox {
  /** `https://127.0.0.1:<port>` */
  readonly url: string;
  readonly inbox: SandboxInbox;
  /** Sends GOAWAY to every client (RFC 9113, 6.8), as Apple's servers do from time to time. */
  goAway(): void;
  /** Drops every connection. Safe to repeat. */
  stop(): Promise<void>;
}

interface SandboxRefusal {
  readonly status: number;
  readonly reason: string;
  /** How often the push gets this response before it is accepted; default: every time. */
  readonly times?: number;
}

/** Refusals by the last four digits of a push's token; all other pushes are accepted. */
const REFUSALS: Readonly<Record<string, SandboxRefusal>> = {
  "0400": { status: 400, reason: "BadDeviceToken" },
  "0403": { status: 403, reason: "BadCertificate" },
  "0410": { status: 410, reason: "Unregistered" },
  "0429": { status: 429, reason: "TooManyRequests", times: 1 },
  "0503": { status: 503, reason: "ServiceUnavailable", times: 2 },
};

const PUSHES_MAX = 1_000;
const BYTES_MAX = 4 * 1024 * 1024;
const PAYLOAD_BYTES_MAX = 4_096;
const STREAMS_MAX = 1_000;
/** Tokens whose refusals are counted at once; the oldest is forgotten first. */
const REFUSED_MAX = 10_000;

/**
 * Starts a push service on a free loopback port: HTTP/2 over TLS, for clients with a Pass Type ID certificate of any
 * issuer, and for pushes of that certificate's pass type.
 */
export async function startApnsSandbox(options: ApnsSandboxOptions): Promise<ApnsSandbox> {
  const sandbox = new Sandbox(options);
  const port = await sandbox.listen();
  return {
    url: `https://127.0.0.1:${port}`,
    inbox: sandbox.inbox,
    goAway: () => sandbox.goAway(),
    stop: () => sandbox.stop(),
  };
}

/**
 * The server and its state.
 *
 * Invariants:
 * S1. Only an accepted push is kept and reported to its device.
 * S2. All state is bounded.
 */
class Sandbox {
  readonly inbox = new MessageRing(PUSHES_MAX, BYTES_MAX);
  private readonly server: Http2SecureServer;
  private readonly sessions = new Set<ServerHttp2Session>();
  private readonly refusals = new FirstTries(REFUSED_MAX);
  private stopped: Promise<void> | null = null;

  constructor(private readonly options: ApnsSandboxOptions) {
    this.server = createSecureServer({
      cert: options.server.certificatePem,
      key: options.server.privateKeyPem,
      requestCert: true,
      rejectUnauthorized: false,
      settings: { maxConcurrentStreams: STREAMS_MAX },
    });
    this.server.on("session", (session) => this.welcome(session));
    this.server.on("tlsClientError", (error) => this.note("a sandbox push connection was refused", error));
  }

  listen(): Promise<number> {
    return listenOnLoopback(this.server);
  }

  goAway(): void {
    for (const session of this.sessions) session.close();
  }

  stop(): Promise<void> {
    this.stopped ??= new Promise((resolve) => {
      this.server.close(() => resolve());
      for (const session of this.sessions) session.destroy();
    });
    return this.stopped;
  }

  private welcome(session: ServerHttp2Session): void {
    session.on("error", (error) => this.note("a sandbox push connection failed", error));
    const passType = readPassType(session);
    if (passType === null) return session.destroy();
    this.sessions.add(session);
    session.once("close", () => this.sessions.delete(session));
    session.on("stream", (stream, headers) => this.receive(stream, headers, passType));
  }

  private receive(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, passType: string): void {
    const chunks: Buffer[] = [];
    let bytes = 0;
    stream.on("error", (error) => this.note("a sandbox push broke off", error));
    stream.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= PAYLOAD_BYTES_MAX) chunks.push(chunk);
    });
    stream.on("end", () => {
      const refusal = bytes > PAYLOAD_BYTES_MAX ? TOO_LARGE : this.findRefusal(headers, passType);
      if (refusal === null) this.take(headers, Buffer.concat(chunks));
      if (stream.destroyed) return;
      stream.respond({ ":status": refusal?.status ?? 200, "apns-id": crypto.randomUUID().toUpperCase() });
      stream.end(refusal === null ? undefined : JSON.stringify(buildBody(refusal, this.options.clock.nowMs())));
    });
  }

  private findRefusal(headers: IncomingHttpHeaders, passType: string): SandboxRefusal | null {
    if (headers[":method"] !== "POST") return { status: 405, reason: "MethodNotAllowed" };
    const token = tokenIn(headers);
    if (token === null) return { status: 404, reason: "BadPath" };
    if (headers["apns-topic"] !== passType) return { status: 400, reason: "TopicDisallowed" };
    const refusal = REFUSALS[token.slice(-4)];
    return refusal === undefined || (refusal.times !== undefined && !this.refusals.take(token, refusal.times))
      ? null
      : refusal;
  }

  private take(headers: IncomingHttpHeaders, payload: Buffer): void {
    const topic = String(headers["apns-topic"]);
    const pushToken = tokenIn(headers) ?? "";
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${String(value)}`);
    const source = `${lines.join("\n")}\n\n${payload.toString("utf8")}`;
    const received_at = new Date(this.options.clock.nowMs()).toISOString();
    const message = { channel: "wallet", received_at, from: topic, to: pushToken, subject: "push", source } as const;
    this.inbox.add({ to: pushToken, bytes: source.length, show: () => message });
    this.options.onPush?.({ topic, pushToken });
  }

  private note(message: string, error: Error): void {
    this.options.telemetry.log("debug", message, { error: error.message });
  }
}

const TOO_LARGE: SandboxRefusal = { status: 413, reason: "PayloadTooLarge" };

/** Reads the `UID` of the client's certificate; null if it presented none, or another kind. */
function readPassType({ socket }: ServerHttp2Session): string | null {
  if (!(socket instanceof TLSSocket)) return null;
  const subject: unknown = socket.getPeerCertificate().subject;
  const userId: unknown = typeof subject === "object" && subject !== null ? Reflect.get(subject, "UID") : null;
  return typeof userId === "string" ? userId : null;
}

function tokenIn(headers: IncomingHttpHeaders): string | null {
  return /^\/3\/device\/([0-9A-Za-z]{1,200})$/.exec(headers[":path"] ?? "")?.[1] ?? null;
}

/** Builds Apple's response; a 410 has the time at which the device ceased to exist. */
function buildBody({ status, reason }: SandboxRefusal, nowMs: number): object {
  return status === 410 ? { reason, timestamp: nowMs } : { reason };
}
