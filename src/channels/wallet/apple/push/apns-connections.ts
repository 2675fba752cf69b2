import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import { backOffMs } from "../../../../domain/back-off.ts";
import type { Clock } from "../../../../domain/clock.ts";
import type { Random } from "../../../../domain/random.ts";
import { parseJsonObject } from "../../../../domain/texts/json.ts";
import { walletLimits } from "../../limits.ts";
import type { PassSigner } from "../pass-signers.ts";
import type { ApnsAnswer } from "./push-outcome.ts";

export interface ApnsConnectionsOptions {
  /** Address of the push service, without a trailing slash. */
  readonly url: string;
  /** PEM of the only authority that may have issued its certificate; null for any that the system trusts. */
  readonly ca: string | null;
  /** False: accepts any certificate, for a service on this machine. */
  readonly verifies: boolean;
  readonly clock: Clock;
  readonly random: Random;
}

type PushSigner = Pick<PassSigner, "id" | "passTypeId" | "tls">;

/**
 * Connections to Apple's push service: HTTP/2, with the signer's own certificate as the client certificate.
 *
 * Invariants:
 * H1. Each signer has at most one session that accepts requests; a session that got GOAWAY, broke or fell silent
 *     accepts none.
 * H2. Every request ends within `apnsRequestMs`, answered or not, and `post` never rejects.
 * H3. After a session fails to open, requests fail at once until its wait is over.
 * H4. At most `apnsSessionsMax` sessions exist; the least recently used idle one is closed for a new one.
 */
export class ApnsConnections {
  private readonly lines = new Map<string, SignerLine>();
  private closed = false;

  constructor(private readonly options: ApnsConnectionsOptions) {}

  /** Notifies the device that one of its passes changed. */
  async post(signer: PushSigner, pushToken: string): Promise<ApnsAnswer> {
    const line = this.getLine(signer);
    if (line === null) return unanswered("too many certificates are in use");
    line.inFlight += 1;
    try {
      return await this.askAlong(line, { signer, pushToken });
    } finally {
      line.inFlight -= 1;
    }
  }

  /** Ends every session; requests in flight remain unanswered. Safe to call twice. */
  close(): void {
    this.closed = true;
    for (const { session } of this.lines.values()) session?.destroy();
    this.lines.clear();
  }

  /** Sends on the line's session, and on the next one if that session ends: repeating a push is harmless. */
  private async askAlong(line: SignerLine, request: PushRequest): Promise<ApnsAnswer> {
    for (let moves = 0; ; moves += 1) {
      const session = await this.getSession(line, request.signer);
      if (typeof session === "string") return unanswered(session);
      const answer = await this.ask(line, session, request);
      if (answer.kind === "answered" || line.session === session || moves === walletLimits.apnsMovesMax) return answer;
    }
  }

  private getLine({ id }: PushSigner): SignerLine | null {
    const known = this.lines.get(id);
    if (known === undefined && this.lines.size >= walletLimits.apnsSessionsMax && !this.makeRoom()) return null;
    const line = known ?? { session: null, inFlight: 0, heardMs: 0, failures: 0, notBeforeMs: 0, probe: null };
    // Moved to the end: the first key is the least recently used.
    this.lines.delete(id);
    this.lines.set(id, line);
    return line;
  }

  private makeRoom(): boolean {
    for (const [id, { session, inFlight }] of this.lines) {
      if (inFlight > 0) continue;
      session?.destroy();
      this.lines.delete(id);
      return true;
    }
    return false;
  }

  /** Returns a session that accepts requests, or the reason why there is none. */
  private async getSession(line: SignerLine, signer: PushSigner): Promise<ClientHttp2Session | string> {
    const { clock } = this.options;
    if (line.session !== null && clock.monotonicMs() - line.heardMs > walletLimits.apnsIdleMs) {
      // Networks silently drop idle connections. All callers share one PING.
      line.probe ??= this.probe(line, line.session).finally(() => {
        line.probe = null;
      });
      await line.probe;
    }
    if (this.closed) return "the process is stopping";
    if (line.session !== null) return line.session;
    if (clock.monotonicMs() < line.notBeforeMs) return "the push service could not be reached a moment ago";
    return this.open(line, signer);
  }

  private open(line: SignerLine, { tls }: PushSigner): ClientHttp2Session {
    const { url, ca, verifies, clock } = this.options;
    const session = connect(new URL(url).origin, {
      ...tls,
      ...(ca === null ? {} : { ca }),
      rejectUnauthorized: verifies,
    });
    line.session = session;
    line.heardMs = clock.monotonicMs();
    let isNew = true;
    const over = () => {
      if (line.session === session) line.session = null;
      if (isNew) this.postpone(line);
      isNew = false;
    };
    session.once("connect", () => {
      isNew = false;
      line.failures = 0;
    });
    for (const event of ["error", "goaway", "close"]) session.on(event, over);
    return session;
  }

  private postpone(line: SignerLine): void {
    const { clock, random } = this.options;
    line.notBeforeMs = clock.monotonicMs() + backOffMs(walletLimits.apnsReconnect, line.failures, random);
    line.failures += 1;
  }

  /** Sends a PING and ends the session unless the peer answers. */
  private probe(line: SignerLine, session: ClientHttp2Session): Promise<void> {
    const { clock } = this.options;
    return new Promise((resolve) => {
      const end = (isAlive: boolean) => {
        timer.cancel();
        if (isAlive) line.heardMs = clock.monotonicMs();
        else session.destroy();
        if (!isAlive && line.session === session) line.session = null;
        resolve();
      };
      const timer = clock.setTimer(walletLimits.apnsPingMs, () => end(false));
      try {
        if (!session.ping((error) => end(error === null))) end(false);
      } catch {
        // The session has ended meanwhile.
        end(false);
      }
    });
  }

  private ask(line: SignerLine, session: ClientHttp2Session, request: PushRequest): Promise<ApnsAnswer> {
    const { clock, url } = this.options;
    return new Promise((resolve) => {
      let stream: ClientHttp2Stream;
      try {
        stream = session.request(buildHeaders(request, url));
      } catch {
        // The session got GOAWAY at this very moment.
        if (line.session === session) line.session = null;
        return resolve(unanswered("the connection is being closed"));
      }
      const answer = new AnswerReader(stream);
      const timer = clock.setTimer(walletLimits.apnsRequestMs, () => {
        stream.close(constants.NGHTTP2_CANCEL);
        end(unanswered("there was no answer in time"));
        // A PING shows whether only this request hangs.
        if (line.session === session) line.probe ??= this.startProbe(line, session);
      });
      const end = (result: ApnsAnswer) => {
        timer.cancel();
        if (result.kind === "answered") line.heardMs = clock.monotonicMs();
        resolve(result);
      };
      stream.on("error", () => end(unanswered("the connection broke off")));
      stream.once("close", () => end(answer.read() ?? unanswered("the connection broke off")));
      stream.end("{}");
    });
  }

  private startProbe(line: SignerLine, session: ClientHttp2Session): Promise<void> {
    return this.probe(line, session).finally(() => {
      line.probe = null;
    });
  }
}

/** The state of one signer's connection to the push service. */
interface SignerLine {
  session: ClientHttp2Session | null;
  inFlight: number;
  /** When the peer last responded, on the monotonic clock. */
  heardMs: number;
  /** Consecutive sessions that failed to open. */
  failures: number;
  notBeforeMs: number;
  /** The PING in flight, if any. */
  probe: Promise<void> | null;
}

interface PushRequest {
  readonly signer: PushSigner;
  readonly pushToken: string;
}

function buildHeaders({ signer, pushToken }: PushRequest, url: string): Record<string, string> {
  return {
    ":method": "POST",
    ":path": `${new URL(url).pathname.replace(/\/$/, "")}/3/device/${encodeURIComponent(pushToken)}`,
    "apns-topic": signer.passTypeId,
    "apns-push-type": "background",
    "apns-priority": "5",
    "content-type": "application/json",
  };
}

/** Collects a response as it arrives. */
class AnswerReader {
  private status: number | null = null;
  private body = "";

  constructor(stream: ClientHttp2Stream) {
    stream.setEncoding("utf8");
    stream.once("response", (headers) => {
      this.status = Number(headers[":status"]);
    });
    stream.on("data", (text: string) => {
      if (this.body.length < walletLimits.apnsAnswerCharsMax) this.body += text;
    });
  }

  /** Returns the response; null if the stream ended without one. */
  read(): ApnsAnswer | null {
    return this.status === null ? null : { kind: "answered", status: this.status, ...saidIn(this.body) };
  }
}

function saidIn(body: string): { readonly reason: string | null; readonly goneAtMs: number | null } {
  // Success has no body, and a proxy's error page is not JSON.
  const { reason, timestamp } = parseJsonObject(body) ?? {};
  return {
    reason: typeof reason === "string" ? reason : null,
    goneAtMs: typeof timestamp === "number" ? timestamp : null,
  };
}

function unanswered(why: string): ApnsAnswer {
  return { kind: "unanswered", why };
}
