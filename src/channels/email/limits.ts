/** Bounds of e-mails. */
export const emailLimits = {
  inlineHtmlBytesMax: 524_288,
  /** How much of an oversized HTML is inspected for other violations: ten times as much takes a second. */
  inspectedHtmlCharsMax: 1_048_576,
  subjectCharsMax: 998,
  displayNameCharsMax: 998,
  /** Tracked links per message, the first ones. */
  trackedLinksMax: 1_000,
  /** To, cc and bcc together; relays take at least 100 (RFC 5321, 4.5.3.1.8). */
  recipientsMax: 50,
  replyToMax: 10,
  headersMax: 20,
  /** A header with its name (RFC 5322, 2.1.1), in UTF-8. */
  headerBytesMax: 998,
  attachmentsMax: 20,
  /** All attachments of a message, decoded. */
  attachmentBytesMax: 10 * 1024 * 1024,
  /** A send's body: attachments in base64 and all other members. */
  sendBytesMax: 15 * 1024 * 1024,
} as const;
