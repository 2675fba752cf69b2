import { expect, test } from "bun:test";
import { CHANNELS } from "../../../src/app/channels.ts";
import { TransportError, UnavailableError } from "../../../src/domain/errors.ts";
import { JobIds } from "../../../src/domain/ids.ts";
import { ChannelLetters } from "../../../src/engine/queue/codec.ts";
import type { RedisConnection } from "../../../src/engine/queue/connection.ts";
import { Acceptor } from "../../../src/engine/queue/verbs/accept.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";

const jobIds = new JobIds(systemClock, systemRandom);

/** Each call fails as the next of these says. */
function createAcceptor(failures: readonly Error[]): Acceptor {
  let calls = 0;
  const evalsha = () => Promise.reject(failures[calls++] ?? new Error("more calls than failures"));
  // The acceptor uses no other member of a connection.
  return new Acceptor({ evalsha } as unknown as RedisConnection, systemClock, "all", {
    letters: new ChannelLetters(CHANNELS),
  });
}

function refusal(text: string): Error {
  const error = new Error(text);
  error.name = "ReplyError";
  return error;
}

function anAccept(acceptor: Acceptor): Promise<unknown> {
  const job = {
    jobId: jobIds.next(),
    channel: "email",
    recipient: "a@b.test",
    payload: "{}",
    idempotency: null,
  } as const;
  return acceptor.submit({ tenant: { tenantId: "acme", shard: 0 }, requestsPerMinute: null, job });
}

test("a job that may be queued never counts as not queued, whatever a repeat answers", async () => {
  const acceptor = createAcceptor([new Error("Command timed out"), refusal("OOM command not allowed")]);
  await expect(anAccept(acceptor)).rejects.toBeInstanceOf(TransportError);
});

test.each(["OOM command not allowed", "MISCONF Redis is configured to save RDB snapshots"])(
  "a job that Redis refuses with %p counts as not queued at once, without a repeat",
  async (text) => {
    await expect(anAccept(createAcceptor([refusal(text)]))).rejects.toBeInstanceOf(UnavailableError);
  },
);
