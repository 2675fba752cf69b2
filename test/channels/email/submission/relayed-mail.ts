import { isUtf8 } from "node:buffer";
import PostalMime, { type Header } from "postal-mime";
import { EmailChannel } from "../../../../src/channels/email/email-channel.ts";
import { QUEUE_SHARE } from "../../../../src/domain/tenants/tenant.ts";
import { Front } from "../../../http/support/front.ts";
import { startSmtpServer, type TestSmtpServer } from "../../../support/smtp-server.ts";
import { aTenant } from "../../../support/tenants.ts";
import { emailJob, LINKS } from "../email-world.ts";
import type { SmtpClient } from "./smtp-client.ts";
import { type Listening, PLATFORM_SENDER, SubmissionWorld } from "./submission-world.ts";

const NEVER = new AbortController().signal;

export interface Arrived {
  readonly from: string;
  readonly args: unknown;
  readonly source: Buffer;
}

/** Mail goes in by SMTP, is queued by the API, and is delivered by SMTP to a mail server that keeps it. */
export class RelayedMail {
  private client: SmtpClient | null = null;

  private constructor(
    readonly front: Front,
    private readonly world: SubmissionWorld,
    private readonly at: Listening,
    private readonly sink: TestSmtpServer,
    private readonly channel: EmailChannel,
    private readonly arrived: Arrived[],
  ) {}

  /** `hides`: the extensions that the mail server does not offer. */
  static async start({ hides = [] }: { readonly hides?: readonly "8BITMIME"[] } = {}): Promise<RelayedMail> {
    const front = await Front.start();
    await front.registry.putPlan({
      name: "pro",
      requestsPerMinute: 100_000,
      deliveriesPerSecond: null,
      ...QUEUE_SHARE,
    });
    const world = new SubmissionWorld(front);
    const at = await world.listen();
    const arrived: Arrived[] = [];
    const sink = await startSmtpServer({
      hide8BITMIME: hides.includes("8BITMIME"),
      onData(stream, { envelope }, answer) {
        const chunks: Buffer[] = [];
        stream.on("data", (chunk: Buffer) => chunks.push(chunk));
        stream.on("end", () => {
          const { address, args } = envelope.mailFrom || { address: "", args: {} };
          arrived.push({ from: address, args, source: Buffer.concat(chunks) });
          answer();
        });
      },
    });
    const channel = new EmailChannel({
      ...LINKS,
      smtpUrl: sink.url,
      defaultFrom: { address: PLATFORM_SENDER, name: "Shop" },
      contents: front.stores.jobContents,
    });
    return new RelayedMail(front, world, at, sink, channel, arrived);
  }

  /** The reply to the message, which is sent as it is given. */
  async submit(message: Uint8Array, ...recipients: string[]): Promise<string> {
    this.client ??= await this.world.loggedIn(this.at, this.front.apiKey);
    const began = await this.client.begin(...(recipients.length > 0 ? recipients : ["ada@example.com"]));
    if (!began.startsWith("354")) return began;
    const text = Buffer.from(message).toString("latin1").replace(/^\./gm, "..");
    this.client.write(Buffer.from(text.endsWith("\n") ? `${text}.\r\n` : `${text}\r\n.\r\n`, "latin1"));
    return this.client.reply();
  }

  /** Delivers the queued jobs and returns the mail that arrives. */
  async deliverAll(): Promise<readonly Arrived[]> {
    const { queue, payloads } = this.front;
    for (const { job } of queue.queued.splice(0)) {
      const stored = payloads.stored.get(`acme ${job.jobId}`);
      const payload = stored === undefined ? job.payload : Buffer.from(stored).toString();
      const { jobId, recipient } = job;
      this.latest = await this.channel.deliver({ ...emailJob(payload), jobId, recipient }, aTenant(), NEVER);
    }
    return this.arrived.splice(0);
  }

  /** The latest delivery's outcome. */
  latest: unknown = null;

  /** Submits the mail and returns what arrives. */
  async pass(message: Uint8Array): Promise<Buffer> {
    const reply = await this.submit(message);
    if (!reply.startsWith("250")) throw new Error(`refused: ${reply}`);
    const [arrived] = await this.deliverAll();
    if (arrived === undefined) throw new Error(`not delivered: ${JSON.stringify(this.latest)}`);
    return arrived.source;
  }

  async stop(): Promise<void> {
    await this.world.stop();
    this.channel.close();
    await this.sink.stop();
    await this.front.stop();
  }
}

interface Node {
  readonly childNodes: readonly Node[];
  readonly headers: readonly Header[];
  readonly contentType: {
    readonly parsed: { readonly value: string; readonly params: Readonly<Record<string, string>> };
  };
  readonly contentDisposition: {
    readonly parsed: { readonly value: string; readonly params: Readonly<Record<string, string>> };
  };
  readonly contentTransferEncoding: { readonly encoding: string };
  readonly content: ArrayBuffer | null;
  getTextContent(): string;
}

/** A part, as its reader has it. */
export interface Seen {
  readonly type: string;
  readonly params: Readonly<Record<string, string>>;
  readonly disposition: string;
  readonly filename: string;
  readonly contentId: string;
  /** Text as text, and files by their bytes. */
  readonly content: string;
  /** The parser reads files in base64 byte by byte, and others by lines that end with LF. */
  readonly isInLines: boolean;
}

export interface SeenMail {
  readonly headers: ReadonlyMap<string, string>;
  readonly parts: readonly Seen[];
}

/** The mail as an independent parser reads it. */
export async function seen(source: Uint8Array): Promise<SeenMail> {
  const parser = new PostalMime({ forceRfc822Attachments: true });
  const email = await parser.parse(withReadableHead(Buffer.from(source)));
  const root = Reflect.get(parser, "root") as Node;
  const parts: Seen[] = [];
  const visit = async (node: Node): Promise<void> => {
    if (node.childNodes.length > 0) for (const child of node.childNodes) await visit(child);
    else if (node.contentType.parsed.value !== "message/rfc822") parts.push(seenPart(node));
    else {
      const inner = await seen(new Uint8Array(node.content ?? new ArrayBuffer(0)));
      parts.push({ ...seenPart(node), content: inner.headers.get("subject") ?? "" }, ...inner.parts);
    }
  };
  await visit(root);
  const headers = new Map([
    ["subject", email.subject ?? ""],
    ["message-id", email.messageId ?? ""],
    ...["to", "cc", "replyTo"].map((name) => [name, JSON.stringify(Reflect.get(email, name) ?? null)] as const),
  ] as [string, string][]);
  for (const { key, value } of email.headers) if (!headers.has(key)) headers.set(key, value);
  return { headers, parts };
}

/** The parser reads a head as UTF-8. */
function withReadableHead(source: Buffer): Buffer {
  const end = source.indexOf("\r\n\r\n");
  const head = source.subarray(0, end);
  return isUtf8(head) ? source : Buffer.concat([Buffer.from(head.toString("latin1")), source.subarray(end)]);
}

function seenPart(node: Node): Seen {
  const { value: type, params } = node.contentType.parsed;
  const { name = "", boundary: _, charset, ...others } = params;
  const {
    value: disposition,
    params: { filename = name },
  } = node.contentDisposition.parsed;
  const id = node.headers.find(({ key }) => key === "content-id")?.value ?? "";
  const isText = /^text\/(?:plain|html)$/.test(type) && filename === "";
  return {
    type,
    params: isText || charset === undefined ? others : { ...others, charset },
    disposition: isText ? "" : disposition,
    filename,
    contentId: id,
    isInLines: !node.contentTransferEncoding.encoding.includes("base64"),
    content: isText ? shownText(node) : Buffer.from(node.content ?? new ArrayBuffer(0)).toString("latin1"),
  };
}

/** Without the pixel and the trailing line ends. */
function shownText(node: Node): string {
  const bytes = Buffer.from(node.content ?? new ArrayBuffer(0));
  const isUnnamed = node.contentType.parsed.params["charset"] === undefined && !isUtf8(bytes);
  const decoded = isUnnamed ? bytes.toString("latin1") : node.getTextContent();
  const text = decoded.replace(/\r\n/g, "\n").trimEnd();
  return text.replace(/<img src="https:\/\/send\.test\/t\/o\/[\w-]+\.gif"[^>]*>/, "");
}
