import { startSmtpServer, type TestSmtpServer } from "./smtp-server.ts";

/** The rest of the world's mail servers: the start of a recipient's local part decides the outcome. */
export interface MailSink extends TestSmtpServer {
  /** Messages accepted per recipient. */
  readonly received: ReadonlyMap<string, number>;
  /** The last message to each recipient, as it came over the wire. */
  readonly sources: ReadonlyMap<string, string>;
}

type Verdict = readonly [code: number, text: string];

const VERDICTS: Readonly<Record<string, Verdict>> = {
  nouser: [550, "5.1.1 Recipient address rejected: User unknown"],
  plain: [550, "No such user here"],
  disabled: [550, "5.2.1 The email account that you tried to reach is disabled"],
  policy: [550, "5.7.1 Message rejected due to policy"],
  full: [552, "5.2.2 Mailbox over quota"],
  defer: [451, "4.7.1 Try again later"],
};

/**
 * Accepts all mail except to `nouser…`, `plain…`, `disabled…`, `policy…`, `full…`, `defer…`; accepts `grey…` at the
 * second attempt.
 */
export async function startMailSink(): Promise<MailSink> {
  const received = new Map<string, number>();
  const sources = new Map<string, string>();
  const seen = new Set<string>();
  const server = await startSmtpServer({
    // The texts contain the codes.
    hideENHANCEDSTATUSCODES: true,
    onRcptTo({ address }, _session, callback) {
      const kind = /^[a-z]+/.exec(address)?.[0] ?? "";
      const isFirst = !seen.has(address);
      seen.add(address);
      const verdict = kind === "grey" && isFirst ? VERDICTS["defer"] : VERDICTS[kind];
      if (verdict === undefined) return callback();
      callback(Object.assign(new Error(verdict[1]), { responseCode: verdict[0] }));
    },
    onData(stream, { envelope }, callback) {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => {
        for (const { address } of envelope.rcptTo) {
          received.set(address, (received.get(address) ?? 0) + 1);
          sources.set(address, Buffer.concat(chunks).toString("latin1"));
        }
        callback(null, "2.0.0 Ok: queued as 4jWcZx67mFzMCQZ");
      });
    },
  });
  return { ...server, received, sources };
}
