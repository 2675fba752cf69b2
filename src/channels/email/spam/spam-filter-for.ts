import { BuiltinSpamFilter } from "./builtin-spam-filter.ts";
import { RspamdFilter } from "./rspamd-filter.ts";
import type { SpamFilter } from "./spam.ts";

/** Creates the filter for the setting: none, the built-in one, or the rspamd worker at a URL. */
export function spamFilterFor(setting: string): SpamFilter | null {
  if (setting === "off") return null;
  return setting === "builtin" ? new BuiltinSpamFilter() : new RspamdFilter(setting);
}
