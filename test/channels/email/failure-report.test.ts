import { expect, test } from "bun:test";
import { failureClassOf, failureReport } from "../../../src/channels/email/failure-report.ts";

type Row = readonly [enhancedCode: string | null, text: string, command?: string];

test.each<Row>([
  ["5.1.0", "550 5.1.0 Address rejected"],
  ["5.1.1", "550 5.1.1 <x@far.test>: Recipient address rejected: User unknown"],
  ["5.1.1", "550 5.1.1 User unknown", "end of DATA"],
  ["5.1.2", "550 5.1.2 Bad destination system address"],
  ["5.1.3", "553 5.1.3 Invalid address format"],
  ["5.1.6", "550 5.1.6 recipient no longer on server"],
  ["5.1.10", "556 5.1.10 Recipient address has null MX"],
  ["5.2.1", "550 5.2.1 The email account that you tried to reach is disabled"],
  ["5.4.4", "Host or domain name not found. Name service error for name=far.test type=A: Host not found"],
  ["5.0.0", "550 No such user here"],
  ["5.5.0", "550 Requested action not taken: user unknown"],
  ["5.0.0", "550 Unrouteable address"],
  ["5.0.0", "550 This account does not exist"],
  [null, "550 unknown user"],
])("%s %s is the address's fault", (enhancedCode, text, command = "RCPT TO") => {
  expect(failureClassOf({ enhancedCode, text, command })).toBe("address");
});

test.each<Row>([
  ["5.2.2", "552 5.2.2 Mailbox full"],
  ["5.2.3", "552 5.2.3 Message too large"],
  ["5.3.4", "552 5.3.4 Message size exceeds limit"],
  ["5.4.4", "no route in this instance"],
  ["5.4.6", "mail for far.test loops back to myself"],
  ["5.6.7", "SMTPUTF8 is required, but was not offered"],
  ["5.7.1", "550 5.7.1 Message rejected due to policy"],
  ["5.7.26", "550 5.7.26 This mail is unauthenticated"],
  ["5.0.0", "554 rejected as spam"],
  ["5.0.0", "550 blocked: user unknown to our reputation service"],
  ["5.0.0", "550 mailbox unavailable"],
  ["4.2.2", "452 4.2.2 user unknown"],
  ["5.1.7", "550 5.1.7 Bad sender's mailbox address syntax"],
  ["5.1.8", "550 5.1.8 Sender address rejected: Domain not found"],
  ["5.1.0", "550 5.1.0 Sender rejected"],
  ["5.1.1", "550 5.1.1 unknown", "MAIL FROM"],
  ["5.2.1", "550-5.2.1 The user you are trying to contact is receiving mail at a rate that prevents delivery"],
])("%s %s is not the address's fault", (enhancedCode, text, command = "RCPT TO") => {
  expect(failureClassOf({ enhancedCode, text, command })).toBe("message");
});

test("only a failure of the address suppresses, under the address in lower case", () => {
  const failure = { recipient: "Ann@Far.test", replyCode: 550, command: "RCPT TO" };
  expect(failureReport({ ...failure, enhancedCode: "5.1.1", text: "550 5.1.1 unknown" })).toEqual({
    type: "bounced",
    result: { code: 550, enhanced_code: "5.1.1", diagnostic: "550 5.1.1 unknown" },
    suppressRecipient: "ann@far.test",
  });
  expect(failureReport({ ...failure, enhancedCode: "5.2.2", text: "552 5.2.2 full" })).toEqual({
    type: "failed",
    result: { error: "552 5.2.2 full" },
    suppressRecipient: null,
  });
});

test("a server's reply is shown on one line of bounded length, without control characters", () => {
  const text = `552 5.2.2 a\r\nb\u0000c\u202e${"d".repeat(2_000)}`;
  const { result } = failureReport({ recipient: null, replyCode: 552, command: null, enhancedCode: "5.2.2", text });
  expect(result["error"]).toStartWith("552 5.2.2 a b c d");
  expect(String(result["error"])).toHaveLength(1_000);
});
