import { afterAll, describe, expect, test } from "bun:test";
import { type AddressInfo, createServer, type Socket } from "node:net";
import type { MailMessage } from "../../../src/channels/email/mime/mail-message.ts";
import { RelayPool } from "../../../src/channels/email/smtp/relay-pool.ts";
import { RelayRoute } from "../../../src/channels/email/smtp/relay-route.ts";
import { smtpOutcome } from "../../../src/channels/email/smtp/smtp-replies.ts";
import { SmtpError } from "../../../src/channels/email/smtp/smtp-session.ts";
import type { Outcome } from "../../../src/domain/jobs/outcome.ts";
import { inEachStep } from "./email-world.ts";

/* A relay that resets the connection after each byte that it sends, and after each that it receives. */

const NEVER = new AbortController().signal;
const LIMITS = { turnMs: 5_000, connectMs: 5_000, readyMs: 5_000, ...inEachStep(5_000), idleMs: 5_000 };
const MAIL: MailMessage = { from: "b@a.test", to: "a@b.test", text: "Subject: s\r\n\r\n.\r\n\r\n" };
const END = "\r\n.\r\n";
/** Longer than any transaction here, in bytes. */
const BYTES_MAX = 400;

/** Where it resets: after that many bytes of its own, or of its client's. */
interface Cut {
  readonly said: number;
  readonly heard: number;
}

const WHOLE: Cut = { said: BYTES_MAX, heard: BYTES_MAX };

/**
 * Takes one message after another, and resets its first connection at the cut, counted from the message that contains
 * it.
 */
class ResettingRelay {
  /** Messages whose end it has received. */
  taken = 0;
  /** Whether it has reached the cut. */
  hasCut = false;
  port = 0;
  private left: { said: number; heard: number } = { ...WHOLE };
  private readonly sockets = new Set<Socket>();
  private readonly server = createServer((socket) => this.serve(socket));

  constructor(private readonly isPipelining: boolean) {}

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    // A server that listens on TCP has an address of this form.
    this.port = (this.server.address() as AddressInfo).port;
    return this;
  }

  stop(): void {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
  }

  cut(cut: Cut): void {
    this.left = { ...cut };
    this.hasCut = false;
    this.taken = 0;
  }

  private serve(socket: Socket): void {
    this.sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => this.sockets.delete(socket));
    let text = "";
    let isMessage = false;
    this.say(socket, "220 r\r\n");
    socket.on("data", (chunk: Buffer) => {
      const heard = chunk.subarray(0, this.left.heard);
      this.left.heard -= heard.length;
      text += heard.toString("latin1");
      for (let end = text.indexOf("\r\n"); end !== -1; end = text.indexOf(isMessage ? END : "\r\n")) {
        const isEnd = isMessage;
        const line = text.slice(0, end);
        text = text.slice(end + (isMessage ? END : "\r\n").length);
        isMessage = line === "DATA";
        if (isEnd) this.taken += 1;
        this.say(socket, isEnd ? "250 d\r\n" : this.replyTo(line));
      }
      if (this.left.heard === 0) this.reset(socket);
    });
  }

  private replyTo(line: string): string {
    if (line.startsWith("EHLO")) return this.isPipelining ? "250-r\r\n250 PIPELINING\r\n" : "250 r\r\n";
    return line === "DATA" ? "354 c\r\n" : "250 a\r\n";
  }

  private say(socket: Socket, reply: string): void {
    const said = reply.slice(0, this.left.said);
    this.left.said -= said.length;
    if (said !== "") socket.write(said);
    if (this.left.said === 0) this.reset(socket);
  }

  private reset(socket: Socket): void {
    if (this.hasCut) return;
    this.hasCut = true;
    this.left = { ...WHOLE };
    socket.resetAndDestroy();
  }
}

const relays: ResettingRelay[] = [];
const pools: RelayPool[] = [];
afterAll(() => {
  for (const pool of pools) pool.close();
  for (const relay of relays) relay.stop();
});

function aPool({ port }: ResettingRelay): RelayPool {
  const pool = new RelayPool({
    server: { host: "127.0.0.1", port, secure: false, user: "", password: "" },
    route: new RelayRoute("127.0.0.1", null, 1_000),
    timeouts: LIMITS,
    ehloName: "send.test",
    connectionsMax: 1,
    unprovenMax: 1,
    onOpen() {},
    onEnd() {},
  });
  pools.push(pool);
  return pool;
}

async function attemptSend(pool: RelayPool): Promise<Outcome> {
  try {
    await pool.send(MAIL, NEVER);
    return { kind: "delivered", result: {} };
  } catch (error) {
    if (error instanceof SmtpError) return smtpOutcome(error.failure, { own: false, confidential: [] });
    throw error;
  }
}

/**
 * Sends one message to a relay that resets at the cut: returns whether it got that far, and what is wrong with the next
 * message.
 */
async function tried(
  relay: ResettingRelay,
  cut: Cut,
  isKept: boolean,
): Promise<{ isCut: boolean; wrong: string | null }> {
  const pool = aPool(relay);
  relay.cut(WHOLE);
  if (isKept) await attemptSend(pool);
  relay.cut(cut);
  const outcome = await attemptSend(pool);
  const isCut = relay.hasCut;
  pool.close();
  const isUncertain = outcome.kind === "retry" && outcome.isUncertain === true;
  const mayRepeat = outcome.kind === "away" || outcome.kind === "retry";
  const told = `${JSON.stringify(cut)}: ${JSON.stringify(outcome)}, taken ${relay.taken} times`;
  if (outcome.kind === "failed") return { isCut, wrong: `lost: ${told}` };
  if (relay.taken > 1) return { isCut, wrong: `twice: ${told}` };
  if (outcome.kind === "delivered" && relay.taken === 0) return { isCut, wrong: `lost: ${told}` };
  if (mayRepeat && !isUncertain && relay.taken > 0)
    return { isCut, wrong: `sent again as if it were not there: ${told}` };
  return { isCut, wrong: null };
}

const WAYS = [true, false].flatMap((isPipelining) => [false, true].map((isKept) => [isPipelining, isKept] as const));

describe.each(WAYS)("with pipelining (%p), on a kept connection (%p),", (isPipelining, isKept) => {
  test.each(["said", "heard"] as const)(
    "a reset after any byte that the relay has %s loses nothing, and repeats only what may be there as such",
    async (which) => {
      const relay = await new ResettingRelay(isPipelining).start();
      relays.push(relay);
      const wrong: string[] = [];
      let positions = 0;
      for (let at = 1; at < BYTES_MAX; at += 1) {
        const result = await tried(relay, { ...WHOLE, [which]: at }, isKept);
        if (!result.isCut) break;
        positions += 1;
        if (result.wrong !== null) wrong.push(result.wrong);
      }
      expect(wrong).toEqual([]);
      expect(positions).toBeGreaterThan(which === "said" ? 25 : 60);
      expect(positions).toBeLessThan(BYTES_MAX - 1);
    },
    30_000,
  );
});
