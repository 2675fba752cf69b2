import { describe, expect, test } from "bun:test";
import {
  dkimProblem,
  dmarcProblem,
  dmarcRecord,
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
    [[`v=DKIM1; k=rsa; p=${KEY.slice(0, 40)}`], `cut off: 40 of the ${KEY.length} characters`],
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
  const problem = (texts: readonly string[]) => {
    const record = dmarcRecord(texts);
    if (record === null || record === "many") throw new Error(`no single record: ${record}`);
    return dmarcProblem(record);
  };

  test.each([
    ["v=DMARC1; p=none"],
    ["v=DMARC1;p=reject;rua=mailto:a@b.test,mailto:c@d.test;pct=50"],
    ["v=DMARC1; p=Quarantine; adkim=s; aspf=s;"],
    ["v = DMARC1 ; p = reject"],
    ["V=DMARC1; P=none"],
    ["v=DMARC1; p=reject; sp=quarantine; np=reject; t=y; psd=n"],
    ["v=DMARC1; rua=mailto:reports@acme.test"],
    ["v=DMARC1"],
    ["v=DMARC1; p=none; pct=abc; ri; fo=9; x-new=1; =; ;"],
    ["v=DMARC1; p=all; rua=mailto:reports@acme.test!10m"],
    ["v=DMARC1; p=reject; np=never; rua=bogus, https://acme.test/reports"],
  ])("applies with the tenant's own %s", (record) => {
    expect(problem(["other", record])).toBeNull();
  });

  test.each([
    ["v=DMARC1; p=all", 'policy "p"'],
    ["v=DMARC1; p=reject; sp=all", 'policy "sp"'],
    ["v=DMARC1; p=reject; np=all; rua=reports", 'policy "np"'],
    ["v=DMARC1; p=none; p=reject", "repeats a tag"],
  ])("does not apply with %s", (record, why) => {
    expect(problem([record])).toContain(why);
  });

  test("is not there where no record begins with its version, in its case", () => {
    for (const text of ["v=dmarc1; p=none", "p=none; v=DMARC1", "v=DMARC10; p=none"])
      expect(dmarcRecord([text])).toBeNull();
    expect(dmarcRecord(["other", "v=DMARC1"])).toEqual({ text: "v=DMARC1", psd: "u" });
  });

  test("does not count if there are two", () => {
    expect(dmarcRecord(["v=DMARC1; p=none", "v=DMARC1; p=reject"])).toBe("many");
  });
});

test("what is shown of a record is bounded, and holds no control characters", () => {
  const problem = spfProblem([`v=spf1 \u001b[31m\r\n${"x".repeat(5_000)}`], INCLUDE) ?? "";
  expect(problem.length).toBeLessThan(300);
  expect(problem).not.toMatch(/[^\x20-\x7e…]/);
});
