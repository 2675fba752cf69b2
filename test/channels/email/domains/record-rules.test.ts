import { describe, expect, test } from "bun:test";
import {
  dkimProblem,
  dmarcProblem,
  hasDmarc,
  spfProblem,
} from "../../../../src/channels/email/domains/record-rules.ts";

const KEY = "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAqM4YXeqx9goVLF";
const INCLUDE = "spf.platform.test";

describe("SPF", () => {
  test.each([
    ["v=spf1 include:spf.platform.test ~all"],
    ["v=spf1 +include:spf.platform.test -all"],
    ["V=SPF1  INCLUDE:SPF.Platform.Test.  ~ALL"],
    ["v=spf1 ip4:192.0.2.1 a mx include:other.test include:spf.platform.test include:third.test -all"],
    ["v=spf1 include:spf.platform.test redirect=other.test"],
    ["v=spf1 include:spf.platform.test"],
  ])("is right with %s", (record) => {
    expect(spfProblem(["google-site-verification=x", record, "v=spf10 nothing"], INCLUDE)).toBeNull();
  });

  test.each([
    [[], "no SPF record"],
    [["spf1 include:spf.platform.test"], "no SPF record"],
    [["v=spf1include:spf.platform.test"], "no SPF record"],
    [["v=spf1 -all"], 'without "include:spf.platform.test"'],
    [["v=spf1 include:xspf.platform.test -all"], 'without "include:spf.platform.test"'],
    [["v=spf1 include:spf.platform.test.evil.test -all"], "without"],
    [["v=spf1 ~include:spf.platform.test -all"], "does not pass"],
    [["v=spf1 -include:spf.platform.test -all"], "does not pass"],
    [["v=spf1 -all include:spf.platform.test"], 'behind "all"'],
    [["v=spf1 include:spf.platform.test ~all", "v=spf1 -all"], "more than one"],
  ])("is wrong with %j", (records, why) => {
    expect(spfProblem(records, INCLUDE)).toContain(why);
  });
});

describe("DKIM", () => {
  test.each([
    [`v=DKIM1; k=rsa; p=${KEY}`],
    [`v=DKIM1;k=rsa;p=${KEY};`],
    [`v=DKIM1; p=${KEY}; k=rsa`],
    [`p=${KEY}`],
    [`v=DKIM1; t=s; n=some note; h=sha1 : sha256; s=email; p=${KEY}`],
    [`v=DKIM1; s=*; p=${KEY.slice(0, 20)} ${KEY.slice(20, 30)}\t${KEY.slice(30)}`],
    [` v = DKIM1 ; k = rsa ; p = ${KEY} `],
  ])("is right with %s", (record) => {
    expect(dkimProblem(["v=spf1 -all", record, "some other text"], KEY)).toBeNull();
  });

  test.each([
    [[], "no DKIM key record"],
    [["v=DKIM1; k=rsa"], "no DKIM key record"],
    [["p"], "no DKIM key record"],
    [[`v=DKIM1; p=${KEY}; p=${KEY}`], "no DKIM key record"],
    [[`v=DKIM1; k=rsa; p=${KEY.toLowerCase()}`], "another key"],
    [[`v=DKIM1; k=rsa; p=${KEY}A`], "another key"],
    [["v=DKIM1; k=rsa; p="], "revokes"],
    [["v=DKIM1; k=rsa; p=  "], "revokes"],
    [[`k=rsa; v=DKIM1; p=${KEY}`], "first place"],
    [[`v=dkim1; p=${KEY}`], 'not "DKIM1"'],
    [[`v=DKIM1; k=ed25519; p=${KEY}`], "another kind of key"],
    [[`v=DKIM1; h=sha1; p=${KEY}`], "sha256"],
    [[`v=DKIM1; s=tlsrpt; p=${KEY}`], "e-mail"],
    [[`v=DKIM1; p=${KEY}`, "v=DKIM1; p=MIIother"], "more than one"],
  ])("is wrong with %j", (records, why) => {
    expect(dkimProblem(records, KEY)).toContain(why);
  });
});

describe("DMARC", () => {
  test.each([
    ["v=DMARC1; p=none"],
    ["v=DMARC1;p=reject;rua=mailto:a@b.test,mailto:c@d.test;pct=50"],
    ["v=DMARC1; p=Quarantine; adkim=s; aspf=s;"],
    ["v = DMARC1 ; p = reject"],
  ])("is right with the tenant's own %s", (record) => {
    expect(dmarcProblem(["other", record])).toBeNull();
  });

  test.each([
    [["v=DMARC1; p=all"], "without a policy"],
    [["v=DMARC1"], "without a policy"],
    [["v=DMARC1; p=none", "v=DMARC1; p=reject"], "more than one"],
  ])("is wrong with %j", (records, why) => {
    expect(hasDmarc(records)).toBe(true);
    expect(dmarcProblem(records)).toContain(why);
  });
});

test("a domain has no DMARC record where none begins with its version, in its case", () => {
  for (const text of ["v=dmarc1; p=none", "p=none; v=DMARC1", "v=DMARC10; p=none"])
    expect(hasDmarc([text])).toBe(false);
  expect(hasDmarc(["other", "v=DMARC1"])).toBe(true);
});

test("what is shown of a record is bounded, and holds no control characters", () => {
  const problem = spfProblem([`v=spf1 \u001b[31m\r\n${"x".repeat(5_000)}`], INCLUDE) ?? "";
  expect(problem.length).toBeLessThan(300);
  expect(problem).not.toMatch(/[^\x20-\x7e…]/);
});
