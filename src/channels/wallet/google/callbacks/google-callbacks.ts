import type { Clock } from "../../../../domain/clock.ts";
import type { JsonObject } from "../../../../domain/texts/json.ts";
import type { CallbackKeys } from "./callback-keys.ts";
import { type ReadCallback, readSignedCallback } from "./signed-callback.ts";

/** The path under the public address at which Google calls: classes keep it for as long as they have passes. */
export const CALLBACK_PATH = "/webhook/google-wallet";

/** Reads Google's callbacks with its newest keys. */
export class GoogleCallbacks {
  constructor(
    private readonly keys: Pick<CallbackKeys, "current" | "renewed">,
    private readonly clock: Pick<Clock, "nowMs">,
  ) {}

  /** Reads a callback. `unjudged`: there are currently no keys. */
  async open(body: JsonObject): Promise<ReadCallback | { readonly kind: "unjudged" }> {
    const roots = await this.keys.current();
    if (roots === null) return { kind: "unjudged" };
    const read = readSignedCallback(body, roots, this.clock.nowMs());
    if (read.kind !== "unsigned" || read.isOfOtherRoot !== true) return read;
    const newer = await this.keys.renewed();
    return newer === null ? read : readSignedCallback(body, newer, this.clock.nowMs());
  }
}
