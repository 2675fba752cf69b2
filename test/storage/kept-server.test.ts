import { afterEach, expect, test } from "bun:test";
import { tmpdir } from "node:os";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { KeptServer } from "../../src/storage/kept-server.ts";
import { ServerProcess } from "../../src/storage/server-process.ts";
import { eventually } from "../support/eventually.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";

let kept: KeptServer | null = null;
afterEach(() => kept?.stop());

test("a server that ended for want of room is started again once there is some, however often it was tried before", async () => {
  const [lines, gauges]: [string[], number[]] = [[], []];
  const telemetry = Object.assign(new QuietTelemetry(), {
    log: (_level: string, message: string) => void lines.push(message),
    gauge: (_name: string, value: number) => void gauges.push(value),
  });
  let [room, looks, starts, gone] = [true, 0, 0, ""];
  kept = new KeptServer({
    name: "a server",
    exits: "exits",
    startsMax: 1,
    clock: systemClock,
    telemetry,
    hasRoom() {
      looks += 1;
      return room;
    },
    prepare: async () => undefined,
    make() {
      starts += 1;
      // It ends after a moment, like one that cannot write.
      const command = ["sleep", room ? "60" : "0.01"];
      const answers = async () => undefined;
      const common = { folder: tmpdir(), endsBy: "signal", clock: systemClock, telemetry } as const;
      return new ServerProcess({ ...common, name: "a server", command, answers });
    },
    onGone: (lastWords) => void (gone = `gone: ${lastWords}`),
  });
  await kept.start();
  room = false;
  process.kill(kept.pid, "SIGKILL");
  await eventually("it waits for room", () => looks >= 2, 10_000);
  expect([starts, gone, gauges.at(-1)]).toEqual([1, "", 1]);
  expect(lines).toContain("the disk is full: a server is started again once there is room");
  room = true;
  await eventually("it is started", () => starts === 2, 10_000);
  expect([gone, gauges.at(-1)]).toEqual(["", 0]);
}, 30_000);
