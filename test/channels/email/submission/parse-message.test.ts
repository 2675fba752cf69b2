import { describe, expect, test } from "bun:test";
import nodemailer from "nodemailer";
import PostalMime, { decodeWords } from "postal-mime";
import { Base64Body } from "../../../../src/channels/email/submission/base64-body.ts";
import {
  addressesIn,
  decodeHeader,
  firstAddressesIn,
} from "../../../../src/channels/email/submission/header-values.ts";
import { MessageParser } from "../../../../src/channels/email/submission/parse-message.ts";
import { FUZZ_TIMEOUT_MS, fuzz, Picker } from "../fuzzing.ts";
import { FROM, inBase64, KIB, MIB, mixed, parse } from "./messages.ts";

/** What the library alone reads. */
const library = (message: string) => PostalMime.parse(Buffer.from(message, "latin1"), { forceRfc822Attachments: true });

const bytesOf = (content: string | ArrayBuffer | Uint8Array | undefined) =>
  Buffer.from(typeof content === "string" ? content : new Uint8Array(content ?? []));

test("tenants' messages are read in turn: none waits for all that another tenant sends", async () => {
  const parser = new MessageParser();
  const done: string[] = [];
  const parseFor = async (tenantId: string, subject: string) => {
    await parser.parse(tenantId, Buffer.from(`${FROM}Subject: ${subject}\r\n\r\nHi`));
    done.push(subject);
  };
  const flood = Array.from({ length: 20 }, (_, n) => parseFor("flooding", `flood ${n}`));
  await Promise.all([...flood, parseFor("acme", "one"), parseFor("beta", "two")]);
  expect(done.slice(0, 4)).toEqual(["flood 0", "flood 1", "one", "two"]);
});

describe("a message", () => {
  const transport = nodemailer.createTransport({ streamTransport: true, buffer: true });
  const mail = { from: "no-reply@platform.test", subject: "Grüße", html: "<p>Zürich</p>", text: "Zürich" };
  const mails: Readonly<Record<string, object>> = {
    "of text": { ...mail, html: undefined },
    "of HTML": { ...mail, text: undefined },
    "of both": mail,
    "in quoted-printable": { ...mail, textEncoding: "quoted-printable", html: `<p>=3D ${"é".repeat(300)}</p>` },
    "in base64": { ...mail, textEncoding: "base64", text: "é".repeat(300) },
    "with files and pictures": {
      ...mail,
      attachments: [
        { filename: "Rechnung Zürich.pdf", content: Buffer.alloc(5_000, 7) },
        { filename: "logo.png", content: Buffer.alloc(300, 9), cid: "logo" },
        { filename: "mail.eml", content: "Subject: inner\r\n\r\nHi", contentType: "message/rfc822" },
      ],
    },
  };
  test.each(Object.entries(mails))("%s is read as the library reads it", async (_, given) => {
    const message = ((await transport.sendMail(given)).message as Buffer).toString("latin1");
    const [ours, theirs] = [await parse(message), await library(message)];
    expect([ours.html, ours.text, ours.headers]).toEqual([theirs.html, theirs.text, theirs.headers]);
    const filesOf = ({ attachments }: typeof ours) =>
      attachments.map(({ filename, mimeType, contentId, content }) => [
        filename,
        mimeType,
        contentId,
        bytesOf(content),
      ]);
    expect(filesOf(ours)).toEqual(filesOf(theirs));
  });

  test("in a character set of its own, or with lines that flow, is read as it was meant", async () => {
    expect((await parse(`${FROM}Content-Type: text/plain; charset=iso-8859-1\r\n\r\nZ\xfcrich`)).text).toBe("Zürich\n");
    const flowed = `${FROM}Content-Type: text/plain; format=flowed\r\n\r\nOne \r\nline\r\nand another`;
    expect((await parse(flowed)).text).toBe("One line\nand another\n");
    const [file] = (await parse(mixed(inBase64("text/calendar; charset=iso-8859-1", "BEGIN Z\xfcrich")))).attachments;
    expect(bytesOf(file?.content).toString()).toBe("BEGIN Zürich");
  });

  test("has each of its texts in both forms, where some have the one and some the other", async () => {
    const { html, text } = await parse(
      mixed(
        "Content-Type: text/plain\r\n\r\nHi <you>\r\nthere",
        'Content-Type: text/html\r\n\r\n<p>See <a href="https://a.test">this</a></p>',
        inBase64("text/plain", "Bye"),
      ),
    );
    expect(html).toBe(
      '<div>Hi &lt;you&gt;<br>there</div>\n<p>See <a href="https://a.test">this</a></p>\n\n<div>Bye</div>',
    );
    expect(text).toBe("Hi <you>\nthere\n\nSee this (https://a.test)\nBye");
  });

  test("may have all of its HTML, or of a file, on one line", async () => {
    const html = `<p>${"Hello there. ".repeat(38_000)}</p>`;
    expect((await parse(`${FROM}Content-Type: text/html\r\n\r\n${html}`)).html).toBe(`${html}\n`);
    const file = Buffer.alloc(10 * MIB, "a file's bytes");
    const { attachments } = await parse(mixed(inBase64("application/pdf", file.toString("latin1"))));
    expect(bytesOf(attachments[0]?.content).equals(file)).toBe(true);
  });

  test("is read in many turns of the event loop, however long its lines are", async () => {
    for (const [encoding, line] of [
      ["base64", "ABCD"],
      ["quoted-printable", "=41"],
    ] as const) {
      let turns = 0;
      let isRead = false;
      const count = () => {
        turns += 1;
        if (!isRead) setImmediate(count);
      };
      const content = line.repeat(MIB);
      const reading = parse(mixed(`Content-Type: a/b\r\nContent-Transfer-Encoding: ${encoding}\r\n\r\n${content}`));
      count();
      await reading;
      isRead = true;
      expect(turns).toBeGreaterThan(content.length / (128 * KIB));
    }
  });
});

describe("the library and these read the same", () => {
  test(
    "base64 in whatever lines, padding and noise",
    async () => {
      await fuzz(async (pick) => {
        const body = pick.text(
          ["QUJD", "QQ==", "QUI=", "A", "=", "==", "\r\n", " ", "-", "+/9z", "\xff", "--x\r\n"],
          40,
        );
        const message = mixed(`Content-Type: a/b\r\nContent-Transfer-Encoding: base64\r\n\r\n${body}`);
        const [ours, theirs] = [await parse(message), await library(message)];
        expect(bytesOf(ours.attachments[0]?.content)).toEqual(bytesOf(theirs.attachments[0]?.content));
      });
    },
    FUZZ_TIMEOUT_MS,
  );

  test("quoted-printable in lines that are read in pieces", async () => {
    for (let seed = 1; seed <= 12; seed += 1) {
      const pick = new Picker(seed);
      let body = "";
      while (body.length < 200 * KIB) body += pick.text(["=41", "=", "==", "=4", "=\xff", "a", "=3D", "=\r\n"], 4_000);
      const message = mixed(`Content-Type: a/b\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n${body}`);
      const [ours, theirs] = [await parse(message), await library(message)];
      expect(bytesOf(ours.attachments[0]?.content).equals(bytesOf(theirs.attachments[0]?.content))).toBe(true);
    }
  });

  test(
    "encoded words",
    async () => {
      const pieces = [
        "=?utf-8?q?=c3?=",
        "=?utf-8?q?=bc_?=",
        "=?utf-8?B?w7w=?=",
        "=?utf-8?b?w7zD?=",
        "=?utf-8?b?vMO8?=",
      ];
      const others = [
        "=?x?q?a?=",
        "=?",
        "?=",
        "?",
        "=",
        " ",
        "\t",
        "Zürich",
        "=?utf-8?b??=",
        "=?utf-8*en?Q?hi?=",
        "\r\n",
      ];
      await fuzz((pick) => {
        const value = pick.text([...pieces, ...others], 12);
        expect(decodeHeader(value)).toBe(decodeWords(value));
      });
    },
    FUZZ_TIMEOUT_MS,
  );
});

test("a small part in base64 keeps no more than twice its bytes", async () => {
  const body = new Base64Body();
  body.update(Buffer.from("QUJD"));
  const bytes = await body.finalize();
  expect(Buffer.from(bytes).toString()).toBe("ABC");
  expect(bytes.buffer.byteLength).toBeLessThan(7);
});

test("addresses are read from all headers of a name, and of too long ones none, or the first", () => {
  const header = (key: string, value: string) => ({ key, originalKey: key, value });
  const headers = [header("to", "Ada <ada@example.com>"), header("cc", "x@a.test"), header("to", "b@example.com")];
  expect(addressesIn(headers, "to")?.map(({ address }) => address)).toEqual(["ada@example.com", "b@example.com"]);
  expect(firstAddressesIn(headers, "to")).toEqual(addressesIn(headers, "to") ?? []);
  const long = [...headers, header("to", '"Bee, A" <a@b.test>, '.repeat(2_000))];
  expect(addressesIn(long, "to")).toBeNull();
  const first = firstAddressesIn(long, "to").filter(({ address }) => address !== "");
  expect(first.length).toBeGreaterThan(1_500);
  expect(first.slice(0, 3).map(({ name }) => name)).toEqual(["Ada", "", "Bee, A"]);
});
