import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { identifyProgram } from "../../../src/channels/email/links/known-programs.ts";
import { formatMessageId } from "../../../src/channels/email/message-id.ts";
import { MailReports } from "../../../src/channels/email/reports/mail-reports.ts";
import { judgeRefusal } from "../../../src/domain/channels/mail-refusals.ts";
import type { DeliveryReport } from "../../../src/domain/jobs/report.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { linkTokens } from "./email-world.ts";

/* Replies of real mail servers with the right answer: each case is a line or a file (docs/design/email.md). */

const CORPUS = join(import.meta.dir, "corpus");
const JOB = "0199a000-0000-7000-8000-00000000abcd";

function filesIn(folder: string): readonly (readonly [name: string, text: string])[] {
  const path = join(CORPUS, folder);
  return readdirSync(path).map((name) => [name, readFileSync(join(path, name), "latin1")] as const);
}

describe("a server's reply suppresses exactly those who are gone", () => {
  test.each(filesIn("replies"))("%s", (_name, text) => {
    const lines = Buffer.from(text, "latin1").toString("utf8").split("\n");
    const cases = lines.filter((line) => line !== "" && !line.startsWith("#"));
    const wrong = cases.filter((line) => {
      const [answer, ...rest] = line.split("\t");
      const [enhancedCode = null, command = null, provider = null, reply] = rest.map((each) =>
        each === "-" ? null : each,
      );
      const said = (reply ?? "").replaceAll("\\n", "\n");
      return judgeRefusal({ text: said, enhancedCode, command, provider }).isGone !== (answer === "bounced");
    });
    expect({ cases: cases.length > 0, wrong }).toEqual({ cases: true, wrong: [] });
  });
});

describe("a program that opens messages or follows links is told by its name", () => {
  test.each(filesIn("user-agents"))("%s", (_name, text) => {
    const cases = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    const wrong = cases.filter((line) => {
      const [answer, name, userAgent = ""] = line.split("\t");
      const program = identifyProgram(userAgent);
      return (program?.isMachine ?? false) !== (answer === "machine") || (program?.name ?? "-") !== name;
    });
    expect({ cases: cases.length > 0, wrong }).toEqual({ cases: true, wrong: [] });
  });
});

describe.each(["reports", "complaints"])("mail that came back is read: %s", (folder) => {
  test.each(filesIn(folder))("%s", async (_name, text) => {
    const { answer, says, recipient, message } = parseCase(text);
    for (const source of [message, message.replaceAll("\n", "\r\n")]) {
      const { reports, results } = await taken(Buffer.from(source, "latin1"));
      const [report] = reports;
      const [type = "", suppressed = null] = answer.split(" ");
      const counted = type === "nothing" || type === "unreadable" ? type : "taken";
      expect([results, reports.map((each) => each.type)]).toEqual([[counted], counted === "taken" ? [type] : []]);
      expect([report?.jobId ?? JOB, report?.suppressRecipient ?? null]).toEqual([JOB, suppressed && recipient]);
      expect(String(report?.result["diagnostic"] ?? report?.result["error"] ?? "")).toContain(says);
    }
  });
});

/** A file's header, and its message with the job's own addresses, one byte per character. */
function parseCase(text: string) {
  const end = text.indexOf("\n\n");
  const head = Buffer.from(text.slice(0, end), "latin1").toString("utf8");
  const fields = new Map(head.split("\n").map((line) => line.split(/: (.*)/s, 2) as [string, string]));
  const recipient = fields.get("recipient") ?? "ann@far.test";
  const link = linkTokens.sign({ purpose: "unsubscribe", tenantId: "acme", jobId: JOB, recipient });
  const message = text
    .slice(end + 2)
    .replaceAll("{{message-id}}", formatMessageId(JOB, "acme", "example.com"))
    .replaceAll("{{return-path}}", `b+${JOB}@bounce.example.com`)
    .replaceAll("{{link}}", link);
  return { answer: fields.get("answer") ?? "", says: fields.get("says") ?? "", recipient, message };
}

async function taken(source: Uint8Array) {
  const reports: DeliveryReport[] = [];
  const results: unknown[] = [];
  const telemetry = new QuietTelemetry();
  const count = (_name: string, labels: Readonly<Record<string, string>> = {}) => void results.push(labels["result"]);
  const reader = new MailReports({
    reports: { take: async (report) => void reports.push(report) },
    links: linkTokens,
    owners: { findOwner: async (jobId) => (jobId === JOB ? "acme" : null) },
    clock: systemClock,
    telemetry: Object.assign(telemetry, { count }),
  });
  await reader.take(source);
  return { reports, results };
}
