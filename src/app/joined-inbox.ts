import type { SandboxInbox } from "../domain/report.ts";

/** The messages of several sandboxes as one list, newest first. */
export function joinedInbox(inboxes: readonly SandboxInbox[]): SandboxInbox {
  return {
    messages(to, limit) {
      const all = inboxes.flatMap((inbox) => inbox.messages(to, limit));
      // ISO 8601 times in UTC of equal length sort as text. The sort is stable.
      return all
        .sort((a, b) => Number(b.received_at > a.received_at) - Number(b.received_at < a.received_at))
        .slice(0, limit);
    },
  };
}
