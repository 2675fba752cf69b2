import type { EmailPayload } from "../../core/email.ts";
import type { JsonObject } from "../../core/json.ts";
import { limits } from "../../core/limits.ts";
import { RenderTooLargeError, Template } from "../../core/template.ts";
import type { Tenant } from "../../core/tenant.ts";
import { headerText } from "./header-text.ts";
import { htmlToText } from "./html-to-text.ts";
import { TextCache } from "./text-cache.ts";

/** The rendered content of one message. */
export interface EmailContent {
  readonly subject: string;
  readonly html: string;
  /** Null where the HTML has no text to make an alternative of. */
  readonly text: string | null;
}

export type Composed =
  | { readonly kind: "composed"; readonly content: EmailContent }
  /** `error` is shown to the tenant. */
  | { readonly kind: "impossible"; readonly error: string };

/** Makes the content of a message of its template or inline HTML and its data. Parsed templates are remembered. */
export class EmailComposer {
  private readonly templates = new TextCache(TEMPLATE_CACHE_CHARS, (text) => Template.parse(text));
  private readonly alternatives = new TextCache(TEMPLATE_CACHE_CHARS, (html) => Template.parse(htmlToText(html)));

  compose(payload: EmailPayload, tenant: Tenant): Composed {
    const source = sourceOf(payload, tenant);
    if (source === null) {
      const name = JSON.stringify(payload.template ?? "");
      return { kind: "impossible", error: `the template ${name} does not exist any more` };
    }
    try {
      return { kind: "composed", content: this.render(source, payload.data ?? {}) };
    } catch (error) {
      if (!(error instanceof RenderTooLargeError)) throw error;
      return { kind: "impossible", error: TOO_LARGE };
    }
  }

  private render({ subject, html, text }: Source, data: JsonObject): EmailContent {
    const bytesMax = limits.inlineHtmlBytesMax;
    // The HTML first: where the message is too large, that is usually where.
    const renderedHtml = this.templates.get(html).render(data, "html", bytesMax);
    const textTemplate = text === null ? this.alternatives.get(html) : this.templates.get(text);
    const renderedText = textTemplate.render(data, "none", bytesMax);
    const renderedSubject = this.templates.get(subject).render(data, "none", SUBJECT_RENDERED_MAX);
    return {
      subject: headerText(renderedSubject, limits.subjectCharsMax),
      html: renderedHtml,
      text: renderedText === "" ? null : renderedText,
    };
  }
}

const TOO_LARGE = `the message would be larger than ${limits.inlineHtmlBytesMax / 1024} KB once its placeholders are filled`;
/** A longer subject is no subject; up to this it is cut to what a header takes. */
const SUBJECT_RENDERED_MAX = 16 * 1024;

interface Source {
  readonly subject: string;
  readonly html: string;
  /** Null: made of the HTML. */
  readonly text: string | null;
}

/** Inline HTML wins over a template. Null: the template is gone. */
function sourceOf(payload: EmailPayload, tenant: Tenant): Source | null {
  if (payload.html !== undefined) return { subject: payload.subject ?? "", html: payload.html, text: null };
  const template = tenant.emailTemplates.get(payload.template ?? "");
  if (template === undefined) return null;
  return { ...template, subject: payload.subject ?? template.subject };
}

const TEMPLATE_CACHE_CHARS = 4 * 1024 * 1024;
