import { type AddressInfo, createServer, type Socket } from "node:net";

/** One message as a mail server parsed it. */
export interface Envelope {
  readonly from: string;
  /** The arguments of `RCPT TO`, whole. */
  readonly recipients: readonly string[];
  /** The message, byte for byte, up to the end that the server recognised. */
  readonly data: string;
}

export interface GullibleMailServer {
  readonly url: string;
  readonly envelopes: readonly Envelope[];
  /** Commands that do not belong to a usual session. */
  readonly odd: readonly string[];
  stop(): Promise<void>;
}

/** All sequences that some server somewhere accepts as the end of a message, in place of CR LF dot CR LF. */
const END = /(?:\r\n|\n|\r)\.(?:\r\n|\n|\r)/;
const LINE_END = /\r\n|\n|\r(?!$)/;

/**
 * The most gullible mail server possible: a bare CR or LF ends a line for it, a lone dot between any two line ends ends
 * a message, and the following lines are commands.
 */
export async function startGullibleMailServer(): Promise<GullibleMailServer> {
  const envelopes: Envelope[] = [];
  const odd: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("close", () => sockets.delete(socket));
    serve(socket, { take: (envelope) => envelopes.push(envelope), wonder: (line) => odd.push(line) });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // A server that listens on TCP has an address of this form.
  const { port } = server.address() as AddressInfo;
  return {
    url: `smtp://127.0.0.1:${port}`,
    envelopes,
    odd,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

interface Notes {
  take(envelope: Envelope): void;
  wonder(line: string): void;
}

function serve(socket: Socket, notes: Notes): void {
  let text = "";
  let inMessage = false;
  let from = "";
  let recipients: string[] = [];
  const say = (line: string) => socket.write(`${line}\r\n`);

  const command = (line: string): void => {
    const argument = line.slice(line.indexOf(":") + 1);
    switch (line.slice(0, 4).toUpperCase()) {
      case "EHLO":
        say("250-gullible.test\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250 SIZE 100000000");
        return;
      case "MAIL":
        [from, recipients] = [argument, []];
        break;
      case "RCPT":
        recipients.push(argument);
        break;
      case "DATA":
        inMessage = true;
        say("354 go");
        return;
      case "QUIT":
        say("221 bye");
        socket.end();
        return;
      case "RSET":
      case "NOOP":
        break;
      default:
        notes.wonder(line);
    }
    say("250 ok");
  };

  const read = (): void => {
    while (true) {
      const end = (inMessage ? END : LINE_END).exec(text);
      if (end === null) return;
      const before = text.slice(0, end.index);
      text = text.slice(end.index + end[0].length);
      if (!inMessage) {
        command(before);
        continue;
      }
      inMessage = false;
      notes.take({ from, recipients, data: before });
      say("250 taken");
    }
  };

  socket.on("data", (chunk) => {
    text += chunk.toString("latin1");
    read();
  });
  say("220 gullible.test");
}
