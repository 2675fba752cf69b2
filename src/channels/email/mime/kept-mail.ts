import { dkimSignature, type HeaderField } from "./dkim-signature.ts";
import { folded, formatDate, type MailMessage, type MailParts } from "./mail-message.ts";
import { KeptLines } from "./message-rest.ts";

/** The parts that a delivery adds to a message that is sent unchanged. */
export interface KeptMailParts
  extends Pick<MailParts, "from" | "to" | "envelopeFrom" | "dateMs" | "headers" | "signer"> {
  /** Names the job; becomes the Message-ID of a message that has none. */
  readonly messageId: string;
  /** Head, empty line and body. */
  readonly bytes: Buffer;
  readonly isEightBit: boolean;
}

/** Adds sender, unsubscribe link and signature to the message. */
export async function keptMail(parts: KeptMailParts): Promise<MailMessage> {
  const { from, to, envelopeFrom, dateMs, headers, signer, messageId, bytes, isEightBit } = parts;
  const headEnd = bytes.indexOf("\r\n\r\n");
  const own = bytes.subarray(0, 2).equals(CRLF) ? [] : fieldsIn(bytes.toString("latin1", 0, headEnd));
  const has = new Set(own.map(([name]) => name.toLowerCase()));
  const added: HeaderField[] = headers.map(([name, value]) => [name, ` ${value}`]);
  added.push(folded(JOB_FIELD, messageId), folded("From", from.value));
  if (!has.has("to") && !has.has("cc")) added.push(folded("To", to.value));
  if (!has.has("message-id")) added.push(folded("Message-ID", messageId));
  if (!has.has("date")) added.push(formatDate(dateMs));
  if (!has.has("mime-version") && has.has("content-type")) added.push(["MIME-Version", " 1.0"]);
  const fields = [...added, ...own];
  const rest = new KeptLines(bytes.subarray(own.length === 0 ? CRLF.length : headEnd + 2 * CRLF.length));
  const head = fields.map(([name, value]) => `${name}:${value}\r\n`).join("");
  const signature = signer === null ? "" : await dkimSignature(fields, { text: "", rest: rest.trimmed() }, signer);
  const text = `${signature}${head}\r\n`;
  return { from: envelopeFrom, to: to.address, text, rest, ...(isEightBit && { isEightBit }) };
}

/** Names the job in a message that has its own Message-ID. */
export const JOB_FIELD = "X-Waybill-Job";
const CRLF = Buffer.from("\r\n");

function fieldsIn(head: string): readonly HeaderField[] {
  return head.split(/\r\n(?![ \t])/).map((line) => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon), line.slice(colon + 1)];
  });
}
