/** Bounds of e-mails. */
export const emailLimits = {
  inlineHtmlBytesMax: 524_288,
  subjectCharsMax: 998,
  displayNameCharsMax: 998,
  /** Tracked links per message, the first ones. */
  trackedLinksMax: 1_000,
} as const;
