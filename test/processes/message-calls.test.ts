import { expect, test } from "bun:test";
import { callName } from "../../src/domain/calls.ts";
import { ConfigurationError, TransportError, UnavailableError } from "../../src/domain/errors.ts";
import { MessageCalls } from "../../src/processes/message-calls.ts";

const ECHO = callName<unknown, unknown>("echo");
const FAIL = callName<string, void>("fail");
const WAIT = callName<null, void>("wait");

/** Both ends of a line: each receives the other's messages, cloned as between processes. */
function line(): { asking: MessageCalls; answering: MessageCalls } {
  const asking: MessageCalls = new MessageCalls((message) => answering.take(structuredClone(message)));
  const answering: MessageCalls = new MessageCalls((message) => asking.take(structuredClone(message)));
  return { asking, answering };
}

test("bytes, dates and large numbers arrive unchanged", async () => {
  const { asking, answering } = line();
  answering.serve(ECHO, (value) => value);
  const value = { bytes: new Uint8Array([0, 255]), at: new Date(5), many: 10n, none: null, list: [1, [2]] };
  expect(await asking.call(ECHO, value)).toEqual(value);
});

test("an error keeps its codes, and its class if callers depend on it", async () => {
  const { asking, answering } = line();
  const errors: Readonly<Record<string, Error>> = {
    away: new UnavailableError("away"),
    lost: new TransportError("lost"),
    wrong: new ConfigurationError("one", "two"),
    coded: Object.assign(new Error("no such table"), { code: "42P01", constraint: "c" }),
  };
  answering.serve(FAIL, (which) => {
    throw errors[which] ?? new Error("?");
  });
  await expect(asking.call(FAIL, "away")).rejects.toBeInstanceOf(UnavailableError);
  await expect(asking.call(FAIL, "lost")).rejects.toBeInstanceOf(TransportError);
  await expect(asking.call(FAIL, "wrong")).rejects.toMatchObject({ problems: ["one", "two"] });
  await expect(asking.call(FAIL, "coded")).rejects.toMatchObject({ code: "42P01", constraint: "c" });
  await expect(asking.call(WAIT, null)).rejects.toThrow("no answer to wait");
});

test("a cancelled call ends at once, and the other side is told", async () => {
  const { asking, answering } = line();
  const heard = Promise.withResolvers<void>();
  answering.serve(WAIT, (_, signal) => new Promise(() => signal.addEventListener("abort", () => heard.resolve())));
  const caller = new AbortController();
  const call = asking.call(WAIT, null, caller.signal);
  caller.abort(new Error("enough"));
  await expect(call).rejects.toThrow("enough");
  await heard.promise;
});

test("when the connection is cut, calls on both sides end, and no new one begins", async () => {
  const { asking, answering } = line();
  const heard = Promise.withResolvers<void>();
  answering.serve(WAIT, (_, signal) => new Promise(() => signal.addEventListener("abort", () => heard.resolve())));
  const call = asking.call(WAIT, null);
  asking.cut();
  answering.cut();
  await expect(call).rejects.toBeInstanceOf(TransportError);
  await heard.promise;
  expect(asking.gone.aborted).toBeTrue();
  await expect(asking.call(WAIT, null)).rejects.toBeInstanceOf(TransportError);
});
