import { crc32, deflateSync } from "node:zlib";

/** A mail as `POST /v1/send/email` takes it, and what its readers find in it. */
export interface BusinessMail {
  readonly name: string;
  readonly body: {
    readonly to_address: string;
    readonly to_name?: string;
    readonly subject: string;
    readonly html?: string;
    readonly text?: string;
    readonly cc?: readonly { readonly address: string; readonly name: string }[];
    readonly headers?: Readonly<Record<string, string>>;
    readonly attachments?: readonly {
      readonly filename: string;
      readonly content: string;
      readonly content_type?: string;
      readonly content_id?: string;
    }[];
  };
  /** The types of its parts, in their order. */
  readonly types: readonly string[];
}

const base64 = (text: string | Uint8Array) => Buffer.from(text).toString("base64");

function chunk(type: string, data: Uint8Array): Buffer {
  const named = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, sum]);
}

/** A logo of one colour, 240 by 64. */
function png(): Uint8Array {
  const [width, height] = [240, 64];
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2, 0, 0, 0], 8);
  const row = Buffer.concat([Buffer.from([0]), Buffer.alloc(3 * width, Buffer.from([0x1a, 0x56, 0xdb]))]);
  const rows = Buffer.concat(Array.from({ length: height }, () => row));
  const signature = Buffer.from("89504e470d0a1a0a", "hex");
  const data = chunk("IDAT", deflateSync(rows));
  return Buffer.concat([signature, chunk("IHDR", head), data, chunk("IEND", Buffer.alloc(0))]);
}

const PDF = `%PDF-1.4
1 0 obj <</Type /Catalog /Pages 2 0 R>> endobj
2 0 obj <</Type /Pages /Kids [3 0 R] /Count 1>> endobj
3 0 obj <</Type /Page /Parent 2 0 R /MediaBox [0 0 595 842]>> endobj
trailer <</Root 1 0 R>>
%%EOF
`;

const CALENDAR = [
  "BEGIN:VCALENDAR",
  "PRODID:-//Acme//Fitting//DE",
  "VERSION:2.0",
  "METHOD:REQUEST",
  "BEGIN:VEVENT",
  "UID:fitting-2042@shop.example",
  "DTSTAMP:20261122T090000Z",
  "DTSTART:20261201T090000Z",
  "DTEND:20261201T093000Z",
  "SUMMARY:Anprobe bei Bürgi & Söhne",
  "ORGANIZER:mailto:orders@shop.example",
  "ATTENDEE;RSVP=TRUE:mailto:ann@example.org",
  "END:VEVENT",
  "END:VCALENDAR",
  "",
].join("\r\n");

const ALTERNATIVE = ["multipart/alternative", "text/plain", "text/html"];
const PARAGRAPH =
  "Thank you for your order. We have packed it today and handed it over to the carrier, who usually needs two working days. You need " +
  "not be at home: the parcel fits through the letter box.";

const page = (title: string, main: string, head = "", attributes = 'lang="en"') =>
  `<!doctype html>\n<html ${attributes}>\n<head>\n<meta charset="utf-8">\n<title>${title}</title>\n${head}</head>\n<body>\n${main}\n</body>\n</html>\n`;

/** Ten mails of the kinds that businesses send, and on which mail programs differ. */
export const BUSINESS_MAILS: readonly BusinessMail[] = [
  {
    name: "a logo by its content id",
    body: {
      to_address: "ann@example.org",
      to_name: "Ann Field",
      subject: "Your order 2042 is on its way",
      html: page(
        "Order 2042",
        `<p><img src="cid:logo@shop.example" width="240" height="64" alt="Acme"></p><p>Hello Ann,</p>${`<p>${PARAGRAPH}</p>`.repeat(16)}<p><a href="https://shop.example/orders/2042">See your order</a></p>`,
      ),
      attachments: [{ filename: "logo.png", content: base64(png()), content_id: "logo@shop.example" }],
    },
    types: ["multipart/alternative", "text/plain", "multipart/related", "text/html", "image/png"],
  },
  {
    name: "an invoice with umlauts in its name",
    body: {
      to_address: "joerg@example.org",
      to_name: "Jörg Müller-Lüdenscheidt",
      subject: "Ihre Rechnung für November: Größe XL, 42,50 €",
      html: page(
        "Rechnung",
        "<p>Guten Tag Herr Müller-Lüdenscheidt,</p><p>anbei finden Sie die Rechnung über 42,50 € für Ihre Bestellung. Der Betrag wird in den nächsten Tagen abgebucht; Sie müssen nichts weiter tun.</p><p>Mit freundlichen Grüßen<br>Bürgi &amp; Söhne</p>",
        "",
        'lang="de"',
      ),
      attachments: [
        {
          filename: "Rechnung Nr. 2042 – Größe XL, Übergröße (Müller).pdf",
          content: base64(PDF),
          content_type: "application/pdf",
        },
      ],
    },
    types: ["multipart/mixed", ...ALTERNATIVE, "application/pdf"],
  },
  {
    name: "from right to left",
    body: {
      to_address: "noa@example.org",
      to_name: "נועה לוי",
      subject: "ההזמנה שלך יצאה לדרך",
      html: page(
        "הזמנה",
        "<p>שלום נועה,</p><p>ההזמנה שלך (מספר <bdi>2042</bdi>) נמסרה היום לשליח ותגיע בתוך יומיים. אין צורך להיות בבית בזמן המסירה.</p><p>مرحبًا، تم تسليم طلبك إلى شركة الشحن اليوم.</p>",
        "",
        'lang="he" dir="rtl"',
      ),
    },
    types: ALTERNATIVE,
  },
  {
    name: "an invitation",
    body: {
      to_address: "ann@example.org",
      to_name: "Ann Field",
      subject: "Your fitting on 1 December at 10:00",
      html: page("Fitting", `<p>Hello Ann,</p><p>Your fitting is on 1 December at 10:00. ${PARAGRAPH}</p>`),
      attachments: [
        {
          filename: "invite.ics",
          content: base64(CALENDAR),
          content_type: "text/calendar; charset=utf-8; method=REQUEST",
        },
      ],
    },
    types: ["multipart/mixed", ...ALTERNATIVE, "text/calendar"],
  },
  {
    name: "links longer than a line",
    body: {
      to_address: "ann@example.org",
      subject: "Confirm your address",
      html: page(
        "Confirm",
        `<p>Hello,</p><p>${PARAGRAPH}</p><p><a href="https://shop.example/confirm?token=${"aZ09_-".repeat(220)}&amp;next=%2Faccount">Confirm your address</a></p>`,
      ),
      text: `Hello,\n\n${PARAGRAPH}\n\nhttps://shop.example/confirm?token=${"aZ09_-".repeat(220)}&next=%2Faccount\n`,
    },
    types: ALTERNATIVE,
  },
  {
    name: "emoji",
    body: {
      to_address: "ann@example.org",
      to_name: "Ann 🌻 Field",
      subject: "Ann, your table is booked 🎉👩‍👩‍👧‍👦🇩🇪",
      html: page(
        "Booked",
        `<p>Hello Ann 👋🏽,</p><p>your table for four 👩‍👩‍👧‍👦 is booked for Friday. ${PARAGRAPH}</p><p>See you soon 🍝</p>`,
      ),
    },
    types: ALTERNATIVE,
  },
  {
    name: "Outlook's conditional comments",
    body: {
      to_address: "ann@example.org",
      to_name: "Field, Ann",
      subject: "Minutes of the meeting, second version",
      html: page(
        "Minutes",
        `<!--[if mso | IE]><table role="presentation" width="600" align="center"><tr><td><![endif]-->\n<div style="max-width:600px;margin:0 auto"><p>Hello Ann,</p><p>${PARAGRAPH}</p>\n<!--[if mso]><v:roundrect xmlns:v="urn:schemas-microsoft-com:vml" href="https://shop.example/minutes" style="height:40px;v-text-anchor:middle;width:200px;" fillcolor="#1a56db"><center>Read the minutes</center></v:roundrect><![endif]-->\n<!--[if !mso]><!--><a href="https://shop.example/minutes" style="background:#1a56db;color:#ffffff;display:inline-block;padding:10px 24px">Read the minutes</a><!--<![endif]-->\n</div>\n<!--[if mso | IE]></td></tr></table><![endif]-->`,
        '<!--[if mso]><xml><o:OfficeDocumentSettings xmlns:o="urn:schemas-microsoft-com:office:office"><o:PixelsPerInch>96</o:PixelsPerInch></o:OfficeDocumentSettings></xml><![endif]-->\n',
        'lang="en" xmlns:v="urn:schemas-microsoft-com:vml" xmlns:o="urn:schemas-microsoft-com:office:office"',
      ),
    },
    types: ALTERNATIVE,
  },
  {
    name: "dark mode",
    body: {
      to_address: "ann@example.org",
      subject: "What changed in your account this week",
      html: page(
        "This week",
        `<div class="card"><p>Hello,</p><p>${PARAGRAPH}</p><p>${PARAGRAPH}</p><p><a href="https://shop.example/account">Open your account</a></p></div>`,
        '<meta name="color-scheme" content="light dark">\n<meta name="supported-color-schemes" content="light dark">\n<style>:root{color-scheme:light dark}.card{background:#ffffff;color:#1b1f24}@media (prefers-color-scheme:dark){.card{background:#14181d!important;color:#e8ebef!important}}</style>\n',
      ),
    },
    types: ALTERNATIVE,
  },
  {
    name: "text alone",
    body: {
      to_address: "ann@example.org",
      to_name: "Ann Field",
      subject: "Backup finished",
      text: `The nightly backup has finished.\n\nFrom the log:\n.\n..\nFrom: nobody\n--\nnaïve café, ${"very long line ".repeat(90)}\n`,
    },
    types: ["text/plain"],
  },
  {
    name: "an answer in a thread, with copies",
    body: {
      to_address: "ann@example.org",
      to_name: "Ann Field",
      cc: [
        { address: "bob@example.org", name: "Bob “the builder” Öztürk" },
        { address: "team@example.org", name: "Team, Support (Tier 2)" },
        ...Array.from({ length: 12 }, (_, n) => ({
          address: `colleague-${n}@example.org`,
          name: `Colleague Number ${n}`,
        })),
      ],
      subject: "Re: Re: Broken zip on the grey coat",
      html: page("Re", `<p>Hello Ann,</p><p>${PARAGRAPH}</p><blockquote>Could you replace the zip?</blockquote>`),
      headers: {
        "In-Reply-To": "<question-3@mail.example.org>",
        References: Array.from({ length: 18 }, (_, n) => `<question-${n}.20261122.a1b2c3@mail.example.org>`).join(" "),
        "X-Ticket": "Ticket № 2042: Reißverschluss",
      },
    },
    types: ALTERNATIVE,
  },
];
