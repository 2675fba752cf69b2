import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTransport } from "nodemailer";
import { type Canary, startCanary } from "../support/canary.ts";
import { DnsServer } from "../support/dns-server.ts";
import { eventually } from "../support/eventually.ts";
import { ownNameServersMissing, type Postfix, postfixMissing, startPostfix } from "../support/postfix.ts";

const ANSWERS = `regexp:${join(import.meta.dir, "../../infra/mail/private-answers")}`;
/** An address whose port 53 is used neither by another program nor by another run of this test. */
const NAME_SERVER = `127.53.${1 + ((process.pid >> 8) & 127)}.${1 + (process.pid & 127)}`;

const noPostfix = postfixMissing();
const missing = ownNameServersMissing();

/** Hands a message to the server; returns its last reply. */
async function submit(postfix: Postfix, to: string): Promise<string> {
  const { hostname: host, port } = new URL(postfix.url);
  const transport = createTransport({ host, port: Number(port), ignoreTLS: true });
  try {
    return (await transport.sendMail({ from: "a@waybill.test", to, subject: "s", text: "t" })).response;
  } catch (error) {
    return error instanceof Error ? String(Reflect.get(error, "response")) : "";
  } finally {
    transport.close();
  }
}

describe.skipIf(noPostfix !== null)(
  `Postfix' answers of DNS${noPostfix === null ? "" : ` (skipped: ${noPostfix})`}`,
  () => {
    const actionOn = (record: string) => {
      const { stdout } = Bun.spawnSync(["postmap", "-q", `mx.test. 300 IN ${record}`, ANSWERS]);
      return stdout.toString().trim();
    };

    // biome-ignore format: a list of records
    test.each([
    "A 0.0.0.0", "A 10.1.2.3", "A 100.64.0.1", "A 100.127.0.1", "A 127.0.0.1", "A 169.254.169.254", "A 172.16.0.1",
    "A 172.31.0.1", "A 192.0.0.1", "A 192.0.2.1", "A 192.168.0.1", "A 198.18.0.1", "A 198.51.100.1", "A 203.0.113.1",
    "A 224.0.0.1", "A 255.255.255.255", "A 168.63.129.16", "AAAA ::", "AAAA ::1", "AAAA ::ffff:127.0.0.1",
    "AAAA ::ffff:0:127.0.0.1", "AAAA 64:ff9b::7f00:1", "AAAA 100::1", "AAAA 2001::1", "AAAA 2001:0:4136:e378::1",
    "AAAA 2001:1ff::1", "AAAA 2001:db8::1", "AAAA 2002:7f00:1::", "AAAA 3fff::1", "AAAA 3ffe::1", "AAAA 4000::1",
    "AAAA fc00::1", "AAAA fd12::1", "AAAA fe80::1", "AAAA fec0::1", "AAAA ff02::1", "AAAA 200::1", "AAAA 20::1",
  ])("are dropped where they lead inside: %s", (record) => {
    expect(actionOn(record)).toBe("IGNORE");
  });

    // biome-ignore format: a list of records
    test.each([
    "A 8.8.8.8", "A 100.63.0.1", "A 100.128.0.1", "A 172.15.0.1", "A 172.32.0.1", "A 192.0.1.1", "A 198.17.0.1",
    "A 110.0.0.1", "A 128.127.0.1", "A 168.63.129.161", "AAAA 2606:4700::1111", "AAAA 2a00:1450::1", "AAAA 2001:200::1",
    "AAAA 2001:4860:4860::8888", "AAAA 2001:db80::1", "MX 10 127.0.0.1.example.", "CNAME 10.example.",
  ])("are kept where they do not: %s", (record) => {
    expect(actionOn(record)).toBe("");
  });
  },
);

describe.skipIf(missing !== null)(`Postfix${missing === null ? "" : ` (skipped: ${missing})`}`, () => {
  let folder: string;
  let canary: Canary;
  let dns: DnsServer;
  let postfix: Postfix;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "waybill-private-"));
    const resolvConf = join(folder, "resolv.conf");
    await Bun.write(resolvConf, `nameserver ${NAME_SERVER}\n`);
    [canary, dns] = await Promise.all([startCanary(), DnsServer.start({ host: NAME_SERVER, port: 53 })]);
    dns.zone.set("inside.test", [{ type: "MX", value: "mx.inside.test", priority: 10 }]);
    for (const name of ["mx.inside.test", "address.test", "localhost"]) {
      dns.zone.set(name, [{ type: "A", value: "127.0.0.1" }]);
    }
    // As operators have it: by DNS, to whom that names.
    const settings = {
      transport_maps: "",
      default_transport: "smtp",
      smtp_host_lookup: "dns",
      smtp_dns_support_level: "enabled",
      smtp_tcp_port: String(canary.port),
    };
    postfix = await startPostfix({ sinkPort: canary.port, resolvConf, settings });
  }, 300_000);

  afterAll(async () => {
    await postfix?.remove();
    await dns?.stop();
    await canary?.stop();
    await rm(folder, { recursive: true, force: true });
  }, 90_000);

  test.each(["inside.test", "address.test"])("connects to nobody inside for mail to %s", async (domain) => {
    expect(await submit(postfix, `ann@${domain}`)).toStartWith("250 ");
    await eventually("the mail is deferred", async () =>
      (await readFile(postfix.log, "utf8")).includes(`to=<ann@${domain}>, relay=none`),
    );
    expect(canary.connections).toBe(0);
  });

  test.each(["[127.0.0.1]", "[IPv6:::1]", "127.0.0.1", "localhost", "mail.localhost"])(
    "takes no mail to a machine: %s",
    async (domain) => {
      expect(await submit(postfix, `ann@${domain}`)).toMatch(/^5\d\d /);
      expect(canary.connections).toBe(0);
    },
  );
});
