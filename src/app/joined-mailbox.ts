import type { SandboxMailbox } from "../domain/report.ts";

/** The messages of several sandboxes as one list, newest first. */
export function joinedMailbox(mailboxes: readonly SandboxMailbox[]): SandboxMailbox {
  return {
    messages(to, limit) {
      const all = mailboxes.flatMap((mailbox) => mailbox.messages(to, limit));
      // ISO 8601 times in UTC of equal length sort as text. The sort is stable.
      return all
        .sort((a, b) => Number(b.received_at > a.received_at) - Number(b.received_at < a.received_at))
        .slice(0, limit);
    },
  };
}
