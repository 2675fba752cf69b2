import { randomUUID } from "node:crypto";
import type { VerifiedDomain } from "../../../core/domain.ts";
import type { EncodedBody } from "./body-encoding.ts";
import { dkimSignature, type HeaderField } from "./dkim-signature.ts";
import { headerLines, type Mailbox, subjectValue } from "./header-values.ts";

/** A message that is ready to be handed over, more than once where it has to be. */
export interface MailMessage {
  readonly from: string;
  readonly to: string;
  /** Headers and body (RFC 5322), every line ended by CRLF. ASCII but for addresses that are none. */
  readonly text: string;
}

export interface MailParts {
  readonly from: Mailbox;
  readonly to: Mailbox;
  readonly envelopeFrom: string;
  readonly subject: string;
  readonly messageId: string;
  readonly dateMs: number;
  /** Further headers, as they are: they need no encoding, and a fold would break the address in one. */
  readonly headers: readonly HeaderField[];
  readonly html: EncodedBody;
  readonly text: EncodedBody | null;
  /** Who signs it; null: nobody. */
  readonly signer: { readonly domain: string; readonly key: NonNullable<VerifiedDomain["relay"]> } | null;
}

/** The message of these parts: the headers that nodemailer writes, in its order. */
export async function mailMessage(parts: MailParts): Promise<MailMessage> {
  const { from, to, envelopeFrom, subject, messageId, dateMs, headers, html, text, signer } = parts;
  const { fields: contentFields, body } = contentOf(html, text);
  const fields: HeaderField[] = [
    ...headers,
    ["From", from.value],
    ["To", to.value],
    ...(subject === "" ? [] : [["Subject", subjectValue(subject)] as const]),
    ["Message-ID", messageId],
    ["Date", new Date(dateMs).toUTCString().replace("GMT", "+0000")],
    ["MIME-Version", "1.0"],
    ...contentFields,
  ];
  const count = headers.length;
  let head = "";
  const folded = fields.map(([name, value], i): HeaderField => {
    const line = i < count ? `${name}: ${value}` : headerLines(name, value);
    head += `${line}\r\n`;
    return [name, line.slice(name.length + 1)];
  });
  const signature = signer === null ? "" : await dkimSignature(folded, body, signer);
  return { from: envelopeFrom, to: to.address, text: `${signature}${head}\r\n${body}` };
}

/** The HTML alone, or behind its text. Its body ends with a line end. */
function contentOf(
  html: EncodedBody,
  text: EncodedBody | null,
): { readonly fields: readonly HeaderField[]; readonly body: string } {
  if (text === null) {
    const body = html.body === "" || html.body.endsWith("\r\n") ? html.body : `${html.body}\r\n`;
    return {
      fields: [
        ["Content-Transfer-Encoding", html.encoding],
        ["Content-Type", "text/html; charset=utf-8"],
      ],
      body,
    };
  }
  // Of chance, so that nobody's text can hold it.
  const boundary = `=_${randomUUID()}`;
  return {
    fields: [["Content-Type", `multipart/alternative; boundary="${boundary}"`]],
    body: `--${boundary}\r\n${partOf("plain", text)}--${boundary}\r\n${partOf("html", html)}--${boundary}--\r\n`,
  };
}

function partOf(type: "plain" | "html", { encoding, body }: EncodedBody): string {
  return `Content-Type: text/${type}; charset=utf-8\r\nContent-Transfer-Encoding: ${encoding}\r\n\r\n${body}\r\n`;
}
