import type { JsonObject } from "../../../domain/json.ts";
import { answer, errors } from "../../../http/openapi/answers.ts";

/** Where operators hand over mail that came back. */
export const mailReportPaths: JsonObject = {
  "/dash/api/mail-reports": {
    post: {
      operationId: "takeMailReport",
      tags: ["Mail reports"],
      summary: "Hand over a bounce or a complaint that came by mail",
      description:
        "One message as it came: a delivery status notification (RFC 3464) or a feedback report (RFC 5965). It adds " +
        "`bounced`, `failed` or `complained` to the job whose message it returns. The address is suppressed where the " +
        "returned message still has its unsubscribe link. Any other message reports nothing. Safe to repeat.",
      security: [{ operator: [] }],
      requestBody: { required: true, content: { "message/rfc822": { schema: { type: "string", format: "binary" } } } },
      responses: {
        "202": answer({ description: "Recorded.", schema: "MailReportsTaken", example: { reports: 1 } }),
        ...errors({
          "400": "OperatorBadRequest",
          "401": "OperatorUnknown",
          "413": "OperatorTooLarge",
          "429": "OperatorSlowed",
          "500": "OperatorInternalError",
        }),
      },
    },
  },
};
