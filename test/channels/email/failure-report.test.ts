import { expect, test } from "bun:test";
import { failureReport } from "../../../src/channels/email/failure-report.ts";

/* The meaning of the words is tested in corpus/replies. */

const classifyFailure = (failure: Partial<Parameters<typeof failureReport>[0]>) =>
  failureReport({ recipient: null, enhancedCode: null, command: "RCPT TO", text: "", ...failure }).type;

test("the server's own words and code count more than the status by whoever reports", () => {
  expect(classifyFailure({ enhancedCode: "5.1.1", text: "552 5.1.1 Recipient overquota" })).toBe("failed");
  expect(classifyFailure({ enhancedCode: "5.1.1", text: "550 5.7.1 no" })).toBe("failed");
  expect(classifyFailure({ enhancedCode: "5.1.1", text: "450 4.1.1 user unknown" })).toBe("failed");
  expect(classifyFailure({ enhancedCode: "5.7.1", text: "550 5.1.1 no" })).toBe("bounced");
  expect(classifyFailure({ enhancedCode: "5.0.0", text: "550 no such user" })).toBe("bounced");
  expect(classifyFailure({ enhancedCode: "5.1.1", text: "550 no" })).toBe("bounced");
});

test("a refusal before the recipient is named says nothing about the recipient", () => {
  for (const command of ["MAIL FROM", "EHLO", "AUTH PLAIN"])
    expect(classifyFailure({ enhancedCode: "5.1.1", text: "550 5.1.1 user unknown", command })).toBe("failed");
});

test("a provider that calls recipients unknown who do not want the mail suppresses nobody", () => {
  const text = "550 Unknown user ann@docomo.ne.jp";
  expect(classifyFailure({ recipient: "ann@docomo.ne.jp", text, command: "end of DATA" })).toBe("failed");
  expect(classifyFailure({ recipient: "ann@docomo.ne.jp", text })).toBe("bounced");
});

test.each(["ユーザ", "a-", "a.", "5.1.1 ", "550 5.1.1 ", "(", "user ", "https://", "not \n", "OFR", "mailbox ", "@"])(
  "a refusal of a megabyte of %j is judged at once",
  (piece) => {
    // Quadratic work on this much would outlast the test.
    for (let i = 0; i < 10; i += 1) classifyFailure({ text: piece.repeat(1_000_000 / piece.length) });
  },
);

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
