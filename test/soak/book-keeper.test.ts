import { beforeEach, describe, expect, test } from "bun:test";
import { EVENT_EPOCH_MS } from "../../src/domain/jobs/event.ts";
import { Book, type ExportedEvent, type Message } from "./book.ts";
import { EventAudit } from "./event-audit.ts";
import { FaultLog } from "./fault-log.ts";
import { incomingVerdict } from "./incoming-audit.ts";
import { type AskedJob, judge } from "./judge.ts";

let nowMs: number;
let book: Book;
let faults: FaultLog;
let lines: ExportedEvent[];
let asked: Map<string, AskedJob>;
let nextEvent: number;

beforeEach(() => {
  nowMs = 1_000_000;
  nextEvent = 1;
  book = new Book(() => nowMs);
  faults = new FaultLog(() => nowMs);
  lines = [];
  asked = new Map();
});

/** A message that was accepted, arrived and has its event. */
function good(channel: Message["channel"] = "email"): Message {
  const message = accepted(channel);
  book.arrived(message.seq, channel === "email" ? message.jobId : null);
  record(message, "sent");
  return message;
}

function accepted(channel: Message["channel"] = "email", aim: Message["aim"] = "sent"): Message {
  const message = book.ask("acme", channel, aim);
  book.answered(message, 202, `job-${message.seq}`);
  return message;
}

function record({ jobId, tenant, channel }: Message, type: ExportedEvent["event_type"], id = nextEvent++): void {
  lines.push({ tenant_id: tenant, event_id: id, job_id: jobId ?? "", channel, event_type: type, result: {} });
}

/** The promises that the book-keeper reports as broken. */
function broken(): readonly string[] {
  const events = new EventAudit(book);
  for (const line of lines) events.take(line);
  return judge({ book, events, faults, asked }, 1).flatMap((one) => (one.broken.length > 0 ? [one.promise] : []));
}

test("a run in which everything went as promised breaks no promise", () => {
  for (let n = 0; n < 20; n += 1) good(n % 2 === 0 ? "email" : "whatsapp");
  const unknown = book.ask("acme", "email");
  book.answered(unknown, 0, null);
  book.arrived(unknown.seq, "job-of-nobody");
  const refused = book.ask("acme", "email");
  book.answered(refused, 429, null);
  record(accepted("email", "suppressed"), "suppressed");
  expect(broken()).toEqual([]);
});

describe("the book-keeper notices", () => {
  test("a message that was accepted and never ended", () => {
    good();
    const lost = accepted();
    asked.set(lost.jobId ?? "", { status: "404", result: "", waitsFor: null });
    expect(broken()).toEqual(["nothing accepted is lost"]);
  });

  test("a job that waits for its turn although all faults are over", () => {
    asked.set(accepted().jobId ?? "", { status: "pending", result: "", waitsFor: "turn" });
    expect(broken()).toEqual(["nothing accepted is lost"]);
  });

  test("a message that is called sent and never arrived", () => {
    record(accepted(), "sent");
    expect(broken()).toEqual(["what is called sent has arrived"]);
  });

  test("a second sending without a cause, and takes it where a process had died meanwhile", () => {
    const message = good();
    nowMs += 5_000;
    const again = () => book.arrived(message.seq, message.jobId);
    again();
    expect(broken()).toEqual(["nothing is sent twice without a cause"]);
    // A death long before, one after both, and a slow Redis are no excuse.
    nowMs -= 200_000;
    faults.at("kill -9", "main", "died");
    nowMs += 195_500;
    faults.end(faults.begin("Redis is silent", "redis"));
    nowMs += 60_000;
    faults.at("kill -9", "main", "died");
    expect(broken()).toEqual(["nothing is sent twice without a cause"]);
    nowMs -= 58_000;
    faults.at("kill -9", "main", "died");
    expect(broken()).toEqual([]);
  });

  test("more repeats than a process can have had in its hands", () => {
    const messages = Array.from({ length: 305 }, () => good());
    faults.at("kill -9", "main", "died");
    nowMs += 1_000;
    for (const { seq, jobId } of messages) book.arrived(seq, jobId);
    expect(broken()).toEqual(["a process that dies repeats no more than it may"]);
  });

  test("chat that is repeated before the provider could report, though its answer was lost", () => {
    const message = accepted("whatsapp");
    book.arrived(message.seq, null, true);
    nowMs += 60_000;
    book.arrived(message.seq, null);
    record(message, "sent");
    expect(broken()).toEqual(["nothing is sent twice without a cause"]);
    nowMs += 600_000;
    const patient = accepted("whatsapp");
    book.arrived(patient.seq, null, true);
    nowMs += 600_000;
    book.arrived(patient.seq, null);
    record(patient, "sent");
    faults.begin("chat is silent", "chat", "unanswered", "email");
    expect(broken()).toEqual(["nothing is sent twice without a cause"]);
  });

  test("one request that became two jobs", () => {
    const message = good();
    faults.at("kill -9", "main", "died");
    nowMs += 1_000;
    book.arrived(message.seq, "job-another");
    expect(broken()).toEqual(["nothing is sent twice without a cause", "nothing comes from nowhere"]);
  });

  test("an Idempotency-Key that made two jobs", () => {
    book.answered(good(), 202, "job-another");
    expect(broken()).toEqual(["an Idempotency-Key makes one job"]);
  });

  test("a refused message that arrives", () => {
    const message = book.ask("acme", "email");
    book.answered(message, 422, null);
    book.arrived(message.seq, null);
    expect(broken()).toEqual(["nothing comes from nowhere"]);
  });

  test("jobs that nobody asked for", () => {
    record({ ...good(), jobId: "job-of-nobody" }, "sent");
    expect(broken()).toEqual(["nothing comes from nowhere"]);
  });

  test("an event that is there twice, under one id or another", () => {
    const message = good();
    record(message, "delivered", 70);
    record(message, "opened", 70);
    expect(broken()).toEqual(["every event once, in order"]);
    lines.pop();
    expect(broken()).toEqual([]);
    record(message, "delivered", 71);
    expect(broken()).toEqual(["every event once, in order"]);
  });

  test("a report that became no event", () => {
    book.confirmed.add(good().seq);
    expect(broken()).toEqual(["every report of a provider becomes an event"]);
  });

  test("a status that goes back, or changes after its end", () => {
    const { jobId } = good();
    for (const status of ["pending", "running", "success", "success"]) book.polledJob(jobId ?? "", status);
    expect(broken()).toEqual([]);
    book.polledJob(jobId ?? "", "failed");
    expect(broken()).toEqual(["no status goes back"]);
    book.misdeeds.length = 0;
    book.polledJob("another", "running");
    book.polledJob("another", "pending");
    expect(broken()).toEqual(["no status goes back"]);
  });

  test("a scheduled message that comes early, and a cancelled one that comes", () => {
    const message = good();
    message.dueMs = nowMs + 60_000;
    expect(broken()).toEqual(["scheduled messages come in time, cancelled ones not at all"]);
    message.dueMs = nowMs;
    expect(broken()).toEqual([]);
    // The clock that interpreted its time was wrong by a minute; a step later on is no excuse.
    message.timedMs = [nowMs];
    message.dueMs = nowMs + 50_000;
    nowMs += 10_000;
    const later = faults.begin("clock step", "main");
    later.shiftMs = 60_000;
    faults.end(later);
    expect(broken()).toEqual(["scheduled messages come in time, cancelled ones not at all"]);
    faults.spans.length = 0;
    nowMs -= 10_000;
    faults.begin("clock step", "main").shiftMs = 60_000;
    expect(broken()).toEqual([]);
    // A Redis that was silent for some time is no excuse.
    faults.spans.length = 0;
    const silence = faults.begin("SIGSTOP", "redis");
    nowMs += 30_000;
    faults.end(silence);
    message.timedMs = [nowMs];
    message.dueMs = nowMs + 5_000;
    expect(broken()).toEqual(["scheduled messages come in time, cancelled ones not at all"]);
    message.dueMs = 0;
    message.canceledMs = nowMs;
    expect(broken()).toEqual(["scheduled messages come in time, cancelled ones not at all"]);
  });

  test("a fallback that is sent although its message was sent in time", () => {
    const message = good();
    const fallback = accepted();
    fallback.fallbackOf = message;
    fallback.dueMs = EVENT_EPOCH_MS + 60_000;
    record(fallback, "suppressed");
    expect(broken()).toEqual([]);
    nowMs = fallback.dueMs;
    book.arrived(fallback.seq, fallback.jobId);
    expect(broken()).toEqual(["a fallback is sent only where it is needed"]);
    // It was sent after its fallback's time.
    fallback.dueMs = EVENT_EPOCH_MS;
    expect(broken()).toEqual([]);
  });

  test("an event of a job that was tried again, once too often", () => {
    const message = accepted("email", "refused");
    record(message, "failed");
    record(message, "failed");
    expect(broken()).toEqual(["every event once, in order"]);
    book.retries.set(message.jobId ?? "", 1);
    expect(broken()).toEqual([]);
    record(message, "failed");
    expect(broken()).toEqual(["every event once, in order"]);
  });

  test("a message to a suppressed recipient", () => {
    const message = accepted("email", "suppressed");
    record(message, "suppressed");
    book.arrived(message.seq, message.jobId);
    expect(broken()).toEqual(["nothing is sent to who is suppressed"]);
  });

  test("what somebody wrote, and is not there, or there twice", () => {
    for (const id of ["one", "two"]) book.written.add(id);
    expect(incomingVerdict(book.written, ["two", "one", "without an answer"]).broken).toEqual([]);
    expect(incomingVerdict(book.written, ["one"]).broken).toEqual(["two is not there"]);
    expect(incomingVerdict(book.written, ["one", "two", "two"]).broken).toEqual(["two is there 2 times"]);
  });

  test("a good message that failed", () => {
    record(accepted(), "failed");
    expect(broken()).toEqual(["good messages end as a success"]);
  });

  test("an event that a webhook was not told, one that it was told too late, and one that never was", () => {
    book.told.set("acme", { sinceEventId: 0, taken: new Set(), latest: 0, repeats: 0 });
    good();
    expect(broken()).toEqual(["webhooks are told every event, in order"]);
    book.tookEvents("acme", [1]);
    book.tookEvents("acme", [1]);
    expect(broken()).toEqual([]);
    good();
    good();
    book.tookEvents("acme", [3, 2]);
    expect(broken()).toEqual(["webhooks are told every event, in order"]);
    book.misdeeds.length = 0;
    expect(broken()).toEqual([]);
    book.tookEvents("acme", [4]);
    expect(broken()).toEqual(["webhooks are told every event, in order"]);
  });
});
