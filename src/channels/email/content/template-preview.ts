import { type Static, Type } from "@sinclair/typebox";
import type { EmailTemplate } from "../../../domain/channels/email.ts";
import type { Tenant } from "../../../domain/tenants/tenant.ts";
import type { JsonObject } from "../../../domain/texts/json.ts";
import { ApiError } from "../../../http/api-error.ts";
import { type Acceptance, unknownMember } from "../../../http/sending/acceptance.ts";
import { EmailComposer, writtenHtml } from "../email-composer.ts";
import { emailLimits } from "../limits.ts";
import { acceptEmail, EmailSend } from "../request.ts";
import { BuiltinSpamFilter } from "../spam/builtin-spam-filter.ts";
import { SAMPLE_UNSUBSCRIBE_URL, withUnsubscribeUrl } from "../unsubscribe-url.ts";
import { type Escape, RenderTooLargeError, Template } from "./template.ts";

export const EmailPreview = Type.Object({
  channel: Type.Literal("email"),
  subject: Type.String(),
  html: Type.String(),
  text: Type.Union([Type.String(), Type.Null()], { description: "Derived from the HTML where the template has none." }),
  missing: Type.Array(Type.String(), { description: "Variables that `data` has no value for: they are empty." }),
  size_bytes: Type.Integer({ description: "Of subject, HTML and text together, in UTF-8." }),
  spam: Type.Object(
    {
      score: Type.Number(),
      rules: Type.Array(Type.Object({ rule: Type.String(), score: Type.Number(), description: Type.String() })),
    },
    { description: "By the built-in rules. Templates are sent whatever they score." },
  ),
});

export const EMAIL_PREVIEW_EXAMPLE = {
  channel: "email",
  subject: "Welcome, Ada",
  html: "<p>Hello Ada</p>",
  text: "Hello Ada",
  missing: [],
  size_bytes: 37,
  spam: { score: 0, rules: [] },
} as const;

const composer = new EmailComposer();
const spamFilter = new BuiltinSpamFilter();

/** Renders a message as its recipient would receive it, except for links and pixel. Throws an `ApiError` 400. */
export async function previewEmail(
  tenant: Tenant,
  slug: string,
  data: JsonObject,
): Promise<Static<typeof EmailPreview>> {
  const composed = composer.compose({ to: "", template: slug, data }, tenant);
  if (composed.kind === "impossible") throw new ApiError(400, composed.error);
  const { subject, text: filledText } = composed.content;
  const html = writtenHtml(composed.content);
  const text = filledText === null ? null : filledText.template.text(filledText.values);
  const { score, rules } = await spamFilter.score({ subject, html, text, from: "", to: "" });
  const known = withUnsubscribeUrl(data, SAMPLE_UNSUBSCRIBE_URL);
  const source = tenant.emailTemplates.get(slug);
  const texts = source === undefined ? [] : [source.subject, source.html, source.text ?? ""];
  const missing = new Set(texts.flatMap((one, at) => Template.parse(one).missing(at === 0 ? data : known)));
  return {
    channel: "email",
    subject,
    html,
    text,
    missing: [...missing].sort(),
    size_bytes: [subject, html, text ?? ""].reduce((sum, one) => sum + Buffer.byteLength(one), 0),
    spam: { score, rules: [...rules] },
  };
}

/** To compile, fill and score a character of a message takes about as long as to parse this many bytes of a body. */
const BYTES_PER_CHAR = 64;

/** Returns the cost of a preview, as the number of body bytes that take as long to parse. */
export function previewWeight({ html, text }: Pick<EmailTemplate, "html" | "text">, data: JsonObject): number {
  const chars = countChars(html, data, "html") + (text === null ? 0 : countChars(text, data, "none"));
  return BYTES_PER_CHAR * chars;
}

/** Counts the characters of a text and of its filled form, which counts as 0 if it is too long to be sent. */
function countChars(text: string, data: JsonObject, escape: Escape): number {
  try {
    return text.length + Template.parse(text).render(data, escape, emailLimits.inlineHtmlBytesMax).length;
  } catch (error) {
    if (error instanceof RenderTooLargeError) return text.length;
    throw error;
  }
}

/** The body of a test send: a send's body without the template, which the path names. */
export const EmailTest = Type.Object(
  {
    to_address: EmailSend.properties.to_address,
    to_name: EmailSend.properties.to_name,
    data: EmailSend.properties.data,
  },
  {
    additionalProperties: false,
    examples: [{ to_address: "ada@example.com", data: { name: "Ada" } }],
  },
);

/** Checks a test send by the rules of a send. */
export function acceptEmailTest(tenant: Tenant, slug: string, body: JsonObject): Acceptance {
  const refusal = unknownMember(body, Object.keys(EmailTest.properties));
  return refusal === null ? acceptEmail(tenant, { ...body, template_id: slug }) : { ok: false, refusal };
}
