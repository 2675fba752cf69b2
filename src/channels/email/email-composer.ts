import type { Tenant } from "../../domain/tenants/tenant.ts";
import type { JsonObject } from "../../domain/texts/json.ts";
import { type FilledHtml, type FilledText, HtmlTemplate, TextTemplate } from "./content/email-template.ts";
import { headerText } from "./content/header-text.ts";
import { RenderTooLargeError } from "./content/template.ts";
import { TextCache } from "./content/text-cache.ts";
import { emailLimits } from "./limits.ts";
import type { EmailPayload } from "./payload.ts";
import { SAMPLE_UNSUBSCRIBE_URL, UNSUBSCRIBE_URL, withUnsubscribeUrl } from "./unsubscribe-url.ts";

/** The content of one message. */
export interface EmailContent {
  readonly subject: string;
  /** Null if the message is plain text. */
  readonly html: FilledHtml | null;
  /** Null if there is no text for an alternative. */
  readonly text: FilledText | null;
}

/** Returns the HTML without pixel and tracked links; "" for a plain-text message. */
export function writtenHtml({ html }: Pick<EmailContent, "html">): string {
  return html === null ? "" : html.template.html(html.values);
}

export type Composed =
  | { readonly kind: "composed"; readonly content: EmailContent }
  /** `error` is shown to the tenant. */
  | { readonly kind: "impossible"; readonly error: string };

/** Builds a message's content from its template or inline HTML and its data. Compiled templates are cached. */
export class EmailComposer {
  private readonly texts = new TextCache(TEMPLATE_CACHE_CHARS, (text) => new TextTemplate(text));
  private readonly htmls = new TextCache(TEMPLATE_CACHE_CHARS, (html) => new HtmlTemplate(html));

  /**
   * Composes the message's content. `unsubscribeUrl` is called only for a message that displays the address; without
   * it, a sample is used, as in previews.
   */
  compose(
    payload: EmailPayload,
    tenant: Tenant,
    unsubscribeUrl: () => string = () => SAMPLE_UNSUBSCRIBE_URL,
  ): Composed {
    const source = findSource(payload, tenant);
    if (source === null) {
      const name = JSON.stringify(payload.template ?? "");
      return { kind: "impossible", error: `the template ${name} does not exist any more` };
    }
    try {
      return { kind: "composed", content: this.render(source, payload.data ?? {}, unsubscribeUrl) };
    } catch (error) {
      if (!(error instanceof RenderTooLargeError)) throw error;
      return { kind: "impossible", error: TOO_LARGE };
    }
  }

  private render({ subject, html, text }: Source, given: JsonObject, unsubscribeUrl: () => string): EmailContent {
    const bytesMax = emailLimits.inlineHtmlBytesMax;
    const htmlTemplate = html === null ? null : this.htmls.get(html);
    const textTemplate = text === null && htmlTemplate !== null ? htmlTemplate.alternative : this.texts.get(text ?? "");
    const showsUrl = htmlTemplate?.names(UNSUBSCRIBE_URL) === true || textTemplate.names(UNSUBSCRIBE_URL);
    const data = showsUrl ? withUnsubscribeUrl(given, unsubscribeUrl()) : given;
    // The HTML first: a message that is too large usually is so because of its HTML.
    const filledHtml = htmlTemplate?.fill(data, bytesMax) ?? null;
    const filledText = textTemplate.fill(data, bytesMax);
    const subjectTemplate = this.texts.get(subject);
    const filledSubject = subjectTemplate.text(subjectTemplate.fill(given, SUBJECT_RENDERED_MAX).values);
    return {
      subject: headerText(filledSubject, emailLimits.subjectCharsMax),
      html: filledHtml,
      text: textTemplate.text(filledText.values) === "" && filledHtml !== null ? null : filledText,
    };
  }
}

const TOO_LARGE = `the message would be larger than ${emailLimits.inlineHtmlBytesMax / 1024} KB once its placeholders are filled`;
/** A longer subject is refused; up to this length it is cut to what a header allows. */
const SUBJECT_RENDERED_MAX = 16 * 1024;

interface Source {
  readonly subject: string;
  /** Null if the message is plain text. */
  readonly html: string | null;
  /** Null if it is derived from the HTML. */
  readonly text: string | null;
}

/**
 * Finds the message's texts: inline HTML overrides a template, and inline text overrides the template's. Null if the
 * template no longer exists.
 */
function findSource({ subject, html, text, template: slug }: EmailPayload, tenant: Tenant): Source | null {
  if (html !== undefined || slug === undefined) {
    if (html === undefined && text === undefined) return null;
    return { subject: subject ?? "", html: html ?? null, text: text ?? null };
  }
  const template = tenant.emailTemplates.get(slug);
  if (template === undefined) return null;
  return { subject: subject ?? template.subject, html: template.html, text: text ?? template.text };
}

/** A template in use takes up to ten times its length: itself, its alternative, and both encoded. */
const TEMPLATE_CACHE_CHARS = 4 * 1024 * 1024;
