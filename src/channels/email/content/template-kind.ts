import { Type } from "@sinclair/typebox";
import type { TrackingChoice } from "../../../domain/channels/email.ts";
import { done } from "../../../domain/store-result.ts";
import { readTopic, TOPIC_RULE } from "../../../domain/tenants/suppressions.ts";
import { ApiError } from "../../../http/api-error.ts";
import { NOT_BLANK, oneLine, trackingSchema } from "../../../http/schemas.ts";
import type { TemplateKind } from "../../../http/template-kind.ts";
import { checkText } from "../../../storage/postgres/check-text.ts";
import { emailLimits } from "../limits.ts";
import { placeholderFault } from "./placeholder-faults.ts";
import { emailTemplateBody, parseEmailTemplate } from "./stored-template.ts";
import {
  acceptEmailTest,
  EMAIL_PREVIEW_EXAMPLE,
  EmailPreview,
  EmailTest,
  previewEmail,
  previewWeight,
} from "./template-preview.ts";

export type EmailTemplateRecord = {
  readonly slug: string;
  readonly channel: "email";
  readonly subject: string;
  readonly html: string;
  readonly text: string | null;
  readonly topic?: string;
  readonly tracking?: TrackingChoice;
};

const members = {
  subject: oneLine("at most 998 characters without control characters", emailLimits.subjectCharsMax, 0),
  html: Type.String({
    minLength: 1,
    maxLength: emailLimits.inlineHtmlBytesMax,
    description: `HTML of 1 to ${emailLimits.inlineHtmlBytesMax} characters`,
    ...NOT_BLANK,
  }),
  text: Type.Optional(
    Type.Union([Type.String({ maxLength: emailLimits.inlineHtmlBytesMax, ...NOT_BLANK }), Type.Null()], {
      description: `plain text of at most ${emailLimits.inlineHtmlBytesMax} characters, or null`,
    }),
  ),
  topic: Type.Optional(
    Type.Union([Type.String(), Type.Null()], {
      description: `the topic of messages that do not name one: ${TOPIC_RULE}; or null`,
    }),
  ),
  tracking: Type.Optional(trackingSchema("an object with opens and clicks, each true or false")),
};

export const emailTemplateKind: TemplateKind<typeof members, EmailTemplateRecord> = {
  channel: "email",
  members,
  example: { subject: "Welcome, {{.name}}", html: "<p>Hello {{.name}}</p>", text: "Hello {{.name}}" },
  answer: Type.Object({
    slug: Type.String(),
    channel: Type.Literal("email"),
    subject: Type.String(),
    html: Type.String(),
    text: Type.Union([Type.String(), Type.Null()]),
    topic: Type.Optional(Type.String({ description: "Absent: none." })),
    tracking: Type.Optional(trackingSchema("Absent: the template leaves it open.")),
  }),
  accept(slug, { subject, html, text = null, topic: given = null, tracking }) {
    const fault =
      placeholderFault("subject", subject) ??
      placeholderFault("html", html) ??
      (text === null ? null : placeholderFault("text", text));
    if (fault !== null) throw new ApiError(400, fault);
    const topic = given === null ? null : readTopic(given);
    if (given !== null && topic === null) throw new ApiError(400, `topic must be ${TOPIC_RULE}`);
    const chosen = { ...(topic !== null && { topic }), ...(tracking !== undefined && { tracking }) };
    return { slug, channel: "email", subject, html, text, ...chosen };
  },
  preview: {
    answer: EmailPreview,
    example: EMAIL_PREVIEW_EXAMPLE,
    weight: previewWeight,
    render: (tenant, { slug }, data) => previewEmail(tenant, slug, data),
  },
  test: {
    schema: EmailTest,
    accept: acceptEmailTest,
  },
  toStored(template) {
    const { subject, html, text } = template;
    const bodyRule = { charsMax: emailLimits.inlineHtmlBytesMax, multiline: true };
    const invalid =
      checkText(subject, { field: "subject", charsMax: emailLimits.subjectCharsMax }) ??
      checkText(html, { field: "html", ...bodyRule }) ??
      (text === null ? null : checkText(text, { field: "text", ...bodyRule }));
    return invalid ?? done(emailTemplateBody(template));
  },
  fromStored: (slug, stored) => ({ slug, channel: "email", ...parseEmailTemplate(stored) }),
};
