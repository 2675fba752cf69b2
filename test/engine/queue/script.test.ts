import { expect, test } from "bun:test";
import prelude from "../../../src/engine/queue/prelude.lua" with { type: "text" };
import { Script } from "../../../src/engine/queue/script.ts";
import { redis, useQueueWorld } from "./queue-world.ts";

useQueueWorld();

/** Runs a script without keys and arguments and returns its answer. */
function runScript(body: string): Promise<unknown> {
  return new Script(body, "run").run(redis.client, [], []);
}

test("a script has what it uses of the prelude, and what that uses in turn", async () => {
  expect(await runScript("return bucket_key('p', '01234567-89ab-cdef')")).toBe("p:jobs:0123456789a");
  expect(await runScript("return json_text('a\\n\"b')")).toBe('"a\\n\\"b"');
  expect(await runScript("return entry_due('j e0 r\\n{}')")).toBe("");
  expect(Number(await runScript("return now_ms()"))).toBeGreaterThan(1_700_000_000_000);
});

test("a script has nothing else of it", () => {
  const measureSize = (body: string) => Reflect.get(new Script(body, "run"), "text").length;
  expect(measureSize("return 1")).toBeLessThan(40);
  expect(measureSize("return now_ms()")).toBeLessThan(prelude.length / 20);
});

test("the prelude's top level has nothing but locals and remarks, which is what scripts find in it", () => {
  const others = prelude.split("\n").filter((line) => /^\S/.test(line) && !/^(local |--|end$|[)}])/.test(line));
  expect(others).toEqual([]);
});
