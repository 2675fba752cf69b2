import { createTransport } from "nodemailer";
import { PLATFORM_SENDER } from "./submission-world.ts";

const transport = createTransport({ streamTransport: true, buffer: true });
const CALENDAR = "BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nSUMMARY:Grüße\r\nEND:VCALENDAR\r\n";

const BODIES = [
  { text: "Hello" },
  { html: "<p>Grüße aus Zürich: <a href='https://a.test/b?c=d&amp;e'>here</a></p>" },
  { text: "Grüße {{name}}", html: "<p>Grüße {{ .Values.image }}</p>" },
  { text: "" },
  { text: "x", html: "<p>x</p>", watchHtml: "<b>x</b>", amp: "<!doctype html><html amp4email></html>" },
  { text: "x", html: "<p>x</p>", icalEvent: { method: "REQUEST", content: CALENDAR } },
  { text: "x", alternatives: [{ contentType: 'text/calendar; charset="utf-8"; method=REQUEST', content: CALENDAR }] },
];
const FILES = [
  [],
  [{ filename: "Rechnung Zürich.pdf", content: Buffer.from([0, 1, 2, 255, 13, 10]) }],
  [{ filename: "logo.png", content: Buffer.alloc(300, 7), cid: "logo" }],
  [{ filename: "a.csv", content: "a,b\nc,d\n", contentType: "text/csv; charset=utf-8; header=present" }],
  [{ filename: "mail.eml", content: "Subject: inner\r\n\r\nHi", contentType: "message/rfc822" }],
];
const OTHERS = [{}, { textEncoding: "base64" as const, headers: { "X-Long": "y ".repeat(800) } }];

/** Each body with each of the files. */
export async function* composedMails(): AsyncGenerator<Buffer> {
  let id = 0;
  for (const body of BODIES) {
    for (const attachments of FILES) {
      for (const other of OTHERS) {
        id += 1;
        const mail = {
          from: PLATFORM_SENDER,
          to: "Ada <ada@example.com>",
          subject: "Grüße {{name}}",
          messageId: `<${id}@composed.test>`,
        };
        const { message } = await transport.sendMail({ ...mail, ...body, ...other, attachments });
        // A buffer, because the transport is configured to build one.
        yield message as Buffer;
      }
    }
  }
}
