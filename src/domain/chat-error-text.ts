import { limits } from "./limits.ts";

/** An error of the chat provider's, in its own words. */
export interface ChatError {
  readonly message: string;
  /** More of them, often the only ones that help; null: none. */
  readonly details: string | null;
}

/**
 * An error as a tenant may read it, whether it is the answer to a call or comes later with a status: behind `name`, which
 * says which it is, the provider's words on one line, bounded, once each, and without access tokens.
 */
export function chatErrorText(name: string, { message, details }: ChatError): string {
  // The code stands in front of most messages, too: "(#132000) Number of parameters …".
  const title = quotable(message.replace(/^\(#\d+\)\s*/, ""));
  const more = details === null || isSameText(details, title) ? "" : quotable(details);
  const words = [title, more].filter((text) => text !== "").join("; ");
  return words === "" ? name : `${name}: ${words}`;
}

/** But for case and a full stop. */
function isSameText(one: string, other: string): boolean {
  const bare = (text: string) => text.toLowerCase().replace(/\.$/, "");
  return bare(one) === bare(other);
}

/** How the provider's tokens begin, whoever's they are. */
const ACCESS_TOKEN = /\bEAA[A-Za-z0-9]{16,}/g;

function quotable(text: string): string {
  const line = text
    .replace(ACCESS_TOKEN, "(…)")
    .replace(/[\p{C}\s]+/gu, " ")
    .trim();
  const max = limits.chatErrorCharsMax;
  return line.length > max ? `${line.slice(0, max - 1).toWellFormed()}…` : line;
}
