import type { EmailPayload } from "../../core/email.ts";
import type { JsonObject } from "../../core/json.ts";
import { limits } from "../../core/limits.ts";
import type { Tenant } from "../../core/tenant.ts";
import { headerText } from "./header-text.ts";
import { htmlToText } from "./html-to-text.ts";
import { RenderTooLargeError, Template } from "./template.ts";
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
      return { kind: "impossible", error: "the message is too large once its placeholders are filled" };
    }
  }

  private render({ subject, html, text }: Source, data: JsonObject): EmailContent {
    const textTemplate = text === null ? this.alternatives.get(html) : this.templates.get(text);
    const renderedText = textTemplate.render(data, "none", RENDERED_CHARS_MAX);
    return {
      subject: headerText(this.templates.get(subject).render(data, "none", RENDERED_CHARS_MAX), limits.subjectCharsMax),
      html: this.templates.get(html).render(data, "html", RENDERED_CHARS_MAX),
      text: renderedText === "" ? null : renderedText,
    };
  }
}

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

/** Above what mail servers take (10 MiB by custom, encoded), below what hurts this process. */
const RENDERED_CHARS_MAX = 8 * 1024 * 1024;
const TEMPLATE_CACHE_CHARS = 4 * 1024 * 1024;
