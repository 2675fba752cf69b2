import { expect, test } from "bun:test";
import { failureClassOfEvent, failureClassOfTry } from "../../src/domain/jobs/failure-class.ts";
import { PURGED } from "../../src/domain/tenants/steering.ts";

const CASES = {
  recipient: [
    "550 5.1.1 <ann@example.com>: no such user",
    "the mail server refused the message: 550 5.2.1 mailbox disabled",
    "550 Unknown recipient",
  ],
  mailbox_full: ["452 4.2.2 The recipient's inbox is out of storage space", "552 mailbox full"],
  domain: ["550 5.4.4 Host or domain name not found", "556 5.1.10 the domain takes no mail"],
  refused: [
    "550 5.7.606 Access denied, banned sending IP [192.0.2.1]",
    "554 5.7.1 Service unavailable; client host blocked using zen.spamhaus.org",
    "550 5.7.1 relaying denied",
    "554 Message not allowed - [PH01] due to user complaints",
  ],
  authentication: [
    "550-5.7.26 This mail is unauthenticated, which poses a security risk",
    "550 5.7.1 Unauthenticated email is not accepted due to the domain's DMARC policy",
  ],
  throttled: [
    "421 4.7.28 rate limited",
    "451 4.7.1 Greylisted, try again",
    "example.org: 450 4.2.1 receiving mail at a rate",
  ],
  content: ["552 5.3.4 message too big", "spam score 7.2 is above 5", "554 5.6.0 malformed"],
  sender: ["553 5.1.8 Sender address rejected", "your mail server refused the credentials that are stored for it"],
  unreachable: ["the mail server did not answer in time or dropped the connection", "450 4.4.1 connection refused"],
  other: ["550 no", "the operator purged it"],
} as const;

test("what mail servers say has one class, the same for an event and for a try", () => {
  for (const [name, texts] of Object.entries(CASES)) {
    for (const text of texts) {
      const event = failureClassOfEvent({ channel: "email", type: "failed", result: { error: text } });
      const tried = failureClassOfTry("email", { at: 0, outcome: "retry", reply: text });
      expect({ text, classes: [event, tried].map(String) }).toEqual({ text, classes: [name, name] });
    }
  }
});

test("a bounce is judged by its codes, a chat message by the provider's number", () => {
  const bounced = { code: 550, enhanced_code: "5.7.26", diagnostic: "no" };
  expect(failureClassOfEvent({ channel: "email", type: "bounced", result: bounced })).toBe("authentication");
  const nothing = { code: null, enhanced_code: null, diagnostic: "it bounced" };
  expect(failureClassOfEvent({ channel: "email", type: "bounced", result: nothing })).toBe("other");
  const chat = {
    "error 131026: Undeliverable": "recipient",
    "131049 not delivered to keep engagement healthy": "refused",
    "the phone number sends too fast: error 130429": "throttled",
    "error 132001: Template does not exist": "content",
    "error 190: token expired": "sender",
    "error 131000": "unreachable",
    "error 5": "other",
  } as const;
  for (const [error, name] of Object.entries(chat)) {
    expect([error, failureClassOfEvent({ channel: "whatsapp", type: "failed", result: { error } })]).toEqual([
      error,
      name,
    ]);
  }
});

test("what an operator ended is nobody's failure", () => {
  for (const channel of ["email", "whatsapp", "wallet"] as const) {
    expect(failureClassOfEvent({ channel, type: "failed", result: { error: PURGED } })).toBe("purged");
  }
});

test("what did not fail has no class", () => {
  expect(failureClassOfEvent({ channel: "email", type: "delivered", result: {} })).toBeNull();
  expect(failureClassOfEvent({ channel: "email", type: "suppressed", result: { reason: "bounced" } })).toBeNull();
  expect(failureClassOfTry("email", { at: 0, outcome: "sent", reply: "250 ok" })).toBeNull();
  expect(failureClassOfTry("email", { at: 0, outcome: "snooze" })).toBeNull();
});
