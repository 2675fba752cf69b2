import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { RspamdFilter } from "../../../src/channels/email/spam/rspamd-filter.ts";
import type { ScoredMessage } from "../../../src/channels/email/spam/spam.ts";
import { createRspamd, type RspamdServer, rspamdMissing } from "../../support/rspamd.ts";

const missing = rspamdMissing();

const GTUBE = "XJS*C4JDBQADN1.NSBN3*2IDNEN*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X";
const JOB = "01970000-0000-7000-8000-000000000001";
const never = new AbortController().signal;

function message(
  subject: string,
  html: string,
  about: { from?: string; to?: string; type?: string } = {},
): ScoredMessage {
  const { from = "Shop <orders@shop.test>", to = "ann@good.test", type = "text/html" } = about;
  const lines = [
    `From: ${from}`,
    `To: ${to}`,
    `Subject: ${subject}`,
    `Message-ID: <${JOB}.shop@shop.test>`,
    "Date: Sat, 21 Nov 2026 08:00:00 +0000",
    "MIME-Version: 1.0",
    `Content-Type: ${type}; charset=utf-8`,
    "",
    html,
    "",
  ];
  return { subject, html, text: null, from, to, raw: () => new TextEncoder().encode(lines.join("\r\n")) };
}

describe.skipIf(missing !== null)(missing ?? "on a real rspamd", () => {
  let server: RspamdServer;
  let filter: RspamdFilter;
  beforeAll(async () => {
    server = await createRspamd();
    filter = new RspamdFilter(server.url);
  }, 300_000);
  afterAll(() => server?.remove(), 90_000);

  test("an ordinary message scores low", async () => {
    const verdict = await filter.score(message("Your order", "<p>Hello Ann, your order is on its way.</p>"), never);
    expect(verdict.score).toBeLessThan(2);
  }, 90_000);

  test("symbols become rules with points and a description, highest first, without those that are worth nothing", async () => {
    const spam = message("WIN A NEW CAR RIGHT NOW", '<p>Go</p><a href="http://192.0.2.7/x">here</a>');
    const { score, rules } = await filter.score(spam, never);
    expect(rules).toContainEqual({ rule: "HTTP_TO_IP", score: 1, description: "Anchor points to an IP address" });
    expect(rules.map(({ rule }) => rule)).toContain("SUBJ_ALL_CAPS");
    expect(rules.every((rule) => rule.score !== 0)).toBe(true);
    expect(rules.map((rule) => rule.score)).toEqual(rules.map((rule) => rule.score).sort((a, b) => b - a));
    const sum = rules.reduce((total, rule) => total + rule.score, 0);
    expect(score).toBeCloseTo(sum, 1);
  }, 90_000);

  test("the test string for filters comes back with rspamd's score and its reason", async () => {
    const { score, rules } = await filter.score(message("Test", GTUBE, { type: "text/plain" }), never);
    expect({ score, rules }).toEqual({
      score: 15,
      rules: [{ rule: "GTUBE", score: 15, description: "Gtube pattern" }],
    });
  }, 90_000);

  test("rspamd's log names the job, the sender and the recipient", async () => {
    await filter.score(message("Logged", "<p>Hello</p>", { to: "logged@good.test" }), never);
    const line = (await server.log()).split("\n").find((each) => each.includes("logged@good.test"));
    expect(line).toContain(`qid: <${JOB}.shop>`);
    expect(line).toContain("from: <orders@shop.test>");
  }, 90_000);

  test.each([
    { from: "Jürgen <jürgen@shop.test>" },
    { to: "anna.ü@good.test" },
    { to: "anna@müller.test" },
    { from: "Shop <orders@müller.test>" },
    { to: '"anna b"@good.test' },
    { to: "no address at all" },
  ])(
    "addresses beyond ASCII cost no points: %p",
    async (addresses) => {
      const { rules } = await filter.score(message("Your order", "<p>Hello, it is on its way.</p>", addresses), never);
      expect(rules.map(({ rule }) => rule)).not.toContain("BROKEN_HEADERS");
    },
    90_000,
  );

  test("twenty questions at once get an answer each", async () => {
    const subjects = Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? "Your order" : "WIN A NEW CAR RIGHT NOW"));
    const verdicts = await Promise.all(subjects.map((subject) => filter.score(message(subject, "<p>Hi</p>"), never)));
    const capitals = verdicts.map(({ rules }) => rules.some(({ rule }) => rule === "SUBJ_ALL_CAPS"));
    expect(capitals).toEqual(subjects.map((subject) => subject.startsWith("WIN")));
  }, 90_000);
});
