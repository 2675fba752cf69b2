import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Picker } from "../fuzzing.ts";
import { composedMails } from "./composed-mails.ts";
import { generatedMail } from "./generated-mails.ts";
import { RelayedMail, type Seen, seen } from "./relayed-mail.ts";

/*
 * Mail that is submitted by SMTP is compared, part by part, with the copy that a mail server behind Waybill receives.
 */

const CORPUS = join(import.meta.dir, "..", "corpus", "incoming");
const GENERATED = 420;

let relayed: RelayedMail;
beforeAll(async () => {
  relayed = await RelayedMail.start();
}, 90_000);
afterAll(() => relayed.stop(), 90_000);

/** A file's answer, and its message in lines that end as they do on the way. */
function readCase(name: string) {
  const file = readFileSync(join(CORPUS, name), "latin1");
  const end = file.indexOf("\n\n");
  const answer = /^answer: (.*)$/m.exec(file.slice(0, end))?.[1] ?? "";
  const isKept = /^line-ends: as they are$/m.test(file.slice(0, end));
  const message = file.slice(end + 2);
  return { answer, message: Buffer.from(isKept ? message : message.replaceAll("\n", "\r\n"), "latin1") };
}

async function compare(message: Buffer): Promise<void> {
  const [came, went] = await Promise.all([seen(message), relayed.pass(message).then(seen)]);
  for (const name of ["subject", "replyTo"])
    expect([name, went.headers.get(name)]).toEqual([name, came.headers.get(name)]);
  const isKept = went.headers.has("x-waybill-job");
  if (isKept) {
    for (const name of ["to", "cc", "message-id"]) {
      const given = came.headers.get(name) ?? "";
      if (given !== "" && given !== "null") expect([name, went.headers.get(name)]).toEqual([name, given]);
    }
  }
  // HTML alone gets a generated text for readers without HTML.
  const isAdded =
    !isKept && went.parts.length > came.parts.length && came.parts.every(({ type }) => type !== "text/plain");
  const arrived = isAdded ? went.parts.slice(1) : went.parts;
  const shown = ({ content, ...part }: Seen, at: number) => {
    const linked = isKept ? content : content.replace(/(href=["'])https?:[^"']*/g, "$1(link)");
    const inLines = came.parts[at]?.isInLines === true;
    return {
      ...part,
      isInLines: inLines,
      content: inLines ? linked.replaceAll("\r\n", "\n").replace(/\n$/, "") : linked,
    };
  };
  expect(arrived.map(shown)).toEqual(came.parts.map(shown));
}

describe("a mail of another program arrives with its parts as they were", () => {
  test.each(readdirSync(CORPUS))("%s", async (name) => {
    const { answer, message } = readCase(name);
    if (answer === "arrives") return compare(message);
    expect(await relayed.submit(message)).toStartWith(answer);
  });
});

test("mails that nodemailer composes arrive with their parts as they were", async () => {
  for await (const message of composedMails()) await compare(message);
}, 60_000);

test(`${GENERATED} generated mails arrive with their parts as they were`, async () => {
  for (let seed = 1; seed <= GENERATED; seed += 1) {
    const message = generatedMail(new Picker(seed), seed);
    await compare(message).catch((error: unknown) => {
      throw new Error(
        `seed ${seed}: ${error instanceof Error ? error.message : String(error)}\n${message.toString("latin1").slice(0, 3_000)}`,
      );
    });
  }
}, 120_000);
