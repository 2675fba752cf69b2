import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { UnavailableError } from "../../src/domain/errors.ts";
import type { Json } from "../../src/domain/texts/json.ts";
import { type ControlTask, runningStart, serveControl } from "../../src/tasks/control-socket.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";

let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "waybill-control-"));
});
afterAll(() => rm(home, { recursive: true, force: true }));

/** Serves one task, and stops serving after the test. */
async function whileServing(task: ControlTask, run: () => Promise<void>): Promise<void> {
  const control = serveControl(home, { task }, new QuietTelemetry());
  try {
    await run();
  } finally {
    control.stop();
  }
}

test("a command gets what its task says, and its answer or why it failed", async () => {
  const task: ControlTask = async (input, say) => {
    say("half");
    if (input === "bad") throw new Error("it is bad");
    return { asked: input };
  };
  await whileServing(task, async () => {
    const said: Json[] = [];
    const ask = (input: Json) => runningStart(home).ask("task", input, (line) => said.push(line));
    expect(await ask("good")).toEqual({ asked: "good" });
    await expect(ask("bad")).rejects.toEqual(new UnavailableError("it is bad"));
    expect(said).toEqual(["half", "half"]);
    await expect(runningStart(home).ask("another", null, () => undefined)).rejects.toThrow(UnavailableError);
  });
});

test("a task whose command has ended hears of it, and may go on speaking", async () => {
  const ending = new AbortController();
  const over = Promise.withResolvers<unknown>();
  const task: ControlTask = async (_, say, gone) => {
    say("begun");
    await new Promise((resolve) => gone.addEventListener("abort", resolve, { once: true }));
    try {
      say("nobody listens");
      over.resolve("went on");
    } catch (error) {
      over.resolve(error);
    }
    return null;
  };
  await whileServing(task, async () => {
    const asked = runningStart(home).ask("task", null, () => ending.abort(), ending.signal);
    await expect(asked).rejects.toBeDefined();
    expect(await over.promise).toBe("went on");
  });
});
