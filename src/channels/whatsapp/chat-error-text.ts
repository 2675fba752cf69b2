import type { WhatsappSender } from "../../domain/channels/whatsapp.ts";
import { limits } from "../../domain/limits.ts";
import type { GraphError } from "./graph-errors.ts";

/** An error of the chat provider, in its own words. */
export interface ChatError {
  readonly message: string;
  /** Further details, often the only useful part; null: none. */
  readonly details: string | null;
}

/**
 * Formats an error for the tenant, from an answer or a later status: `name`, which identifies it, followed by the
 * provider's words on one line, bounded, without repetitions or access tokens.
 */
export function chatErrorText(name: string, { message, details }: ChatError): string {
  // Most messages also begin with the code: "(#132000) Number of parameters …".
  const title = quotable(message.replace(/^\(#\d+\)\s*/, ""));
  const more = details === null || isSameText(details, title) ? "" : quotable(details);
  const words = [title, more].filter((text) => text !== "").join("; ");
  return words === "" ? name : `${name}: ${words}`;
}

/** Ignores case and a final full stop. */
function isSameText(one: string, other: string): boolean {
  const bare = (text: string) => text.toLowerCase().replace(/\.$/, "");
  return bare(one) === bare(other);
}

/** Matches the provider's access tokens. */
const ACCESS_TOKEN = /\bEAA[A-Za-z0-9]{16,}/g;

function quotable(text: string): string {
  const line = text
    .replace(ACCESS_TOKEN, "(…)")
    .replace(/[\p{C}\s]+/gu, " ")
    .trim();
  const max = limits.chatErrorCharsMax;
  return line.length > max ? `${line.slice(0, max - 1).toWellFormed()}…` : line;
}

/** Formats the provider's error for a tenant, without the access token that it may repeat. */
export function formatGraphError(
  { code, status, message, details }: GraphError,
  { accessToken }: WhatsappSender,
): string {
  const withoutToken = (text: string) => text.replaceAll(accessToken, "(…)");
  return chatErrorText(code === null ? `HTTP ${status}` : `error ${code}`, {
    message: withoutToken(message),
    details: details === null ? null : withoutToken(details),
  });
}
