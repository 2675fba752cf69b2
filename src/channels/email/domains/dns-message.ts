/*
 * The parts of DNS messages needed to look up TXT, MX and CNAME records (RFC 1035, 4). Input comes from the network:
 * every length is checked, and invalid input throws `DnsFormatError`.
 */

/** RFC 1035, 3.2.2. */
export const RECORD_TYPES = { CNAME: 5, MX: 15, TXT: 16 } as const;
export type RecordType = keyof typeof RECORD_TYPES;

/** A record in an answer; names are in lower case without the trailing dot. Records of other types are dropped. */
export type AnswerRecord = { readonly name: string } & (
  | { readonly type: "CNAME"; readonly target: string }
  | { readonly type: "MX"; readonly exchange: string; readonly priority: number }
  /** The record's strings joined, one character per byte. */
  | { readonly type: "TXT"; readonly text: string }
);

export interface DnsReply {
  readonly id: number;
  /** The answer did not fit into a datagram: ask again over TCP. */
  readonly isTruncated: boolean;
  /** RFC 1035, 4.1.1: 0 no error, 2 server failure, 3 no such name, 5 refused. */
  readonly rcode: number;
  readonly question: { readonly name: string; readonly type: number };
  readonly answers: readonly AnswerRecord[];
}

/** The bytes are not a DNS reply. */
export class DnsFormatError extends Error {
  override readonly name = "DnsFormatError";
}

const CLASS_IN = 1;
const OPT = 41;
const RECURSION_DESIRED = 0x0100;
const IS_REPLY = 0x8000;
const TRUNCATED = 0x0200;
/** Fits into one packet on every path (RFC 9715, 3). */
const DATAGRAM_BYTES_MAX = 1232;
const HEADER_BYTES = 12;
const NAME_BYTES_MAX = 255;

/**
 * Encodes a question that requests recursion and allows 1232 bytes of answer (RFC 6891).
 *
 * @throws DnsFormatError if a label is empty or longer than 63 bytes, or the name is longer than 255 bytes.
 */
export function encodeQuestion(id: number, name: string, type: RecordType): Buffer {
  const labels = name.split(".").map((label) => Buffer.from(label, "latin1"));
  if (labels.some(({ length }) => length === 0 || length > 63))
    throw new DnsFormatError("a part of the name is empty or too long");
  const encodedName = Buffer.concat([...labels.flatMap((label) => [Buffer.of(label.length), label]), Buffer.of(0)]);
  if (encodedName.length > NAME_BYTES_MAX) throw new DnsFormatError("the name is too long");
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt16BE(id, 0);
  header.writeUInt16BE(RECURSION_DESIRED, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(1, 10);
  const question = Buffer.alloc(4);
  question.writeUInt16BE(RECORD_TYPES[type], 0);
  question.writeUInt16BE(CLASS_IN, 2);
  const opt = Buffer.alloc(11);
  opt.writeUInt16BE(OPT, 1);
  opt.writeUInt16BE(DATAGRAM_BYTES_MAX, 3);
  return Buffer.concat([header, encodedName, question, opt]);
}

/** @throws DnsFormatError if the bytes are not a reply to exactly one question. */
export function decodeReply(bytes: Buffer): DnsReply {
  const reader = new Reader(bytes);
  const [id, flags, questions, answers] = [reader.uint16(), reader.uint16(), reader.uint16(), reader.uint16()];
  reader.skip(4);
  if ((flags & IS_REPLY) === 0 || questions !== 1) throw new DnsFormatError("not a reply to one question");
  const question = { name: reader.name(), type: reader.uint16() };
  reader.skip(2);
  return {
    id,
    isTruncated: (flags & TRUNCATED) !== 0,
    rcode: flags & 0x0f,
    question,
    // A truncated reply is requested again over TCP and may be incomplete.
    answers: (flags & TRUNCATED) === 0 ? readAnswers(reader, answers) : [],
  };
}

function readAnswers(reader: Reader, count: number): AnswerRecord[] {
  const records: AnswerRecord[] = [];
  for (let nth = 0; nth < count; nth += 1) {
    const name = reader.name();
    const [type, recordClass] = [reader.uint16(), reader.uint16()];
    reader.skip(4);
    const end = reader.uint16() + reader.position;
    if (recordClass === CLASS_IN) {
      if (type === RECORD_TYPES.CNAME) records.push({ name, type: "CNAME", target: reader.name() });
      if (type === RECORD_TYPES.MX) {
        records.push({ name, type: "MX", priority: reader.uint16(), exchange: reader.name() });
      }
      if (type === RECORD_TYPES.TXT) records.push({ name, type: "TXT", text: reader.strings(end) });
    }
    reader.moveTo(end);
  }
  return records;
}

/** Escapes a label as zone files do (RFC 1035, 5.1): it may contain any byte, and names are shown and stored. */
function printable(label: string): string {
  return label.replace(/[^\x21-\x7e]|[.\\]/g, (byte) => `\\${String(byte.charCodeAt(0)).padStart(3, "0")}`);
}

class Reader {
  position = 0;

  constructor(private readonly bytes: Buffer) {}

  uint8(): number {
    const value = this.bytes[this.position];
    if (value === undefined) throw new DnsFormatError("the message ends early");
    this.position += 1;
    return value;
  }

  uint16(): number {
    return this.uint8() * 256 + this.uint8();
  }

  skip(count: number): void {
    this.moveTo(this.position + count);
  }

  moveTo(position: number): void {
    if (position < this.position || position > this.bytes.length) throw new DnsFormatError("a length does not fit");
    this.position = position;
  }

  /** Joins the strings up to `end` (RFC 1035, 3.3.14). */
  strings(end: number): string {
    let text = "";
    while (this.position < end) {
      const length = this.uint8();
      const from = this.position;
      this.skip(length);
      text += this.bytes.toString("latin1", from, this.position);
    }
    return text;
  }

  /**
   * Reads a name and follows its compression pointers (RFC 1035, 4.1.4). Each must point further back than the last,
   * which rules out loops.
   */
  name(): string {
    const labels: string[] = [];
    let after: number | null = null;
    let bound = this.position;
    let bytes = 1;
    for (let length = this.uint8(); length !== 0; length = this.uint8()) {
      if (length >= 0xc0) {
        const target = (length & 0x3f) * 256 + this.uint8();
        after ??= this.position;
        if (target >= bound) throw new DnsFormatError("a name points forward");
        bound = target;
        this.position = target;
      } else {
        if (length > 63) throw new DnsFormatError("a part of a name is too long");
        const from = this.position;
        this.skip(length);
        bytes += length + 1;
        if (bytes > NAME_BYTES_MAX) throw new DnsFormatError("a name is too long");
        labels.push(printable(this.bytes.toString("latin1", from, this.position)));
      }
    }
    if (after !== null) this.position = after;
    return labels.join(".").toLowerCase();
  }
}
