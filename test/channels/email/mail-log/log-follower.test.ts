import { afterEach, expect, test } from "bun:test";
import {
  appendFileSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type FollowerNote, LogFollower } from "../../../../src/channels/email/mail-log/log-follower.ts";
import type { LogPlace } from "../../../../src/channels/email/mail-log/log-place.ts";
import type { Clock } from "../../../../src/domain/clock.ts";
import { systemClock } from "../../../../src/runtime/system-clock.ts";
import { eventually } from "../../../support/eventually.ts";

const running: LogFollower[] = [];
const folders: string[] = [];

afterEach(async () => {
  for (const follower of running.splice(0)) await follower.stop();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function newLog(text?: string): string {
  const folder = mkdtempSync(join(tmpdir(), "waybill-log-"));
  folders.push(folder);
  const path = join(folder, "maillog");
  if (text !== undefined) writeFileSync(path, text);
  return path;
}

/** Lines such that no two logs begin with the same one. */
function someLines(name: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, i) => `${name} line ${i} ${"of this log".repeat(3)}`);
}

function joinLines(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join("");
}

/** Time passes only while the follower waits, and then quickly. */
class PollingClock implements Clock {
  private onPoll: (nowMs: number) => void = () => {};
  private ms = 0;

  /** Does the work once that much time has passed. */
  after(delayMs: number, work: () => void): Promise<void> {
    const dueMs = this.ms + delayMs;
    return new Promise((resolve) => {
      this.onPoll = (nowMs) => {
        if (nowMs < dueMs) return;
        this.onPoll = () => {};
        work();
        resolve();
      };
    });
  }

  nowMs(): number {
    return this.ms;
  }

  monotonicMs(): number {
    return this.ms;
  }

  setTimer(delayMs: number, run: () => void) {
    const timer = setTimeout(() => {
      this.ms += delayMs;
      this.onPoll(this.ms);
      run();
    }, 1);
    return { cancel: () => clearTimeout(timer) };
  }
}

class Reading {
  readonly lines: string[] = [];
  readonly notes: FollowerNote["kind"][] = [];
  place: LogPlace | null;
  readonly follower: LogFollower;

  constructor(path: string, place: LogPlace | null = null, clock: Clock = systemClock) {
    this.place = place;
    this.follower = new LogFollower({
      path,
      place,
      clock,
      onLines: async (lines, at) => {
        this.lines.push(...lines);
        this.place = at;
      },
      onNote: ({ kind }) => {
        if (kind !== "readable") this.notes.push(kind);
      },
    });
    running.push(this.follower);
    this.follower.start();
  }

  async hasRead(expected: readonly string[]): Promise<void> {
    await eventually(`${expected.length} lines are read`, () => this.lines.length >= expected.length, 15_000);
    expect(this.lines).toEqual([...expected]);
  }
}

test("what is appended is read, each line once and when it is whole", async () => {
  const path = newLog("one\ntwo\nthr");
  const reading = new Reading(path);
  await reading.hasRead(["one", "two"]);
  appendFileSync(path, "ee");
  appendFileSync(path, "\nfour\nfi");
  await reading.hasRead(["one", "two", "three", "four"]);
  expect(reading.place?.offset).toBe("one\ntwo\nthree\nfour\n".length);
});

test("a log that is not there yet is said to be unreadable, and waited for", async () => {
  const path = newLog();
  const reading = new Reading(path);
  await eventually("it is missed", () => reading.notes.length > 0);
  appendFileSync(path, "one\n");
  await reading.hasRead(["one"]);
  expect(new Set(reading.notes)).toEqual(new Set(["unreadable"]));
});

test("a renamed log is read to its end, also what comes late, before the new one", async () => {
  const [old, late, fresh] = [someLines("old", 50), someLines("late", 3), someLines("new", 50)];
  const path = newLog(joinLines(old));
  const reading = new Reading(path);
  await reading.hasRead(old);
  renameSync(path, `${path}.1`);
  writeFileSync(path, joinLines(fresh));
  appendFileSync(`${path}.1`, joinLines(late));
  await reading.hasRead([...old, ...late, ...fresh]);
  expect(reading.notes).toEqual(["rotated"]);
}, 90_000);

test.each([0, 60_000])(
  "a renamed log that was quiet for %d ms is still read when its writer learns of the rotation a second later",
  async (quietMs) => {
    const [old, late, fresh] = [someLines("old", 5), someLines("late", 3), someLines("new", 5)];
    const path = newLog(joinLines(old));
    const clock = new PollingClock();
    const reading = new Reading(path, null, clock);
    await reading.hasRead(old);
    await clock.after(quietMs, () => {
      renameSync(path, `${path}.1`);
      writeFileSync(path, joinLines(fresh));
    });
    await clock.after(1_000, () => appendFileSync(`${path}.1`, joinLines(late)));
    await reading.hasRead([...old, ...late, ...fresh]);
  },
);

test("the last line of a renamed log is read although its line break never came", async () => {
  const path = newLog("one\ntwo");
  const reading = new Reading(path);
  await reading.hasRead(["one"]);
  renameSync(path, `${path}-20261121`);
  writeFileSync(path, "three\n");
  await reading.hasRead(["one", "two", "three"]);
}, 90_000);

test("a log that is emptied in its place is read from its start again", async () => {
  const path = newLog(joinLines(someLines("old", 20)));
  const reading = new Reading(path);
  await reading.hasRead(someLines("old", 20));
  truncateSync(path, 0);
  appendFileSync(path, "new\n");
  await reading.hasRead([...someLines("old", 20), "new"]);
  expect(reading.notes).toContain("truncated");
}, 90_000);

test("a log that was emptied and has outgrown the place is not read from its middle", async () => {
  const [old, fresh] = [someLines("old", 20), someLines("new", 60)];
  const path = newLog(joinLines(old));
  const first = new Reading(path);
  await first.hasRead(old);
  await first.follower.stop();
  writeFileSync(path, joinLines(fresh));
  const second = new Reading(path, first.place);
  await second.hasRead(fresh);
}, 90_000);

test("what was written between the last look and a copy-and-truncate is read from the copy", async () => {
  const [old, late, fresh] = [someLines("old", 20), someLines("late", 20), someLines("new", 5)];
  const path = newLog(joinLines(old));
  const first = new Reading(path);
  await first.hasRead(old);
  await first.follower.stop();
  appendFileSync(path, joinLines(late));
  copyFileSync(path, `${path}.1`);
  truncateSync(path, 0);
  appendFileSync(path, joinLines(fresh));
  const second = new Reading(path, first.place);
  await second.hasRead([...late, ...fresh]);
  expect(second.notes).not.toContain("lost");
}, 90_000);

test("a follower that comes back after several rotations reads all that came in the meantime, in order", async () => {
  const all = ["one", "two", "three", "four"].map((name) => someLines(name, 30));
  const path = newLog(joinLines(all[0]?.slice(0, 10) ?? []));
  const first = new Reading(path);
  await first.hasRead(all[0]?.slice(0, 10) ?? []);
  await first.follower.stop();
  appendFileSync(path, joinLines(all[0]?.slice(10) ?? []));
  for (const [i, lines] of all.slice(1).entries()) {
    // Their names are not in order of time; only their times of writing are.
    utimesSync(path, 1_800_000_000 + i, 1_800_000_000 + i);
    renameSync(path, `${path}.${i === 1 ? "a" : i + 1}`);
    writeFileSync(path, joinLines(lines));
  }
  mkdirSync(`${path}.d`);
  const second = new Reading(path, first.place);
  await second.hasRead(all.flat().slice(10));
}, 90_000);

test("a log that was rotated out of sight is said to be lost, and the one that is there is read", async () => {
  const path = newLog(joinLines(someLines("old", 20)));
  const first = new Reading(path);
  await first.hasRead(someLines("old", 20));
  await first.follower.stop();
  renameSync(path, `${path}.1.gz`);
  writeFileSync(path, "new\n");
  const second = new Reading(path, first.place);
  await second.hasRead(["new"]);
  expect(second.notes).toContain("lost");
}, 90_000);

test("bytes that are no text, and lines without end, harm nothing but themselves", async () => {
  const path = newLog();
  writeFileSync(
    path,
    Buffer.concat([Buffer.from("one\n"), Buffer.from([0xff, 0xfe, 0, 0xc3, 0x28, 0x0a]), Buffer.from("two\n")]),
  );
  appendFileSync(path, `${"x".repeat(1_000_000)}`);
  const reading = new Reading(path);
  await eventually("the beginning is read", () => reading.lines.length === 3);
  appendFileSync(path, `${"x".repeat(1_000_000)}\nthree\n`);
  await eventually("the end is read", () => reading.lines.length === 4);
  expect(reading.lines.filter((line) => /^[a-z]+$/.test(line))).toEqual(["one", "two", "three"]);
  expect(reading.place?.offset).toBe(2_000_021);
}, 90_000);

test("while a line is being taken nothing more is read, and stopping waits for it", async () => {
  const path = newLog(joinLines(someLines("much", 5_000)));
  const { promise, resolve } = Promise.withResolvers<void>();
  let taken = 0;
  const follower = new LogFollower({
    path,
    place: null,
    clock: systemClock,
    onLines: async () => {
      taken += 1;
      await promise;
    },
    onNote: () => {},
  });
  follower.start();
  await eventually("the first lines are taken", () => taken === 1);
  const stopped = follower.stop();
  resolve();
  await stopped;
  expect(taken).toBe(1);
});
