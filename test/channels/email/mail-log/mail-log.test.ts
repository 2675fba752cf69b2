import { afterEach, expect, test } from "bun:test";
import { appendFileSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MailLog } from "../../../../src/channels/email/mail-log/mail-log.ts";
import { formatMessageId, recipientMark } from "../../../../src/channels/email/message-id.ts";
import type { DeliveryReport } from "../../../../src/domain/jobs/report.ts";
import type { Labels } from "../../../../src/domain/telemetry.ts";
import { systemClock } from "../../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../../src/runtime/system-random.ts";
import { eventually } from "../../../support/eventually.ts";
import { QuietTelemetry } from "../../../support/quiet-telemetry.ts";

class CountingTelemetry extends QuietTelemetry {
  readonly counts = new Map<string, number>();
  readonly gauges = new Map<string, number>();
  /** Lines of the mail log that the log shows. */
  readonly shown: string[] = [];
  override count(name?: string, labels: Labels = {}, by = 1): void {
    const key = [name, ...Object.values(labels)].join(" ");
    this.counts.set(key, (this.counts.get(key) ?? 0) + by);
  }
  override log(level: string, message: string, fields: Readonly<{ line?: unknown }> = {}): void {
    this.lines.push(`${level}: ${message}`);
    if (fields.line !== undefined) this.shown.push(String(fields.line));
  }
  override gauge(name?: string, value = 0): void {
    this.gauges.set(name ?? "", value);
  }
}

const stops: (() => unknown)[] = [];
const folders: string[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "waybill-maillog-"));
  folders.push(folder);
  return folder;
}

/** A log in a folder of its own, and the reports made from it. */
class World {
  readonly folder = newFolder();
  readonly path = join(this.folder, "maillog");
  readonly reports: DeliveryReport[] = [];
  readonly telemetry = new CountingTelemetry();
  mailLog = this.newMailLog();
  /** Runs before a report is taken. */
  take: (report: DeliveryReport) => Promise<void> = async () => {};

  async restart(): Promise<void> {
    await this.mailLog.stop();
    this.mailLog = this.newMailLog();
    this.mailLog.start();
  }

  write(...lines: readonly string[]): void {
    appendFileSync(this.path, lines.map((line) => `Nov 21 02:07:58 mx ${line}\n`).join(""));
  }

  /** Resolves when that many lines have been read in all. */
  async hasRead(lines: number): Promise<void> {
    await eventually(`${lines} lines are read`, () => this.telemetry.counts.get("mail_log_lines") === lines);
  }

  private newMailLog(): MailLog {
    const mailLog = new MailLog({
      path: this.path,
      home: join(this.folder, "home"),
      clock: systemClock,
      random: systemRandom,
      telemetry: this.telemetry,
      owners: { findOwner: async (jobId) => (jobId === buildJobId(1) ? "acme" : null) },
      onReport: async (report) => {
        await this.take(report);
        this.reports.push(report);
      },
    });
    stops.push(() => mailLog.stop());
    return mailLog;
  }
}

function buildJobId(i: number): string {
  return `0199a000-0000-7000-8000-${i.toString(16).padStart(12, "0")}`;
}

function named(queueId: string, i: number, instance = "postfix"): string {
  return `${instance}/cleanup[1]: ${queueId}: message-id=${formatMessageId(buildJobId(i), "acme", "example.com")}`;
}

function sent(queueId: string, reply = "250 2.0.0 Ok", instance = "postfix"): string {
  return `${instance}/smtp[2]: ${queueId}: to=<ann@far.test>, relay=mx[192.0.2.1]:25, delay=1, dsn=2.0.0, status=sent (${reply})`;
}

test("a real log is understood without a single line misjudged", async () => {
  const world = new World();
  // Which Message-ID belongs to which job, and the outcome that a person reads in the log.
  const outcomes: Readonly<Record<string, readonly string[]>> = {
    "job-ok": ["delivered"],
    "job-nouser": ["bounced nouser@good.test", "bounced nouser@good.test"],
    "job-full": ["failed"],
    "job-grey": ["failed"],
    "job-nodsn": ["bounced nodsn@good.test"],
    "job-policy": ["failed"],
    "job-x": ["failed"],
    "job-very.long+tag": ["delivered"],
    "job-ok2": ["delivered"],
    "e9ee2c20-a09c-135a-1567-1c12b7546558": ["bounced nouser@good.test", "delivered"],
    "e193bfba-0deb-eef7-5664-1f47fef77b03": ["delivered"],
  };
  const names = Object.keys(outcomes);
  const log = readFileSync(join(import.meta.dir, "postfix.maillog"), "utf8").replace(
    /message-id=<([^@>]+)@(?:mx\.)?platform\.test>/g,
    (whole, name: string) =>
      names.includes(name)
        ? `message-id=${formatMessageId(buildJobId(names.indexOf(name)), "acme", "example.com")}`
        : whole,
  );
  writeFileSync(world.path, log);
  world.mailLog.start();
  await world.hasRead(log.trimEnd().split("\n").length);
  const found: Record<string, string[]> = Object.fromEntries(names.map((name) => [name, []]));
  for (const { jobId, tenantId, type, suppressRecipient } of world.reports) {
    expect(tenantId).toBe("acme");
    const name = names[Number.parseInt(jobId.slice(-12), 16)] ?? "";
    found[name]?.push(suppressRecipient === null ? type : `${type} ${suppressRecipient}`);
  }
  expect(found).toEqual(outcomes as typeof found);
  expect(world.telemetry.counts.get("mail_log_outcomes unmatched")).toBeUndefined();
  expect(world.telemetry.counts.get("mail_log_lines_unreadable")).toBe(0);
});

test("a message that the MTA gives up ends as failed, with the reason of its last deferral", async () => {
  const world = new World();
  const deferred = (why: string) =>
    `postfix/smtp[2]: 4jWcZx67mFzMCQZ: to=<ann@far.test>, relay=none, delay=1, dsn=4.4.1, status=deferred (${why})`;
  world.write(
    named("4jWcZx67mFzMCQZ", 1),
    deferred("first"),
    deferred("connect to mx[192.0.2.1]:25: Connection refused"),
  );
  world.mailLog.start();
  await world.hasRead(3);
  expect(world.reports).toEqual([]);
  await world.restart();
  world.write("postfix/qmgr[1]: 4jWcZx67mFzMCQZ: from=<a@b.test>, status=expired, returned to sender");
  await eventually("it is reported", () => world.reports.length === 1);
  expect(world.reports[0]).toMatchObject({ jobId: buildJobId(1), type: "failed", suppressRecipient: null });
  expect(String(world.reports[0]?.result["error"])).toEndWith(": connect to mx[192.0.2.1]:25: Connection refused");
});

test("of a message with copies, each outcome names whose it is, over a restart, and a give-up everybody who was put off", async () => {
  const world = new World();
  const id = formatMessageId(buildJobId(1), "acme", "example.com", recipientMark("Ann@far.test"));
  const to = (address: string, status: string) =>
    `postfix/smtp[2]: 4jWcZx67mFzMCQZ: to=<${address}>, relay=mx[192.0.2.1]:25, delay=1, ${status}`;
  const deferred = "dsn=4.4.1, status=deferred (host is away)";
  world.write(
    `postfix/cleanup[1]: 4jWcZx67mFzMCQZ: message-id=${id}`,
    to(
      "bob@far.test",
      "dsn=5.1.1, status=bounced (host mx[192.0.2.1] said: 550 5.1.1 no such user (in reply to RCPT TO command))",
    ),
    to("cy@far.test", deferred),
    to("Ann@far.test", deferred),
    to("dan@far.test", deferred),
  );
  world.mailLog.start();
  await world.hasRead(5);
  await world.restart();
  world.write(to("dan@far.test", "dsn=2.0.0, status=sent (250 2.0.0 Ok)"));
  world.write("postfix/qmgr[1]: 4jWcZx67mFzMCQZ: from=<a@b.test>, status=expired, returned to sender");
  await eventually("all are reported", () => world.reports.length === 4);
  const told = world.reports.map(
    ({ type, result, suppressRecipient }) => `${type} ${String(result["recipient"])} ${suppressRecipient}`,
  );
  expect(told.toSorted()).toEqual([
    "bounced bob@far.test bob@far.test",
    "delivered dan@far.test null",
    "failed cy@far.test null",
    "failed undefined null",
  ]);
});

test("a line finds its message after a restart, and a line that was reported is not read again", async () => {
  const world = new World();
  world.write(named("4jWcZx67mFzMCQZ", 1), named("4jWcZx6zzzzMCQZ", 2), sent("4jWcZx67mFzMCQZ"));
  world.mailLog.start();
  await eventually("the first is reported", () => world.reports.length === 1);
  await world.restart();
  world.write(sent("4jWcZx6zzzzMCQZ"));
  await eventually("the second is reported", () => world.reports.length === 2);
  expect(world.reports.map(({ jobId }) => jobId)).toEqual([buildJobId(1), buildJobId(2)]);
  expect(world.telemetry.counts.get("mail_log_lines")).toBe(4);
});

test("a report that was not accepted is made again after a restart, although later ones were accepted", async () => {
  const world = new World();
  world.take = ({ jobId }) => (jobId === buildJobId(1) ? new Promise(() => {}) : Promise.resolve());
  world.write(named("4jWcZx67mFzMCQZ", 1), sent("4jWcZx67mFzMCQZ"), "postfix/qmgr[1]: 4jWcZx67mFzMCQZ: removed");
  world.mailLog.start();
  await world.hasRead(3);
  world.write(named("4jWcZx6zzzzMCQZ", 2), sent("4jWcZx6zzzzMCQZ"));
  await eventually("the later one is reported", () => world.reports.length === 1);
  world.take = async () => {};
  await world.restart();
  await eventually("both are reported", () => world.reports.length === 3);
  expect(world.reports.map(({ jobId }) => jobId)).toEqual([buildJobId(2), buildJobId(1), buildJobId(2)]);
});

test("a report that is refused is repeated", async () => {
  const world = new World();
  let tries = 0;
  world.take = async () => {
    tries += 1;
    if (tries === 1) throw new Error("not now");
  };
  world.write(named("4jWcZx67mFzMCQZ", 1), sent("4jWcZx67mFzMCQZ"));
  world.mailLog.start();
  await eventually("it is reported", () => world.reports.length === 1);
  expect(tries).toBe(2);
});

test("while reports are not accepted the log is not read further, which bounds memory", async () => {
  const world = new World();
  world.take = () => new Promise(() => {});
  const lines = Array.from({ length: 20_000 }, (_, i) => {
    const queueId = `4jWc${i
      .toString()
      .padStart(8, "0")
      .replaceAll(/[AEIOUaeiou]/g, "B")}`;
    return [named(queueId, i), sent(queueId)];
  }).flat();
  world.write(...lines);
  world.mailLog.start();
  await eventually("the log is waiting", () => (world.telemetry.gauges.get("mail_log_lag_bytes") ?? 0) > 0);
  expect(world.telemetry.counts.get("mail_log_lines")).toBeLessThan(5_000);
});

test("a queue id that comes back stands for the new message, and ids of two instances are apart", async () => {
  const world = new World();
  world.write(named("4014A26E3FF", 1), sent("4014A26E3FF"), "postfix/qmgr[1]: 4014A26E3FF: removed");
  world.write(named("4014A26E3FF", 2), named("4014A26E3FF", 3, "postfix-out"));
  world.write(sent("4014A26E3FF"), sent("4014A26E3FF", "250 Ok", "postfix-out"));
  world.mailLog.start();
  await world.hasRead(7);
  expect(world.reports.map(({ jobId }) => jobId)).toEqual([buildJobId(1), buildJobId(2), buildJobId(3)]);
});

test("a message that a filter put back into a queue here is delivered when it leaves for good, and not before", async () => {
  const world = new World();
  world.write(named("4jWcZx67mFzMCQZ", 1), named("4jWcZx6zzzzMCQZ", 1, "postfix-out"));
  world.write(
    sent("4jWcZx6zzzzMCQZ", "250 2.0.0 Ok: queued as 4jWcZx67mFzMCQZ at far.test", "postfix-out"),
    "postfix-out/qmgr[1]: 4jWcZx6zzzzMCQZ: removed",
    sent("4jWcZx67mFzMCQZ", "250 2.0.0 Ok: queued as 4jWcZx6zzzzMCQZ"),
  );
  world.mailLog.start();
  await world.hasRead(5);
  expect(world.reports).toEqual([]);
  world.write(named("4jWcZx68888MCQZ", 2), sent("4jWcZx68888MCQZ", "250 2.0.0 Ok: queued as 4jWcZx67mFzMCQZ"));
  await eventually("another message's is reported", () => world.reports.length === 1);
});

test("other senders' mail belongs to no job, and a message that the log never named is unmatched", async () => {
  const world = new World();
  world.write("postfix/cleanup[1]: 4jWcZx67mFzMCQZ: message-id=<1@example.com>", sent("4jWcZx67mFzMCQZ"));
  world.write(
    sent("4jWcZx6zzzzMCQZ"),
    "nothing that Postfix would say",
    "postfix/smtp[1]: 4jWcZx67mFzMCQZ: to=<x>, what?",
  );
  world.mailLog.start();
  await world.hasRead(5);
  expect(world.reports).toEqual([]);
  expect(Object.fromEntries(world.telemetry.counts)).toEqual({
    mail_log_lines: 5,
    "mail_log_outcomes foreign": 1,
    "mail_log_outcomes unmatched": 1,
    mail_log_lines_unreadable: 1,
  });
});

test("lines in an unknown form are counted, and the first of them is a line at warn without its recipient", async () => {
  const world = new World();
  const unknown = "postfix/smtp[1]: 4jWcZx67mFzMCQZ: to=<ann@far.test>, relay=x, dsn=2.0.0, status=teleported (yes)";
  world.write(...Array.from({ length: 20 }, () => unknown));
  world.mailLog.start();
  await world.hasRead(20);
  expect(world.telemetry.counts.get("mail_log_lines_unreadable")).toBe(20);
  expect(world.telemetry.lines.filter((line) => line.startsWith("warn: "))).toHaveLength(1);
  expect(world.telemetry.shown).toEqual([expect.stringContaining("to=<a***@far.test>, relay=x")]);
});

test("killed again and again, over a rotation, it reports every message", async () => {
  const folder = newFolder();
  const [path, home, out] = [join(folder, "maillog"), join(folder, "home"), join(folder, "reports")];
  const reported = () => new Set(existsSync(out) ? readFileSync(out, "utf8").split("\n").filter(Boolean) : []);
  let child: Bun.Subprocess | null = null;
  const start = () => {
    child = Bun.spawn([process.execPath, join(import.meta.dir, "run-mail-log.ts"), path, home, out]);
  };
  const kill = async () => {
    child?.kill("SIGKILL");
    await child?.exited;
  };
  stops.push(kill);
  const JOBS = 3_000;
  const lines: string[] = [];
  for (let i = 0; i < JOBS; i++) {
    const queueId = `4jWc${i.toString().padStart(8, "0").replaceAll(/0/g, "Z")}`;
    lines.push(named(queueId, i));
    // The outcome of a message comes long after its name.
    if (i >= 1_000) lines.push(sent(`4jWc${(i - 1_000).toString().padStart(8, "0").replaceAll(/0/g, "Z")}`));
  }
  for (let i = JOBS - 1_000; i < JOBS; i++)
    lines.push(sent(`4jWc${i.toString().padStart(8, "0").replaceAll(/0/g, "Z")}`));
  const text = lines.map((line) => `Nov 21 02:07:58 mx ${line}\n`);
  for (let part = 0; part < 4; part++) {
    if (part === 2) renameSync(path, `${path}.1`);
    // Cut in the middle of a line.
    const [from, to] = [part, part + 1].map((edge) => Math.floor((text.length * edge) / 4));
    const piece = text.slice(from, to).join("");
    appendFileSync(path, piece.slice(0, piece.length / 2));
    const before = reported().size;
    start();
    appendFileSync(path, piece.slice(piece.length / 2));
    if (part > 0) await eventually("some are reported", () => reported().size > before + 50, 20_000);
    if (part < 3) await kill();
  }
  await eventually("all are reported", () => reported().size === JOBS, 30_000);
  expect([...reported()].every((line) => line.endsWith(" delivered"))).toBe(true);
}, 300_000);

test("a log that is not there is told of once, and once more when it is", async () => {
  const world = new World();
  world.mailLog.start();
  await eventually("it is missed", () => world.telemetry.gauges.get("mail_log_up") === 0);
  expect(world.mailLog.health()).toEqual({ up: false, sinceMs: expect.any(Number) });
  // It is looked up repeatedly meanwhile.
  await eventually("several looks", () => (world.telemetry.counts.get("mail_log_notes unreadable") ?? 0) > 3);
  expect(world.telemetry.lines).toEqual([
    `error: the mail log ${world.path} cannot be read: what becomes of mail is not known meanwhile`,
  ]);
  world.write(named("A1B2C3D4E5", 1), sent("A1B2C3D4E5"));
  await eventually("its line is read", () => world.reports.length === 1);
  expect(world.telemetry.gauges.get("mail_log_up")).toBe(1);
  expect(world.mailLog.health().up).toBe(true);
  expect(world.telemetry.lines.slice(1)).toEqual([`info: the mail log ${world.path} is read again`]);
});

test("a log that is taken away and does not come back is missed, one that is rotated is not", async () => {
  const world = new World();
  world.write(named("A1B2C3D4E5", 1));
  world.mailLog.start();
  await world.hasRead(1);
  renameSync(world.path, `${world.path}.1`);
  world.write(sent("A1B2C3D4E5"));
  await eventually("its line is read", () => world.reports.length === 1);
  expect(world.telemetry.lines.filter((line) => line.startsWith("error"))).toEqual([]);
  rmSync(world.path);
  await eventually("it is missed", () => !world.mailLog.health().up, 15_000);
}, 90_000);

test("a message that keeps its own Message-ID is known by its return path, and its tenant by the job", async () => {
  const world = new World();
  world.mailLog.start();
  for (const [queueId, job] of [
    ["4jWcZx67mFzMCQZ", buildJobId(1)],
    ["4jWcZx67mFzMCQY", buildJobId(2)],
  ]) {
    world.write(
      `postfix/cleanup[1]: ${queueId}: message-id=<their@own.test>`,
      `postfix/qmgr[1]: ${queueId}: from=<b+${job}@bounce.shop.test>, size=719, nrcpt=1 (queue active)`,
      `postfix/smtp[1]: ${queueId}: to=<a@b.test>, relay=mx.b.test[192.0.2.1]:25, delay=1, delays=0/0/0/1, dsn=2.0.0, status=sent (250 ok)`,
    );
  }
  await world.hasRead(6);
  await eventually("it is reported", () => world.reports.length === 1);
  // The other job has no owner.
  expect(world.reports).toMatchObject([{ jobId: buildJobId(1), tenantId: "acme", type: "delivered" }]);
});
