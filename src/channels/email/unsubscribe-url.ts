import type { JsonObject } from "../../domain/texts/json.ts";

/** The placeholder for the address of the message's own unsubscribe link, in HTML and text. */
export const UNSUBSCRIBE_URL = "unsubscribe_url";

/** In its place where there is no message yet: in previews, and where a request is checked. */
export const SAMPLE_UNSUBSCRIBE_URL = "https://example.com/unsubscribe";

/** Values of the caller's own win: a tenant may have had such a variable before. */
export function withUnsubscribeUrl(data: JsonObject, url: string): JsonObject {
  return (data[UNSUBSCRIBE_URL] ?? null) === null ? { ...data, [UNSUBSCRIBE_URL]: url } : data;
}
