import { createSocket } from "node:dgram";
import { createServer, type Socket } from "node:net";

/** A record of the zone. A TXT value longer than 255 bytes becomes several strings, as in any zone. */
export type ZoneRecord =
  | { readonly type: "TXT"; readonly value: string }
  | { readonly type: "MX"; readonly value: string; readonly priority: number }
  | { readonly type: "A"; readonly value: string }
  | { readonly type: "CNAME"; readonly value: string };

/**
 * The server's misbehaviour in place of an answer. `forged`: sends a wrong answer with a wrong id before the real one.
 */
export type Misbehaviour = "servfail" | "refused" | "silent" | "truncated" | "garbage" | "forged";

const PORT_TRIES = 10;

/** A name server on loopback, over UDP and TCP, whose zone a test edits while it runs. */
export class DnsServer {
  /** By name, in lower case. All other names do not exist. */
  readonly zone = new Map<string, readonly ZoneRecord[]>();
  readonly misbehaviours = new Map<string, Misbehaviour>();
  /** The requested names, in lower case, over both protocols. */
  readonly asked: string[] = [];
  /** Whether it follows aliases, as a recursive server does. */
  followsAliases = true;
  private readonly udp = createSocket("udp4");
  private readonly tcp = createServer((socket) => this.serveTcp(socket));
  private readonly sockets = new Set<Socket>();
  port = 0;

  /** `place`: the address that it listens at; default: a free port. */
  static async start(place = { host: "127.0.0.1", port: 0 }): Promise<DnsServer> {
    for (let tries = 1; ; tries += 1) {
      const server = new DnsServer();
      try {
        await server.listen(place);
        return server;
      } catch (error) {
        // The system's free port of UDP may be taken in TCP.
        if (place.port !== 0 || tries === PORT_TRIES) throw error;
        await server.stop();
      }
    }
  }

  private async listen({ host, port }: { readonly host: string; readonly port: number }): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.udp.once("error", reject);
      this.udp.bind(port, host, resolve);
    });
    this.port = this.udp.address().port;
    await new Promise<void>((resolve, reject) => {
      this.tcp.once("error", reject);
      this.tcp.listen(this.port, host, resolve);
    });
    this.udp.on("message", (query, { port: from, address }) => {
      const send = (bytes: Buffer) => this.udp.send(bytes, from, address);
      const { name } = readQuestion(query);
      if (this.misbehaviours.get(name) === "forged") send(this.forgery(query));
      const reply = this.reply(query, "udp");
      if (reply !== null) send(reply);
    });
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** Publishes records as the API lists them. */
  publish(records: readonly { type: "MX" | "TXT"; name: string; value: string; priority?: number }[]): void {
    for (const { type, name, value, priority = 0 } of records) {
      const record = type === "MX" ? ({ type, value, priority } as const) : ({ type, value } as const);
      const key = name.toLowerCase();
      this.zone.set(key, [...(this.zone.get(key) ?? []), record]);
    }
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise<void>((resolve) => this.udp.close(() => resolve()));
    await new Promise<void>((resolve) => this.tcp.close(() => resolve()));
  }

  private serveTcp(socket: Socket): void {
    this.sockets.add(socket);
    socket.on("close", () => this.sockets.delete(socket));
    socket.on("error", () => {});
    // A query is far smaller than a packet, so it arrives in one piece.
    socket.on("data", (data: Buffer) => {
      const reply = this.reply(data.subarray(2), "tcp");
      if (reply !== null) socket.end(Buffer.concat([uint16(reply.length), reply]));
    });
  }

  private reply(query: Buffer, over: "udp" | "tcp"): Buffer | null {
    const question = readQuestion(query);
    this.asked.push(question.name);
    const misbehaviour = this.misbehaviours.get(question.name);
    if (misbehaviour === "silent") return null;
    if (misbehaviour === "garbage")
      return Buffer.concat([query.subarray(0, 2), Buffer.from("84000001ffff0000c00cc00c", "hex")]);
    if (misbehaviour === "servfail") return buildReply(query, question, { rcode: 2, answers: [] });
    if (misbehaviour === "refused") return buildReply(query, question, { rcode: 5, answers: [] });
    const answers = this.answersTo(question);
    const rcode = this.zone.has(question.name) ? 0 : 3;
    const truncated = over === "udp" && misbehaviour === "truncated";
    return buildReply(query, question, { rcode, answers: truncated ? [] : answers, truncated });
  }

  private answersTo({ name, type }: Question): Buffer[] {
    const records = this.zone.get(name) ?? [];
    return records.flatMap((record) => {
      if (record.type === "CNAME") {
        const alias = resourceRecord(name, 5, encodedName(record.value));
        const target = { name: record.value.toLowerCase(), type };
        return [alias, ...(this.followsAliases ? this.answersTo(target) : [])];
      }
      if (record.type === "TXT" && type === 16) return [resourceRecord(name, 16, strings(record.value))];
      if (record.type === "MX" && type === 15) {
        return [resourceRecord(name, 15, Buffer.concat([uint16(record.priority), encodedName(record.value)]))];
      }
      if (record.type === "A" && type === 1) {
        return [resourceRecord(name, 1, Buffer.from(record.value.split(".").map(Number)))];
      }
      return [];
    });
  }

  private forgery(query: Buffer): Buffer {
    const question = readQuestion(query);
    const answers = [resourceRecord(question.name, 16, strings("forged"))];
    const forged = buildReply(query, question, { rcode: 0, answers });
    forged.writeUInt16BE((query.readUInt16BE(0) + 1) % 65_536, 0);
    return forged;
  }
}

interface Question {
  readonly name: string;
  readonly type: number;
}

/** RFC 1035, 4.1: a header of 12 bytes, then the name as labels with lengths, then type and class. */
function readQuestion(query: Buffer): Question & { readonly bytes: Buffer } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  const name = labels.join(".").toLowerCase();
  return { name, type: query.readUInt16BE(at + 1), bytes: query.subarray(12, at + 5) };
}

function buildReply(
  query: Buffer,
  { bytes }: { readonly bytes: Buffer },
  { rcode, answers, truncated = false }: { rcode: number; answers: readonly Buffer[]; truncated?: boolean },
): Buffer {
  const flags = 0x8580 | (truncated ? 0x0200 : 0) | rcode;
  const counts = Buffer.concat([uint16(1), uint16(answers.length), uint16(0), uint16(0)]);
  return Buffer.concat([query.subarray(0, 2), uint16(flags), counts, bytes, ...answers]);
}

function resourceRecord(name: string, type: number, data: Buffer): Buffer {
  const ttl = Buffer.from([0, 0, 0, 1]);
  return Buffer.concat([encodedName(name), uint16(type), uint16(1), ttl, uint16(data.length), data]);
}

function strings(text: string): Buffer {
  const bytes = Buffer.from(text, "latin1");
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length || at === 0; at += 255) {
    const part = bytes.subarray(at, at + 255);
    parts.push(Buffer.of(part.length), part);
  }
  return Buffer.concat(parts);
}

function encodedName(name: string): Buffer {
  const labels = name.split(".").flatMap((label) => [Buffer.of(label.length), Buffer.from(label, "latin1")]);
  return Buffer.concat([...labels, Buffer.of(0)]);
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
}
