import { parseJsonObject } from "../../domain/texts/json.ts";

/** What is queued of a pass. The pass itself is in the registry, stored before the job was accepted. */
export interface WalletPayload {
  readonly action: "create" | "update";
  readonly passId: string;
  /** The version of the pass that the job brings to its holders; a later one also satisfies it. */
  readonly version: number;
  /** Google: shown to the pass's holders. */
  readonly notifyMessage?: string;
  /** Apple: the update changed nothing, and the holders were told of this version already. */
  readonly isCurrent?: true;
}

/** The payload in the form of its job. */
export function encodePayload(payload: WalletPayload): string {
  return JSON.stringify(payload);
}

/** Parses what `encodePayload` wrote; null: it did not write this. */
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

/** What is asked of Google, and by which job. */
export type GoogleTask = WalletPayload & { readonly jobId: string };
