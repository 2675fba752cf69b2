import { describe, expect, test } from "bun:test";
import { BuiltinSpamFilter } from "../../../src/channels/email/spam/builtin-spam-filter.ts";
import { RspamdFilter } from "../../../src/channels/email/spam/rspamd-filter.ts";
import { spamFilterFor } from "../../../src/channels/email/spam/spam-filter-for.ts";
import { HOSTILE_HTML } from "./hostile-html.ts";
import { HAM, type Sample, SPAM } from "./spam-samples.ts";

const filter = new BuiltinSpamFilter();
const scored = ({ subject, html, from = "Shop <orders@shop.test>" }: Sample) =>
  filter.score({ subject, html, from, text: null, to: "ann@good.test" });

describe("stays clearly below the threshold of 5:", () => {
  test.each(HAM.map((sample) => [sample.name, sample] as const))("%s", async (_name, sample) => {
    const { score, rules } = await scored(sample);
    expect({ score, rules, clear: score <= 3 }).toMatchObject({ clear: true });
  });
});

describe("comes out clearly above the threshold of 5:", () => {
  test.each(SPAM.map((sample) => [sample.name, sample] as const))("%s", async (_name, sample) => {
    const { score, rules } = await scored(sample);
    expect({ score, rules, clear: score >= 6 }).toMatchObject({ clear: true });
  });
});

test("the test string scores above every threshold that can be set", async () => {
  const sample = SPAM.find(({ name }) => name === "the test string");
  expect(sample).toBeDefined();
  if (sample !== undefined) expect((await scored(sample)).score).toBeGreaterThan(1000);
});

test("a score is the sum of its rules, to two decimals", async () => {
  for (const sample of SPAM) {
    const { score, rules } = await scored(sample);
    expect(score).toBeCloseTo(
      rules.reduce((sum, rule) => sum + rule.score, 0),
      6,
    );
    expect(Math.round(score * 100) / 100).toBe(score);
  }
});

describe("the setting", () => {
  test("off asks for no filter", () => expect(spamFilterFor("off")).toBeNull());
  test("builtin asks for the built-in one", () => expect(spamFilterFor("builtin")).toBeInstanceOf(BuiltinSpamFilter));
  test("a URL asks for the rspamd there", () =>
    expect(spamFilterFor("http://127.0.0.1:11333")).toBeInstanceOf(RspamdFilter));
});

describe("half a megabyte is scored in time, of", () => {
  test.each(Object.entries(HOSTILE_HTML))(
    "%s",
    async (_name, html) => {
      const subject = html.slice(0, 998);
      const verdict = await filter.score({ subject, html, text: html, from: `${subject}<a@b.test>`, to: subject });
      expect(verdict.score).toBeWithin(0, 1000);
      expect(verdict.rules.length).toBeLessThanOrEqual(32);
    },
    90_000,
  );
});

test("a row of marks is judged in time, however long it is before a letter", async () => {
  const text = `${"!".repeat(199_000)}a ${"$".repeat(900)}`;
  const verdict = await filter.score({ subject: "", html: "", text, from: "a@b.test", to: "a@b.test" });
  expect(verdict.rules.map(({ rule }) => rule)).not.toContain("DISGUISED_WORDS");
}, 5_000);
