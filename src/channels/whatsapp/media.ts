import { Type } from "@sinclair/typebox";
import { limits } from "../../domain/limits.ts";
import type { Json, JsonObject } from "../../domain/texts/json.ts";
import { parseUrl } from "../../domain/texts/parse-url.ts";
import { exactlyOne, optional } from "../../http/schemas.ts";

/**
 * The source from which the provider gets media. Exactly one of `link` (https address) and `id` (uploaded media) is
 * present.
 */
export interface MediaSource {
  readonly link?: string;
  readonly id?: string;
}

const HTTPS = /^https:\/\//;
/** ASCII characters that an address must escape. */
const NOT_IN_LINKS = /[\s\p{Cc}\p{Cs}]/u;
/** The same rule as a schema's pattern. */
export const LINK_PATTERN = "^https://[^\\x00-\\x20\\x7f-\\xa0]+$";
const MEDIA_ID = /^[A-Za-z0-9_-]{1,100}$/;

/** Returns the schema of an https address in a body. */
export function linkSchema(description: string) {
  return Type.String({ maxLength: limits.linkUrlBytesMax, pattern: LINK_PATTERN, description });
}

/** The members of a body that name the source of media. */
export const MEDIA_SOURCE = {
  link: optional(
    linkSchema(
      "An https address that the provider fetches the media from; letters beyond ASCII are escaped. Either this or `id`.",
    ),
  ),
  id: optional(
    Type.String({
      pattern: MEDIA_ID.source,
      description: "The provider's id of uploaded media. Either this or `link`.",
    }),
  ),
};

export const ONE_SOURCE = exactlyOne("link", "id");

/** Returns a sentence that says why the two members of `where` are invalid, or null. */
export function complaintAboutSource({ link, id }: JsonObject, where: string): string | null {
  if ((link === undefined) === (id === undefined)) return `${where} must have either a link or an id`;
  const complaint = link === undefined ? null : complaintAboutLink(link);
  if (complaint !== null) return `${where}.link ${complaint}`;
  if (id === undefined || (typeof id === "string" && MEDIA_ID.test(id))) return null;
  return `${where}.id must be the provider's id of uploaded media: 1 to 100 letters, digits, hyphens or underscores`;
}

/** Completes "header.link …". */
export function complaintAboutLink(value: Json): string | null {
  const address = `must be an https address of at most ${limits.linkUrlBytesMax} characters`;
  if (typeof value !== "string" || !HTTPS.test(value) || value.length > limits.linkUrlBytesMax) return address;
  if (NOT_IN_LINKS.test(value)) return `${address} without blanks and control characters: write a blank as %20`;
  if (parseUrl(value) === null) return `${address}, with a host that can exist`;
  return toUri(value).length <= limits.linkUrlBytesMax ? null : `${address} once its letters beyond ASCII are escaped`;
}

/**
 * Converts an address to the form that the provider accepts: letters beyond ASCII are escaped, in the host by IDNA (RFC
 * 3987, 3.1). A pure ASCII address stays unchanged.
 */
export function toUri(link: string): string {
  return ASCII.test(link) ? link : (parseUrl(link)?.href ?? link);
}

const ASCII = /^[\x21-\x7e]*$/;

/** Reads the source from a checked request or a queued payload. */
export function readSource({ link, id }: JsonObject): MediaSource {
  return {
    ...(typeof link === "string" ? { link: toUri(link) } : null),
    ...(typeof id === "string" ? { id } : null),
  };
}
