import type { Tenant } from "../../domain/tenant.ts";
import { emailLimits } from "./limits.ts";
import type { EmailPayload } from "./payload.ts";
import { RenderTooLargeError, Template } from "./template.ts";

/**
 * Whether the message would exceed the size limit once its placeholders are filled: it would be accepted and then fail.
 * Comparing lengths is nearly always enough; otherwise the HTML is rendered up to the limit.
 *
 * @param payloadChars length of the payload's JSON text
 */
export function wouldBeTooLarge(payload: EmailPayload, payloadChars: number, tenant: Tenant): boolean {
  const html = payload.html ?? tenant.emailTemplates.get(payload.template ?? "")?.html;
  if (html === undefined) return false;
  const charsMax = emailLimits.inlineHtmlBytesMax;
  // A value is part of the payload's text, and no character becomes more than six.
  if (html.length + placeholdersIn(html) * 6 * payloadChars <= charsMax) return false;
  try {
    Template.parse(html).render(payload.data ?? {}, "html", charsMax);
    return false;
  } catch (error) {
    if (error instanceof RenderTooLargeError) return true;
    throw error;
  }
}

/** An upper bound. */
function placeholdersIn(html: string): number {
  let count = 0;
  for (let at = html.indexOf("{{"); at !== -1; at = html.indexOf("{{", at + 2)) count += 1;
  return count;
}
