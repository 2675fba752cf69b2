import { Type } from "@sinclair/typebox";
import { ApiError } from "../../../http/api-error.ts";
import { type Endpoint, endpoint, reply } from "../../../http/endpoint.ts";
import { readQuery } from "../../../http/parameters.ts";
import type { MailReports } from "./mail-reports.ts";

export interface MailReportEndpointPorts {
  readonly mailReports: Pick<MailReports, "take">;
}

const MailReportsTaken = Type.Object(
  { reports: Type.Integer({ minimum: 0, description: "Reports about messages of ours that were in it." }) },
  { $id: "MailReportsTaken" },
);

const EXAMPLE = `From: MAILER-DAEMON@mx.example.net
To: bounce@mail.acme.example
Subject: Undelivered Mail Returned to Sender
Content-Type: multipart/report; report-type=delivery-status; boundary=b

--b
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example.net

Final-Recipient: rfc822; ann@example.com
Action: failed
Status: 5.1.1
Diagnostic-Code: smtp; 550 5.1.1 no such user

--b
Content-Type: text/rfc822-headers

Message-ID: <01936f2e-7c1a-7b3e-9a55-2f1c8f0a4d11.acme@mail.acme.example>
--b--
`;

/** `POST /dash/api/mail-reports`: takes one raw message that came back. Answers 202 once its reports are recorded. */
export function mailReportEndpoints({ mailReports }: MailReportEndpointPorts): readonly Endpoint[] {
  return [
    endpoint({
      method: "POST",
      path: "/dash/api/mail-reports",
      name: "operator",
      operation: "takeMailReport",
      tag: "Mail reports",
      summary: "Hand over a bounce or a complaint that came by mail",
      description:
        "One message as it came: a delivery status notification (RFC 3464), a feedback report (RFC 5965) or a mail " +
        "system's notice. It adds `bounced`, `failed` or `complained` to the job whose message it returns, or whose return path it " +
        "came to. The main recipient of one that bounced or was complained of is suppressed where the returned message still has its " +
        "unsubscribe link. Any other message is ignored. Safe to repeat.",
      caller: "operator",
      effect: "report",
      body: { schema: Type.String({ format: "binary" }), mediaType: "message/rfc822", examples: [EXAMPLE] },
      answers: { 202: { description: "Recorded.", schema: MailReportsTaken, examples: [{ reports: 1 }] } },
      async handle(door, exchange) {
        readQuery(exchange.request, []);
        // Before reading the body, so other content types are not read at all.
        if (!/^message\/rfc822\s*(?:;|$)/i.test(exchange.request.headers.get("content-type") ?? "")) {
          throw new ApiError(400, "the Content-Type must be message/rfc822");
        }
        return reply(202, { reports: await mailReports.take(await door.decoded(exchange)) });
      },
    }),
  ];
}
