import { createSocket } from "node:dgram";
import { connect, isIPv6 } from "node:net";
import { type Clock, within } from "../../../domain/clock.ts";
import { DnsFormatError, type DnsReply, decodeReply } from "./dns-message.ts";

/** A name server's address. */
export interface NameServer {
  readonly host: string;
  readonly port: number;
}

export interface Exchange {
  readonly server: NameServer;
  /** The question as sent; its first two bytes are its id. */
  readonly question: Buffer;
  /** The question's parts that the reply must match. */
  readonly asked: { readonly id: number; readonly name: string; readonly type: number };
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/**
 * Sends one question to one server over UDP, and again over TCP if the answer is truncated (RFC 7766). Rejects within
 * twice `timeoutMs` with an error that says why there is no answer.
 */
export async function exchange(of: Exchange): Promise<DnsReply> {
  const reply = await withDeadline(of, overUdp);
  return reply.isTruncated ? withDeadline(of, overTcp) : reply;
}

type Attempt = (of: Exchange, signal: AbortSignal) => Promise<DnsReply>;

function withDeadline(of: Exchange, attempt: Attempt): Promise<DnsReply> {
  const late = () => {
    throw new Error("there was no answer in time");
  };
  return within({ clock: of.clock, ms: of.timeoutMs, late }, (over) => attempt(of, over));
}

/** Opens a new socket per question, so a forger has to guess the port as well as the id (RFC 5452, 9). */
function overUdp({ server, question, asked }: Exchange, signal: AbortSignal): Promise<DnsReply> {
  return new Promise((resolve, reject) => {
    const socket = createSocket(isIPv6(server.host) ? "udp6" : "udp4");
    signal.addEventListener("abort", () => socket.close(), { once: true });
    socket.on("error", reject);
    socket.on("message", (bytes, { port }) => {
      const reply = port === server.port ? readReply(bytes) : null;
      // A reply to another question may be forged; the real one can still arrive.
      if (reply !== null && answers(reply, asked)) resolve(reply);
    });
    socket.connect(server.port, server.host, () => socket.send(question));
  });
}

function overTcp({ server, question, asked }: Exchange, signal: AbortSignal): Promise<DnsReply> {
  return new Promise((resolve, reject) => {
    const socket = connect(server.port, server.host);
    signal.addEventListener("abort", () => socket.destroy(), { once: true });
    let received = Buffer.alloc(0);
    socket.on("error", reject);
    socket.on("close", () => reject(new Error("the server closed the connection")));
    socket.on("connect", () => {
      const length = Buffer.alloc(2);
      length.writeUInt16BE(question.length);
      socket.write(Buffer.concat([length, question]));
    });
    socket.on("data", (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      if (received.length < 2 || received.length < 2 + received.readUInt16BE(0)) return;
      const reply = readReply(received.subarray(2, 2 + received.readUInt16BE(0)));
      if (reply !== null && answers(reply, asked)) resolve(reply);
      else reject(new Error("the answer makes no sense"));
    });
  });
}

function readReply(bytes: Buffer): DnsReply | null {
  try {
    return decodeReply(bytes);
  } catch (error) {
    if (error instanceof DnsFormatError) return null;
    throw error;
  }
}

function answers({ id, question }: DnsReply, asked: Exchange["asked"]): boolean {
  return id === asked.id && question.name === asked.name && question.type === asked.type;
}
