import type { JsonObject } from "../../domain/texts/json.ts";

/** The placeholder for the address of the message's own unsubscribe link, in HTML and text. */
export const UNSUBSCRIBE_URL = "unsubscribe_url";

/** Stands in for the address while there is no message yet: in previews, and in checks of requests. */
export const SAMPLE_UNSUBSCRIBE_URL = "https://example.com/unsubscribe";

/**
 * Adds the address to the data. The caller's own value takes precedence, because a tenant may already have had such a
 * variable.
 */
export function withUnsubscribeUrl(data: JsonObject, url: string): JsonObject {
  return (data[UNSUBSCRIBE_URL] ?? null) === null ? { ...data, [UNSUBSCRIBE_URL]: url } : data;
}
