import type { EmailTemplate } from "../../../domain/channels/email.ts";
import type { JsonObject } from "../../../domain/texts/json.ts";
import { emailLimits } from "../limits.ts";
import { SAMPLE_UNSUBSCRIBE_URL, withUnsubscribeUrl } from "../unsubscribe-url.ts";
import { checkHtml, type HtmlRule, toViolation, VISIBLE, type Violation } from "./html-rules.ts";
import { RenderTooLargeError, Template } from "./template.ts";

/**
 * Rules that apply to the HTML before it is filled, too. A script can only be in the tenant's own text, because values
 * are escaped; all other rules judge the filled HTML.
 */
const OF_WRITTEN: ReadonlySet<HtmlRule> = new Set(["too_large", "script"]);

/** Returns the rules that inline HTML breaks once its placeholders are filled from `data`. */
export function checkFilledHtml(html: string, data: JsonObject): readonly Violation[] {
  const written = checkHtml(html);
  if (!html.includes("{{")) return written;
  const own = written.filter(({ rule }) => OF_WRITTEN.has(rule));
  const filled = filledHtml(html, withUnsubscribeUrl(data, SAMPLE_UNSUBSCRIBE_URL));
  if (filled === null) {
    return written.some(({ rule }) => rule === "too_large") ? written : [toViolation("too_large"), ...written];
  }
  const asSent = checkHtml(filled).filter(({ rule }) => !own.some((violation) => violation.rule === rule));
  return [...asSent, ...own];
}

/** Returns the rule that a filled inline text breaks, or null. A text beside HTML may be empty. */
export function brokenByText(text: string, data: JsonObject, isAlone: boolean): "empty" | "too_large" | null {
  const bytesMax = emailLimits.inlineHtmlBytesMax;
  if (Buffer.byteLength(text) > bytesMax) return "too_large";
  try {
    const filled = text.includes("{{") ? filledText(text, data) : text;
    if (Buffer.byteLength(filled) > bytesMax) return "too_large";
    return isAlone && !VISIBLE.test(filled) ? "empty" : null;
  } catch (error) {
    if (error instanceof RenderTooLargeError) return "too_large";
    throw error;
  }
}

function filledText(text: string, data: JsonObject): string {
  const known = withUnsubscribeUrl(data, SAMPLE_UNSUBSCRIBE_URL);
  return Template.parse(text).render(known, "none", emailLimits.inlineHtmlBytesMax);
}

/**
 * Whether a message from a stored template would exceed the size limit: it would be accepted and then fail.
 *
 * @param payloadChars length of the payload's JSON text
 */
export function wouldBeTooLarge(template: EmailTemplate, data: JsonObject, payloadChars: number): boolean {
  const { html } = template;
  // A value is part of the payload's text, and no character becomes more than six.
  const isSurelySmall = html.length + placeholdersIn(html) * 6 * payloadChars <= emailLimits.inlineHtmlBytesMax;
  return !isSurelySmall && filledHtml(html, data) === null;
}

/** Fills the HTML; null if the result would exceed the size limit. */
function filledHtml(html: string, data: JsonObject): string | null {
  try {
    return Template.parse(html).render(data, "html", emailLimits.inlineHtmlBytesMax);
  } catch (error) {
    if (error instanceof RenderTooLargeError) return null;
    throw error;
  }
}

/** Returns an upper bound of the number of placeholders. */
function placeholdersIn(html: string): number {
  let count = 0;
  for (let at = html.indexOf("{{"); at !== -1; at = html.indexOf("{{", at + 2)) count += 1;
  return count;
}
