import type { EventType } from "./event.ts";
import type { ChannelName } from "./job.ts";
import type { JsonObject } from "./json.ts";

/** What an MTA or a provider says about a message after it was handed over. */
export interface DeliveryReport {
  readonly tenantId: string;
  readonly jobId: string;
  readonly type: EventType;
  readonly result: JsonObject;
  /** The address that must not be sent to again because of this, or null. */
  readonly suppressRecipient: string | null;
}

/** A message that reached a sandbox provider. */
export interface SandboxMessage {
  readonly channel: ChannelName;
  readonly received_at: string;
  readonly from: string;
  readonly to: string;
  readonly subject: string;
  /** As it came over the wire. */
  readonly source: string;
}

export interface SandboxMailbox {
  /** Newest first; `to` null: everybody's. */
  messages(to: string | null, limit: number): readonly SandboxMessage[];
}

/** What reached the sandboxes, wherever they are; newest first, `to` null: everybody's. */
export interface SandboxView {
  messages(to: string | null, limit: number): readonly SandboxMessage[] | Promise<readonly SandboxMessage[]>;
}

/** One dependency, as `/ready` sees it. */
export interface ReadinessProbe {
  readonly name: string;
  /** Rejects while it is down; with `PartsAwayError` where it has parts that go away by themselves. */
  check(): Promise<void>;
}

/** Some parts of a dependency are away, others may be there. */
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
