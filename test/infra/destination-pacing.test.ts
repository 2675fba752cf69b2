import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { createTransport } from "nodemailer";
import { SMTPServer } from "smtp-server";
import { eventually } from "../support/eventually.ts";
import { type Postfix, postfixMissing, startPostfix } from "../support/postfix.ts";

const missing = postfixMissing();

describe.skipIf(missing !== null)(`Postfix${missing === null ? "" : ` (skipped: ${missing})`}`, () => {
  let sink: SMTPServer;
  let postfix: Postfix;
  let open = 0;
  let openMost = 0;
  const arrivals = new Map<string, number[]>();

  beforeAll(async () => {
    sink = new SMTPServer({
      disabledCommands: ["AUTH", "STARTTLS"],
      disableReverseLookup: true,
      maxClients: 1000,
      logger: false,
      closeTimeout: 100,
      onConnect(_session, callback) {
        open += 1;
        openMost = Math.max(openMost, open);
        callback();
      },
      onClose() {
        open -= 1;
      },
      onData(stream, { envelope }, callback) {
        const domain = envelope.rcptTo[0]?.address.split("@")[1] ?? "";
        stream.resume();
        stream.on("end", () => {
          arrivals.set(domain, [...(arrivals.get(domain) ?? []), performance.now()]);
          // Long enough that mail for a domain piles up.
          setTimeout(callback, 20);
        });
      },
    });
    sink.on("error", () => {});
    await new Promise<void>((resolve) => sink.listen(0, "127.0.0.1", resolve));
    // A server that listens on TCP has an address of this form.
    const { port } = sink.server.address() as AddressInfo;
    postfix = await startPostfix({
      sinkPort: port,
      slowDomains: [`/@slow\\.test$/ slow:[127.0.0.1]:${port}`],
    });
  }, 300_000);

  afterAll(async () => {
    await postfix?.remove();
    await new Promise<void>((resolve) => sink.close(() => resolve()));
  }, 90_000);

  async function send(count: number, to: string): Promise<void> {
    const { hostname: host, port } = new URL(postfix.url);
    const transport = createTransport({ host, port: Number(port), ignoreTLS: true, pool: true, maxConnections: 20 });
    const mail = { from: "a@waybill.test", to, subject: "s", text: "t" };
    await Promise.all(Array.from({ length: count }, () => transport.sendMail(mail)));
    transport.close();
  }

  const arrived = (domain: string) => arrivals.get(domain) ?? [];

  test("opens at most ten connections to a destination, however much mail waits", async () => {
    await send(300, "ann@fast.test");
    await eventually("all of it arrives", () => arrived("fast.test").length === 300, 60_000);
    expect(openMost).toBeGreaterThan(2);
    expect(openMost).toBeLessThanOrEqual(10);
  }, 300_000);

  test("sends to a slow domain one message at a time, a second apart, through a service of its own", async () => {
    await send(6, "ann@slow.test");
    await send(50, "ann@other.test");
    await eventually("the others arrive", () => arrived("other.test").length === 50, 30_000);
    await eventually("all of it arrives", () => arrived("slow.test").length === 6, 30_000);
    const [first = 0, ...others] = arrived("slow.test");
    // Five seconds; less only where this process saw the first one late.
    expect((others.at(-1) ?? 0) - first).toBeGreaterThan(3_000);
    // Postfix writes a line after the message has arrived.
    await eventually("the log tells which service sent each of them", async () => {
      const log = await readFile(postfix.log, "utf8");
      const bySlow = log.match(/postfix\/slow\/smtp\[\d+\]: .*@slow\.test>.* status=sent/g) ?? [];
      const byOther = log.match(/postfix\/smtp\[\d+\]: .*@other\.test>.* status=sent/g) ?? [];
      return bySlow.length === 6 && byOther.length === 50;
    });
  }, 300_000);
});
