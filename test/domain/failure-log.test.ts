import { expect, test } from "bun:test";
import { FailureLog } from "../../src/domain/failure-log.ts";
import { isSampled, JobIds } from "../../src/domain/ids.ts";
import type { Json } from "../../src/domain/texts/json.ts";
import { maskedRecipient, maskedText } from "../../src/domain/texts/masked.ts";
import { SeededRandom } from "../support/seeded-random.ts";
import { VirtualClock } from "../support/virtual-clock.ts";

function open() {
  const clock = new VirtualClock();
  const lines: { message: string; tenant: Json; more: Json }[] = [];
  const log = (_: string, message: string, fields: Readonly<Record<string, Json>> = {}) => {
    lines.push({ message, tenant: fields["tenant_id"] ?? null, more: fields["more"] ?? null });
  };
  return { clock, lines, failures: new FailureLog({ log }, clock) };
}

test("a flood of one tenant has a few lines and a count, and its neighbour's failure is still seen", async () => {
  const { clock, lines, failures } = open();
  for (let at = 0; at < 5_000; at += 1) failures.note("flood", "a job failed", () => ({}));
  failures.note("quiet", "a job failed", () => ({}));
  expect(lines.filter(({ tenant }) => tenant === "flood")).toHaveLength(20);
  expect(lines.filter(({ tenant }) => tenant === "quiet")).toHaveLength(1);
  await clock.advance(60_000);
  expect(lines.slice(21)).toEqual([{ message: "and 4980 more failures of this tenant", tenant: "flood", more: 4980 }]);
  failures.note("flood", "a job failed", () => ({}));
  expect(lines.at(-1)).toMatchObject({ message: "a job failed", tenant: "flood" });
});

test("floods of thousands of tenants cannot fill the disk, and every failure is counted", () => {
  const { lines, failures } = open();
  for (let tenant = 0; tenant < 20_000; tenant += 1) failures.note(`t${tenant}`, "a job failed", () => ({}));
  failures.stop();
  expect(lines.length).toBeLessThan(660);
  const counted = lines.reduce((sum, { more }) => sum + (typeof more === "number" ? more : 1), 0);
  expect(counted).toBe(20_000);
  failures.stop();
  expect(lines.length).toBeLessThan(660);
});

test.each([
  ["ann@example.com", "a***@example.com"],
  ["+34600000089", "+34***89"],
  ["4321", "***"],
])("a log shows %s as %s", (recipient, shown) => {
  expect(maskedRecipient(recipient)).toBe(shown);
});

test("a server's reply loses the addresses that it repeats", () => {
  const reply = "550 5.1.1 <ann@example.com>: unknown; rcpt=bob@example.org, phone 34600000089";
  const shown = "550 5.1.1 <a***@example.com>: unknown; r***@example.org, phone 346***89";
  expect(maskedText(reply)).toBe(shown);
  expect(maskedText("a".repeat(100_000)).length).toBeLessThan(310);
  const long = `${"b".repeat(60)}@x.io `;
  for (let before = 0; before <= 68; before += 1) {
    expect(maskedText(`${"y".repeat(before)} ${long.repeat(8)}ann.smith-jones@example.com`)).not.toContain("smith");
  }
  // An address at the cut.
  for (let before = 280; before <= 300; before += 1) {
    expect(maskedText(`${"x".repeat(before)} ann.smith-jones@example.com`)).not.toContain("smith");
  }
});

test("a share of the jobs is logged, the same ones in every process", () => {
  const ids = new JobIds(new VirtualClock(), new SeededRandom(5));
  const jobs = Array.from({ length: 4_000 }, () => ids.next());
  const chosen = jobs.filter((jobId) => isSampled(jobId, 0.25));
  expect(chosen.length).toBeGreaterThan(850);
  expect(chosen.length).toBeLessThan(1_150);
  expect(jobs.some((jobId) => isSampled(jobId, 0))).toBe(false);
  expect(jobs.every((jobId) => isSampled(jobId, 1))).toBe(true);
  expect(chosen.every((jobId) => isSampled(jobId, 0.5))).toBe(true);
});

test("the chat provider's id of a person is masked in a log, and other words with a dot are not", () => {
  const said = "(#131026) US.13491208655302741918 and br.ENT.11815799212886844830 are not at graph.facebook.com, v25.0";
  expect(maskedText(said)).toBe("(#131026) US.***18 and br.***30 are not at graph.facebook.com, v25.0");
});
