import type { SandboxMailbox } from "../domain/report.ts";

/** What reached several sandboxes, as one list, newest first. */
export function joinedMailbox(mailboxes: readonly SandboxMailbox[]): SandboxMailbox {
  return {
    messages(to, limit) {
      const all = mailboxes.flatMap((mailbox) => mailbox.messages(to, limit));
      // Times in ISO 8601, UTC, of one length: their order is that of their text. The sort is stable.
      return all
        .sort((a, b) => Number(b.received_at > a.received_at) - Number(b.received_at < a.received_at))
        .slice(0, limit);
    },
  };
}
