import type { EmailPayload } from "../../src/core/email.ts";
import { JobIds } from "../../src/core/ids.ts";
import type { QueuedJob } from "../../src/core/job.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";

const ids = new JobIds(systemClock, systemRandom);

export function emailJob(payload: EmailPayload | string): QueuedJob {
  return {
    jobId: ids.next(),
    tenantId: "acme",
    channel: "email",
    entryId: "1-1",
    attempts: 0,
    recipient: "",
    suppressed: null,
    payload: typeof payload === "string" ? payload : JSON.stringify(payload),
  };
}

/** Names and unfolded values of a message's headers, in their order. */
export function headersOf(source: string): [name: string, value: string][] {
  const block = source.slice(0, source.indexOf("\r\n\r\n")).replace(/\r\n(?=[ \t])/g, "");
  return block
    .split("\r\n")
    .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]);
}
