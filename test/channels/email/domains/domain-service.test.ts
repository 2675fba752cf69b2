import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createPublicKey } from "node:crypto";
import { join } from "node:path";
import type { OpenRegistry } from "../../../../src/app/open-registry.ts";
import { DomainService } from "../../../../src/channels/email/domains/domain-service.ts";
import { PlatformSenderDomain } from "../../../../src/channels/email/domains/sender-domain.ts";
import { StubResolver } from "../../../../src/channels/email/domains/stub-resolver.ts";
import { SmtpProbe } from "../../../../src/channels/email/smtp/smtp-probe.ts";
import type { DomainView } from "../../../../src/domain/channels/domain.ts";
import { NetworkGuard } from "../../../../src/runtime/network-guard.ts";
import { systemClock } from "../../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../../src/runtime/system-random.ts";
import type { OpenDatabase } from "../../../../src/storage/postgres/database.ts";
import { migrate } from "../../../../src/storage/postgres/migrate.ts";
import { openPglite } from "../../../../src/storage/postgres/pglite.ts";
import { DnsServer } from "../../../support/dns-server.ts";
import { must } from "../../../support/must.ts";
import { temporaryHome } from "../../../support/waybill.ts";
import { openTestRegistry } from "../../../tenants/open-test-registry.ts";

const MAIL_HOST = "mx.platform.test";

let home: Awaited<ReturnType<typeof temporaryHome>>;
let database: OpenDatabase;
let registry: OpenRegistry;
let dns: DnsServer;
let service: DomainService;
let sender: PlatformSenderDomain;
let nth = 0;
/** The domain of the running test, registered for the tenant `acme`. */
let domain: string;
let view: DomainView;

beforeAll(async () => {
  home = await temporaryHome();
  database = await openPglite(join(home.path, "postgres"));
  await migrate(database.db);
  registry = await openTestRegistry(database);
  dns = await DnsServer.start();
  const common = {
    dns: new StubResolver({ servers: [dns.address], clock: systemClock, random: systemRandom, timeoutMs: 250 }),
    mailHost: MAIL_HOST,
    clock: systemClock,
    random: systemRandom,
  };
  service = new DomainService({
    ...common,
    store: registry.domains,
    directory: registry.directory,
    relayProbe: new SmtpProbe({
      guard: new NetworkGuard({ allow: ["127.0.0.0/8"], publicAllowed: false }),
      ehloName: "send.test",
    }),
  });
  sender = new PlatformSenderDomain({ ...common, store: registry.senderDomain });
  for (const id of ["acme", "globex"]) await must(registry.registry.createTenant({ id, name: id }));
}, 300_000);

afterAll(async () => {
  await dns?.stop();
  await registry?.stop();
  await database?.close();
  await home?.remove();
});

const nthDomain = () => `mail${(nth += 1)}.acme.test`;

beforeEach(async () => {
  domain = nthDomain();
  dns.zone.clear();
  dns.misbehaviours.clear();
  view = await must(service.register("acme", { domain, relayEnabled: true, smtpEnabled: false }));
});

const records = () => view.record.DNSRecords.relay;
const getRecordName = (nth: 0 | 1 | 2 | 3) => records()[nth]?.name ?? "";

/** The status after a verification, and what it found beside what passed. */
async function verified() {
  const { record, details } = await must(service.verify("acme", domain));
  const checks = details["checks"];
  if (!Array.isArray(checks)) throw new Error("there are no checks");
  return { status: record.RelayStatus, problems: checks.filter(({ result }) => result !== "passed") };
}

describe("registration", () => {
  test("gives the four records to publish, complete, with a 2048-bit key", () => {
    const [mx, spf, dkim, dmarc] = records();
    expect(view.record).toMatchObject({ Domain: domain, RelayStatus: "pending", SMTPStatus: "pending" });
    expect(mx).toEqual({ type: "MX", name: `bounce.${domain}`, value: MAIL_HOST, priority: 10 });
    expect(spf).toEqual({ type: "TXT", name: `bounce.${domain}`, value: `v=spf1 include:spf.${MAIL_HOST} ~all` });
    expect(dkim?.name).toMatch(new RegExp(`^wb[0-9a-f]{8}\\._domainkey\\.${RegExp.escape(domain)}$`));
    const key = /^v=DKIM1; k=rsa; p=([A-Za-z0-9+/]+=*)$/.exec(dkim?.value ?? "")?.[1] ?? "";
    // 2048 bits of modulus, the exponent, and the identifier of an RSA key.
    expect(Buffer.from(key, "base64")).toHaveLength(294);
    expect(dmarc).toEqual({ type: "TXT", name: `_dmarc.${domain}`, value: "v=DMARC1; p=none" });
  });

  test("reserves a domain for one tenant, whatever its case", async () => {
    const again = (tenantId: string) => () =>
      service.register(tenantId, { domain: domain.toUpperCase(), relayEnabled: true, smtpEnabled: false });
    expect(await again("acme")()).toEqual({ kind: "taken", domain });
    expect(await again("globex")()).toEqual({ kind: "taken", domain });
  });

  test.each([
    "",
    "localhost",
    "127.0.0.1",
    "-a.test",
    "a_b.test",
    "a..test",
    "münchen.test",
    "a.test.",
    "a b.test",
    `${"x".repeat(64)}.test`,
    `${"x.".repeat(120)}test`,
    "a.test\n",
  ])("refuses %j, which is no domain", async (text) => {
    const registering = service.register("acme", { domain: text, relayEnabled: true, smtpEnabled: false });
    expect(await registering).toMatchObject({ kind: "invalid" });
  });

  test("of a domain that was deleted makes another key, and begins anew", async () => {
    dns.publish(records());
    expect((await verified()).status).toBe("verified");
    await must(service.delete("acme", domain));
    expect(await service.one("acme", domain)).toEqual({ kind: "missing", what: "domain" });
    const again = await must(service.register("globex", { domain, relayEnabled: true, smtpEnabled: false }));
    expect(again.record.RelayStatus).toBe("pending");
    expect(again.record.DNSRecords.relay[2]?.name).not.toBe(getRecordName(2));
    expect(again.record.DNSRecords.relay[2]?.value).not.toBe(records()[2]?.value);
  });

  test("of the same tenant's hundred-and-first domain is refused", async () => {
    await must(registry.registry.createTenant({ id: "hoarder", name: "h" }));
    const fields = { tenantId: "hoarder", relayEnabled: true, smtpEnabled: false, selector: "s", publicKey: "k" };
    for (let index = 0; index < 100; index += 1) {
      const name = `d${index}.hoarder.test`;
      await must(
        registry.domains.create({
          ...fields,
          domain: name,
          returnPathHost: `b.${name}`,
          privateKeyPem: "x".repeat(40),
        }),
      );
    }
    const one = service.register("hoarder", { domain: "one-more.test", relayEnabled: true, smtpEnabled: false });
    expect(await one).toEqual({ kind: "full", most: 100 });
  }, 90_000);
});

describe("verification", () => {
  test("finds everything right where the records are published as they were given", async () => {
    dns.publish(records());
    expect(await verified()).toEqual({ status: "verified", problems: [] });
  });

  test("accepts records that mean the same in another form", async () => {
    const key = records()[2]?.value.split("p=")[1] ?? "";
    dns.zone.set(getRecordName(0), [
      { type: "MX", value: "backup.test", priority: 20 },
      { type: "MX", value: "MX.Platform.TEST", priority: 5 },
      { type: "TXT", value: "unrelated" },
      { type: "TXT", value: `v=spf1 a include:other.test include:spf.${MAIL_HOST} -all` },
    ]);
    dns.zone.set(getRecordName(2), [{ type: "CNAME", value: "keys.hoster.test" }]);
    dns.zone.set("keys.hoster.test", [{ type: "TXT", value: `p=${key}; k=rsa` }]);
    dns.zone.set("_dmarc.acme.test", [{ type: "TXT", value: "v=DMARC1; p=reject; rua=mailto:d@acme.test" }]);
    expect(await verified()).toEqual({ status: "verified", problems: [] });
  });

  test.each<[string, 0 | 1 | 2 | 3, string, string]>([
    ["return_path", 0, "has no MX record", "MX"],
    ["dkim", 2, "has no TXT record", "TXT"],
    ["dmarc", 3, "no parent domain has", "TXT"],
  ])("fails if the %s record is missing, and says so", async (check, index, why) => {
    dns.publish(records().filter((record) => record.name !== getRecordName(index)));
    const { status, problems } = await verified();
    expect(status).toBe("failed");
    expect(problems).toContainEqual({ check, result: "failed", why: expect.stringContaining(why) });
    expect(problems.find(({ check: name }) => name === check)).toMatchObject({
      why: expect.stringContaining(getRecordName(index)),
    });
  });

  describe("finds the DMARC record that receivers apply (RFC 9989)", () => {
    const OWN = "_dmarc.mail.acme.test";
    const VALID = "v=DMARC1; p=reject";
    const INVALID = "v=DMARC1; p=perhaps";
    test.each<[string, Record<string, string[]>, string | null]>([
      ["its own before a parent's", { [OWN]: [INVALID], "_dmarc.acme.test": [VALID] }, OWN],
      ["a parent's", { "_dmarc.acme.test": [VALID] }, null],
      ["its organization's, at the shortest name", { "_dmarc.acme.test": [INVALID], "_dmarc.test": [VALID] }, null],
      [
        "its organization's, where one says that it begins",
        { "_dmarc.acme.test": [`${INVALID}; psd=n`], "_dmarc.test": [VALID] },
        "_dmarc.acme.test",
      ],
      [
        "its organization's, right below a public suffix",
        { "_dmarc.acme.test": [VALID], "_dmarc.test": [`${INVALID}; psd=y`] },
        null,
      ],
      ["that of a public suffix, without one below it", { "_dmarc.test": [`${VALID}; psd=y`] }, null],
      ["a parent's, if its own are two", { [OWN]: [VALID, VALID], "_dmarc.acme.test": [VALID] }, null],
      ["none, if there are two", { [OWN]: [VALID, VALID] }, OWN],
      ["none, if a parent has two", { "_dmarc.acme.test": [VALID, VALID] }, "_dmarc.acme.test"],
    ])("%s", async (_, zone, wrongAt) => {
      dns.publish(records().slice(0, 3));
      const rename = (name: string) => name.replace("mail.acme.test", domain);
      for (const [name, texts] of Object.entries(zone)) {
        dns.zone.set(
          rename(name),
          texts.map((value) => ({ type: "TXT", value })),
        );
      }
      const { status, problems } = await verified();
      expect(status).toBe(wrongAt === null ? "verified" : "failed");
      expect(problems.map(({ check, why }) => [check, why])).toEqual(
        wrongAt === null ? [] : [["dmarc", expect.stringContaining(rename(wrongAt))]],
      );
    });

    test("with at most eight look-ups, however deep the domain is", async () => {
      domain = `a.b.c.d.e.f.g.h.i.j.${nthDomain()}`;
      view = await must(service.register("acme", { domain, relayEnabled: true, smtpEnabled: false }));
      dns.publish(records().slice(0, 3));
      dns.zone.set("_dmarc.test", [{ type: "TXT", value: `${VALID}; psd=y` }]);
      dns.asked.length = 0;
      expect((await verified()).status).toBe("verified");
      expect(new Set(dns.asked.filter((name) => name.startsWith("_dmarc."))).size).toBe(8);
    });

    test("or none, while a look-up on the way has no answer", async () => {
      dns.publish(records().slice(0, 3));
      dns.zone.set("_dmarc.test", [{ type: "TXT", value: VALID }]);
      dns.misbehaviours.set("_dmarc.acme.test", "servfail");
      const { status, problems } = await verified();
      expect([status, problems[0]?.check, problems[0]?.result]).toEqual(["pending", "dmarc", "unanswered"]);
    });
  });

  test("fails for wrong records, and says what is wrong with each", async () => {
    dns.zone.set(getRecordName(0), [
      { type: "MX", value: "mx.elsewhere.test", priority: 1 },
      { type: "TXT", value: "v=spf1 -all" },
    ]);
    dns.zone.set(getRecordName(2), [{ type: "TXT", value: "v=DKIM1; k=rsa; p=MIIother" }]);
    dns.zone.set(getRecordName(3), [{ type: "TXT", value: "v=DMARC1; p=perhaps" }]);
    expect(await verified()).toEqual({
      status: "failed",
      problems: [
        { check: "return_path", result: "failed", why: expect.stringContaining("found: mx.elsewhere.test") },
        { check: "spf", result: "failed", why: expect.stringContaining("found: v=spf1 -all") },
        { check: "dkim", result: "failed", why: expect.stringContaining("another key") },
        { check: "dmarc", result: "failed", why: expect.stringContaining("found: v=DMARC1; p=perhaps") },
      ],
    });
  });

  test.each(["silent", "servfail", "refused", "garbage"] as const)(
    "leaves a verified domain verified while a name server is %s, and says why to the operator",
    async (misbehaviour) => {
      dns.publish(records());
      await verified();
      for (const { name } of records()) dns.misbehaviours.set(name, misbehaviour);
      const { status, problems } = await verified();
      expect(status).toBe("verified");
      expect(problems).toHaveLength(4);
      expect(problems).toContainEqual({
        check: "dkim",
        result: "unanswered",
        why: expect.stringContaining(getRecordName(2)),
      });
    },
  );

  test("leaves a pending or failed domain as it is while no name server answers", async () => {
    for (const { name } of records()) dns.misbehaviours.set(name, "silent");
    expect((await verified()).status).toBe("pending");
    dns.misbehaviours.clear();
    expect((await verified()).status).toBe("failed");
    for (const { name } of records()) dns.misbehaviours.set(name, "servfail");
    expect((await verified()).status).toBe("failed");
  });

  test("fails a verified domain whose record is gone, and takes it back once it is there again", async () => {
    dns.publish(records());
    await verified();
    const key = dns.zone.get(getRecordName(2)) ?? [];
    dns.zone.delete(getRecordName(2));
    // An unanswered query for one record does not excuse another record that is wrong.
    dns.misbehaviours.set(getRecordName(3), "servfail");
    expect((await verified()).status).toBe("failed");
    dns.zone.set(getRecordName(2), key);
    dns.misbehaviours.clear();
    expect((await verified()).status).toBe("verified");
  });

  test("can store its findings, whatever bytes are published", async () => {
    dns.zone.set(getRecordName(0), [
      { type: "MX", value: "m\0\u001b.test", priority: 1 },
      { type: "TXT", value: "v=spf1 \0 -all" },
    ]);
    dns.zone.set(getRecordName(2), [{ type: "TXT", value: "\0" }]);
    dns.zone.set(getRecordName(3), [{ type: "TXT", value: "v=DMARC1; p=\0" }]);
    const { status, problems } = await verified();
    expect(status).toBe("failed");
    expect(problems).toHaveLength(4);
  });

  test("runs once for all concurrent requests", async () => {
    dns.publish(records());
    dns.asked.length = 0;
    const answers = await Promise.all(Array.from({ length: 20 }, verified));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set(["verified"]));
    // A query whose answer is late is repeated once.
    expect(dns.asked.filter((name) => name === getRecordName(2)).length).toBeLessThan(3);
  });

  test("does not bring back a domain that is deleted meanwhile", async () => {
    for (const { name } of records()) dns.misbehaviours.set(name, "silent");
    const verifying = service.verify("acme", domain);
    await must(service.delete("acme", domain));
    expect(await verifying).toEqual({ kind: "missing", what: "domain" });
    expect((await must(service.all("acme"))).map(({ record }) => record.Domain)).not.toContain(domain);
  });

  test("checks no record if the platform's relay is not used", async () => {
    const name = `smtp-only${nth}.test`;
    await must(service.register("acme", { domain: name, relayEnabled: false, smtpEnabled: true }));
    dns.asked.length = 0;
    const { record, details } = await must(service.verify("acme", name));
    expect(record).toMatchObject({ RelayStatus: "pending", SMTPStatus: "failed" });
    expect(details["checks"]).toEqual([
      { check: "smtp", result: "failed", why: expect.stringContaining("no smtp_url is stored") },
    ]);
    expect(dns.asked).toEqual([]);
  });
});

describe("the directory", () => {
  test("shows a verified domain with the key whose public half was published, and none that is not", async () => {
    const shown = async () => (await registry.directory.byId("acme"))?.domains.get(domain);
    expect(await shown()).toBeUndefined();
    dns.publish(records());
    await verified();
    const signing = (await shown())?.relay;
    expect(signing?.returnPathHost).toBe(getRecordName(0));
    expect(signing?.selector).toBe(getRecordName(2).split(".")[0]);
    const half = createPublicKey(signing?.privateKeyPem ?? "").export({ type: "spki", format: "der" });
    expect(records()[2]?.value).toEndWith(`p=${half.toString("base64")}`);
    dns.zone.delete(getRecordName(3));
    await verified();
    expect(await shown()).toBeUndefined();
  });

  test("has the private key sealed at rest", async () => {
    const rows = JSON.stringify(await database.db.execute("select * from domains"));
    expect(rows).toContain(domain);
    expect(rows).not.toContain("PRIVATE KEY");
  });
});

describe("the platform's own sender", () => {
  test("is signed for once its domain's records are published, and no longer when a verification fails", async () => {
    const { record } = await sender.view();
    expect(record).toMatchObject({ Domain: "waybill.test", RelayStatus: "pending", SMTPEnabled: false });
    // The key is generated once.
    expect((await sender.view()).record).toEqual(record);
    expect(registry.senderDomain.signing).toBeNull();

    dns.publish(record.DNSRecords.relay);
    const [first, second] = await Promise.all([sender.verify(), sender.verify()]);
    expect([first.record.RelayStatus, second.record.RelayStatus]).toEqual(["verified", "verified"]);
    const signing = registry.senderDomain.signing;
    expect(signing?.returnPathHost).toBe("bounce.waybill.test");
    expect(record.DNSRecords.relay[2]?.name).toBe(`${signing?.selector}._domainkey.waybill.test`);
    const publicKey = createPublicKey(signing?.privateKeyPem ?? "").export({ type: "spki", format: "der" });
    expect(record.DNSRecords.relay[2]?.value).toEndWith(`p=${Buffer.from(publicKey).toString("base64")}`);

    // Another process finds it when it starts.
    const other = await openTestRegistry(database);
    expect(other.senderDomain.signing).toEqual(signing);
    await other.stop();

    dns.zone.clear();
    expect((await sender.verify()).record.RelayStatus).toBe("failed");
    expect(registry.senderDomain.signing).toBeNull();
  });
});
