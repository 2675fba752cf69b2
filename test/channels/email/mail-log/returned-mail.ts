/** A notification as Postfix writes it (RFC 3464), about the message `original`. */
export function buildNotification(
  original: string,
  fields: {
    readonly recipient: string;
    /** As the message was addressed, where an alias led elsewhere. */
    readonly originalRecipient?: string;
    readonly action?: string;
    readonly status: string;
    readonly diagnostic: string;
  },
): string {
  const { recipient, originalRecipient, action = "failed", status, diagnostic } = fields;
  return lines(
    "From: MAILER-DAEMON@mail.far.test (Mail Delivery System)",
    "Subject: Undelivered Mail Returned to Sender",
    "To: b@bounce.waybill.test",
    "Auto-Submitted: auto-replied",
    "MIME-Version: 1.0",
    "Content-Type: multipart/report; report-type=delivery-status;",
    '\tboundary="4jWcbk4wDVzMCQq.1763694514/mail.far.test"',
    "Message-Id: <4jWcbk4wDVzMCQq@mail.far.test>",
    "",
    "This is a MIME-encapsulated message.",
    "",
    "--4jWcbk4wDVzMCQq.1763694514/mail.far.test",
    "Content-Description: Notification",
    "Content-Type: text/plain; charset=us-ascii",
    "",
    "This is the mail system at host mail.far.test.",
    "",
    "--4jWcbk4wDVzMCQq.1763694514/mail.far.test",
    "Content-Description: Delivery report",
    "Content-Type: message/delivery-status",
    "",
    "Reporting-MTA: dns; mail.far.test",
    "X-Postfix-Queue-ID: 4jWcbk45DkzMBrn",
    "Arrival-Date: Fri, 21 Nov 2026 03:08:34 +0000 (UTC)",
    "",
    ...(originalRecipient === undefined ? [] : [`Original-Recipient: rfc822;${originalRecipient}`]),
    `Final-Recipient: rfc822; ${recipient}`,
    `Action: ${action}`,
    `Status: ${status}`,
    "Remote-MTA: dns; mx.far.test",
    `Diagnostic-Code: smtp; ${diagnostic.replaceAll(" ", "\r\n    ")}`,
    "",
    "--4jWcbk4wDVzMCQq.1763694514/mail.far.test",
    "Content-Description: Undelivered Message Headers",
    "Content-Type: text/rfc822-headers",
    "",
    original.split(/\r?\n\r?\n/, 1)[0] ?? "",
    "",
    "--4jWcbk4wDVzMCQq.1763694514/mail.far.test--",
  );
}

/** Feedback as mailbox providers send it (RFC 5965, appendix B), about the message `original`. */
export function buildFeedback(original: string, feedbackType = "abuse"): string {
  return lines(
    "From: <abusedesk@far.test>",
    "Subject: FW: Hello",
    "To: <b@bounce.waybill.test>",
    "MIME-Version: 1.0",
    "Content-Type: multipart/report; report-type=feedback-report; boundary=part1",
    "",
    "--part1",
    'Content-Type: text/plain; charset="US-ASCII"',
    "",
    "This is an email abuse report.",
    "",
    "--part1",
    "Content-Type: message/feedback-report",
    "",
    `Feedback-Type: ${feedbackType}`,
    "User-Agent: SomeGenerator/1.0",
    "Version: 1",
    "Original-Rcpt-To: <redacted@far.test>",
    "",
    "--part1",
    "Content-Type: message/rfc822",
    "Content-Disposition: inline",
    "",
    original,
    "--part1--",
  );
}

function lines(...all: readonly string[]): string {
  return `${all.join("\r\n")}\r\n`;
}
