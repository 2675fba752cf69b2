import type { SandboxInbox, SandboxMessage } from "../jobs/report.ts";
import { remember } from "../remember.ts";

/** A message as it arrived. */
export interface ReceivedMessage {
  readonly to: string;
  /** The size that counts against the ring's limit. */
  readonly bytes: number;
  /** All people whom it names, if it has other recipients: it is erased with each of them. */
  readonly names?: readonly string[];
  /** Called when the message is viewed, not when it arrives. */
  show(): SandboxMessage;
}

/** The latest messages, limited in number and size. */
export class MessageRing implements SandboxInbox {
  /** Oldest first; messages before `first` are gone. */
  private kept: ReceivedMessage[] = [];
  private first = 0;
  private bytes = 0;

  constructor(
    private readonly messagesMax: number,
    private readonly bytesMax: number,
  ) {}

  add(message: ReceivedMessage): void {
    this.kept.push(message);
    this.bytes += message.bytes;
    while (this.first < this.kept.length && this.isOverfull()) {
      this.bytes -= this.kept[this.first]?.bytes ?? 0;
      this.first += 1;
    }
    // Only now and then, so that dropping one message does not move all others.
    if (this.first >= this.messagesMax) {
      this.kept = this.kept.slice(this.first);
      this.first = 0;
    }
  }

  messages(to: string | null, limit: number): readonly SandboxMessage[] {
    const wanted = to?.toLowerCase() ?? null;
    const found: SandboxMessage[] = [];
    for (let at = this.kept.length - 1; at >= this.first && found.length < limit; at -= 1) {
      const message = this.kept[at];
      if (message && (wanted === null || message.to.toLowerCase() === wanted)) found.push(message.show());
    }
    return found;
  }

  erase(to: string): number {
    const unwanted = to.toLowerCase();
    const all = this.kept.slice(this.first);
    this.kept = all.filter(({ to: own, names = [own] }) => !names.some((name) => name.toLowerCase() === unwanted));
    this.first = 0;
    this.bytes = this.kept.reduce((sum, { bytes }) => sum + bytes, 0);
    return all.length - this.kept.length;
  }

  private isOverfull(): boolean {
    return this.kept.length - this.first > this.messagesMax || this.bytes > this.bytesMax;
  }
}

/**
 * Determines whether a try of a message is among the first ones, which a sandbox refuses; after those, the count starts
 * again. Bounded.
 */
export class FirstTries {
  private readonly tries = new Map<string, number>();

  /** `keysMax`: how many messages are counted; the latest are kept. */
  constructor(private readonly keysMax: number) {}

  /** Counts a try. Returns whether it is among the first `times`. */
  take(key: string, times: number): boolean {
    const value = (this.tries.get(key) ?? 0) + 1;
    this.tries.delete(key);
    if (value > times) return false;
    remember(this.tries, { key, value, max: this.keysMax });
    return true;
  }
}
