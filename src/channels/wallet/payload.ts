import { parseJsonObject } from "../../domain/texts/json.ts";

/** The queued form of a pass's job. The pass itself is in the registry, stored before the job was accepted. */
export interface WalletPayload {
  readonly action: "create" | "update";
  readonly passId: string;
  /** The version of the pass that the job delivers to its holders; a later one also satisfies it. */
  readonly version: number;
  /** Google: displayed to the pass's holders. */
  readonly notifyMessage?: string;
  /** Apple: the content is unchanged, and the holders were already notified of this version. */
  readonly isCurrent?: true;
}

/** Serialises the payload for its job. */
export function encodePayload(payload: WalletPayload): string {
  return JSON.stringify(payload);
}

/** Parses the output of `encodePayload`; null for any other text. */
export function parsePayload(text: string): WalletPayload | null {
  const parsed = parseJsonObject(text);
  if (parsed === null) return null;
  const { action, passId, version, notifyMessage, isCurrent } = parsed;
  if (action !== "create" && action !== "update") return null;
  if (typeof passId !== "string" || typeof version !== "number") return null;
  return {
    action,
    passId,
    version,
    ...(typeof notifyMessage === "string" ? { notifyMessage } : {}),
    ...(isCurrent === true ? { isCurrent } : {}),
  };
}

/** A payload for Google, with its job. */
export type GoogleTask = WalletPayload & { readonly jobId: string };
