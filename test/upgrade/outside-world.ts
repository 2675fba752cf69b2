import { DnsServer } from "../support/dns-server.ts";
import { startSmtpServer, type TestSmtpServer } from "../support/smtp-server.ts";

/** The mail servers, the chat provider and the name servers around a Waybill that is replaced. They outlive it. */
export class OutsideWorld {
  /** The number of messages per address or number; the latest mail to each as received. */
  readonly arrived = new Map<string, number>();
  readonly sources = new Map<string, string>();
  /** The ids of the latest chat messages by number, and the access tokens they came with. */
  readonly wamids = new Map<string, string>();
  readonly tokens = new Set<string>();
  /** Recipients at `away.test` are temporarily refused. */
  isDeferring = true;
  deferred = 0;
  /** Mail to `silent.test` is accepted without an answer. */
  isSilent = true;
  /** The number of mails accepted without an answer. */
  unanswered = 0;

  private constructor(
    readonly smtp: TestSmtpServer,
    readonly provider: Bun.Server<undefined>,
    readonly dns: DnsServer,
  ) {}

  static async start(): Promise<OutsideWorld> {
    // The servers' callbacks run only after the world is there.
    const there: { world: OutsideWorld | null } = { world: null };
    const smtp = await startSmtpServer({
      onRcptTo({ address }, _session, callback) {
        if (address.startsWith("nouser")) callback(answer(550, "5.1.1 User unknown"));
        else if (address.endsWith("@away.test") && there.world?.isDeferring === true) {
          there.world.deferred += 1;
          callback(answer(451, "4.7.1 Try again later"));
        } else callback();
      },
      onData(stream, { envelope }, callback) {
        const chunks: Buffer[] = [];
        stream.on("data", (chunk: Buffer) => chunks.push(chunk));
        stream.on("end", () => {
          const recipients = envelope.rcptTo.map(({ address }) => address);
          if (there.world?.takeMail(recipients, Buffer.concat(chunks).toString("latin1")) === true) callback();
        });
      },
    });
    const provider = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: async (request) => there.world?.takeChat(request) ?? new Response(null, { status: 503 }),
    });
    there.world = new OutsideWorld(smtp, provider, await DnsServer.start());
    return there.world;
  }

  /** The settings under which a Waybill finds this world. */
  get environment(): Readonly<Record<string, string>> {
    return {
      SMTP_URL: this.smtp.url,
      WHATSAPP_API_URL: this.provider.url.origin,
      DNS_SERVERS: this.dns.address,
      MAIL_HOST: "mx.platform.test",
    };
  }

  /** Forgets the messages that have arrived. */
  forget(): void {
    this.arrived.clear();
    this.tokens.clear();
  }

  async stop(): Promise<void> {
    await this.smtp.stop();
    await this.provider.stop(true);
    await this.dns.stop();
  }

  private count(recipient: string): void {
    this.arrived.set(recipient, (this.arrived.get(recipient) ?? 0) + 1);
  }

  /** Returns whether it is answered. */
  private takeMail(recipients: readonly string[], source: string): boolean {
    for (const recipient of recipients) {
      this.count(recipient);
      this.sources.set(recipient, source);
    }
    const isAnswered = !(this.isSilent && recipients.some((recipient) => recipient.endsWith("@silent.test")));
    if (!isAnswered) this.unanswered += 1;
    return isAnswered;
  }

  private async takeChat(request: Request): Promise<Response> {
    // The body is one that Waybill writes.
    const { to } = (await request.json()) as { readonly to: string };
    const wamid = `wamid.${crypto.randomUUID()}`;
    this.count(to);
    this.wamids.set(to, wamid);
    this.tokens.add(request.headers.get("authorization") ?? "");
    return Response.json({ messaging_product: "whatsapp", contacts: [], messages: [{ id: wamid }] });
  }
}

function answer(responseCode: number, text: string): Error {
  return Object.assign(new Error(text), { responseCode });
}
