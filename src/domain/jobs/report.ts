import type { JsonObject } from "../texts/json.ts";
import type { EventType } from "./event.ts";
import type { ChannelName } from "./job.ts";

/** A report by an MTA or a provider about a message after its hand-over. */
export interface DeliveryReport {
  readonly tenantId: string;
  readonly jobId: string;
  readonly type: EventType;
  readonly result: JsonObject;
  /** When it happened by the provider's own clock (unix ms); absent: the report does not say. */
  readonly occurredAtMs?: number;
  /** The address that must be suppressed because of this report, or null. */
  readonly suppressRecipient: string | null;
}

/** A reader's action: opening a message, or clicking a link in it. */
export interface Engagement {
  readonly type: "opened" | "clicked";
  readonly tenantId: string;
  readonly jobId: string;
  /** The target of the click; null for an open. */
  readonly url: string | null;
  /** Which program it was; null: none that is known. */
  readonly by: { readonly name: string; readonly isMachine: boolean } | null;
}

/** A message that reached a sandbox provider. */
export interface SandboxMessage {
  readonly channel: ChannelName;
  readonly received_at: string;
  readonly from: string;
  readonly to: string;
  /** All recipients of the envelope, if there are several. */
  readonly recipients?: readonly string[];
  /** Names and sizes (bytes) of the files that it carries, if there are any. */
  readonly attachments?: readonly { readonly filename: string; readonly bytes: number }[];
  readonly subject: string;
  /** As it came over the wire. */
  readonly source: string;
}

export interface SandboxInbox {
  /** Returns messages, newest first; `to` null: all recipients. */
  messages(to: string | null, limit: number): readonly SandboxMessage[];
  /** Deletes a recipient's messages. Returns how many there were. */
  erase(to: string): number;
}

/** The messages that reached all sandboxes; newest first, `to` null: all recipients. */
export interface SandboxView {
  messages(to: string | null, limit: number): readonly SandboxMessage[] | Promise<readonly SandboxMessage[]>;
  erase(to: string): number | Promise<number>;
}

/** A complaint from a device. */
export interface DeviceComplaint {
  /** ISO 8601 UTC. */
  readonly logged_at: string;
  readonly message: string;
}

/** One dependency, as `/ready` sees it. */
export interface ReadinessProbe {
  readonly name: string;
  /** Rejects while the dependency is down; with `PartsAwayError` if it has parts that fail independently. */
  check(): Promise<void>;
}

/** Some parts of a dependency are away; others may be available. */
export class PartsAwayError extends Error {
  override readonly name = "PartsAwayError";
  constructor(
    /** Each begins with the probe's name. */
    readonly parts: readonly string[],
    message: string,
  ) {
    super(message);
  }
}
