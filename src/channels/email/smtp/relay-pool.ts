import type { SmtpServer } from "../../../domain/channels/smtp-url.ts";
import type { MailMessage } from "../mime/mail-message.ts";
import type { RelayRoute } from "./relay-route.ts";
import { CALLED_OFF, type SmtpFailure, toSmtpFailure } from "./smtp-replies.ts";
import { asksToSwap, SmtpError, SmtpSession, type SmtpTimeouts } from "./smtp-session.ts";

export interface RelayPoolOptions {
  readonly server: SmtpServer;
  readonly route: RelayRoute;
  /** The name with which the server is greeted. */
  readonly ehloName: string;
  readonly timeouts: SmtpTimeouts;
  /** Most messages at one time, and therefore connections. */
  readonly connectionsMax: number;
  /** The same until the server has accepted a message: a server that hangs must not occupy more. */
  readonly unprovenMax: number;
  /** Called when a connection is about to be opened. */
  onOpen(): void;
  onEnd(): void;
  /** Called when connections are encrypted the other way from now on: see `encryption`. */
  onSwap?(failure: SmtpFailure): void;
}

/** After this time, the usual encryption is tried again. */
const SWAP_MS = 60 * 60_000;

/**
 * The connections to one mail server.
 *
 * Invariants:
 * R1. Each connection carries one message at a time, and no more messages are sent at once than the server's limit.
 * R2. A message waits at most `turnMs` for a connection, which leaves its caller's deadline to the message itself.
 *     Messages wait in order of arrival.
 * R3. A message is submitted once, unless the server had closed a kept connection before reading any of it, or refused it for the
 *     connection's encryption.
 * R4. Recipients beyond the server's limit per transaction get the message in further ones, each with at least one of
 *     them.
 */
export class RelayPool {
  /** Idle connections, the most recently used last. */
  private readonly kept: Kept[] = [];
  private readonly sessions = new Set<SmtpSession>();
  private readonly waiting = new Set<Waiter>();
  private turns = 0;
  private isProven = false;
  private swappedUntilMs = 0;
  private closed = false;

  constructor(private readonly options: RelayPoolOptions) {}

  /** Whether a message waits or is being handed over. */
  get isBusy(): boolean {
    return this.turns + this.waiting.size > 0;
  }

  /** Resolves to the server's last reply; rejects with `SmtpError`. */
  async send(mail: MailMessage, signal: AbortSignal): Promise<string> {
    await this.turn(signal);
    const line: Line = { session: this.takeKept() };
    try {
      const reply = this.proven(await this.sendOver(line, mail, signal));
      if (mail.further !== undefined) await this.sendRest(line, mail, signal);
      return reply;
    } finally {
      void this.endTurn(line.session);
    }
  }

  /** Sends over the line's connection, or over a new one, which the line then keeps. */
  private async sendOver(line: Line, mail: MailMessage, signal: AbortSignal): Promise<string> {
    const kept = line.session === null ? null : await sendUnlessStale(line.session, mail, signal);
    if (kept !== null) return kept;
    const wasSwapped = this.isSwapped;
    try {
      line.session = await this.opened(signal);
      return await line.session.send(mail, signal);
    } catch (error) {
      if (wasSwapped || !(error instanceof SmtpError) || !asksToSwap(this.options.server, error.failure)) throw error;
      this.swap(error.failure);
      line.session?.close();
      line.session = await this.opened(signal);
      return line.session.send(mail, signal);
    }
  }

  /** Sends the message to the recipients beyond the server's limit per transaction. Never fails. */
  private async sendRest(line: Line, mail: MailMessage, signal: AbortSignal): Promise<void> {
    const { further } = mail;
    let left = line.session?.left ?? [];
    while (left.length > 0 && further !== undefined) {
      const [to = "", ...addresses] = left;
      const judge = (refused: ReadonlyMap<string, SmtpFailure>) => {
        for (const [address, failure] of refused) further.missed([address], failure);
        return refused.size === left.length ? (refused.get(to) ?? null) : null;
      };
      try {
        if (line.session?.isOver) line.session = null;
        await this.sendOver(line, { ...mail, to, further: { ...further, addresses, judge } }, signal);
        left = line.session?.left ?? [];
      } catch (error) {
        return further.missed(left, error instanceof SmtpError ? error.failure : toSmtpFailure(error, "message"));
      }
    }
  }

  private get isSwapped(): boolean {
    return performance.now() < this.swappedUntilMs;
  }

  private swap(failure: SmtpFailure): void {
    if (!this.isSwapped) this.options.onSwap?.(failure);
    this.swappedUntilMs = performance.now() + SWAP_MS;
    // Kept connections have the usual encryption, which the server has just refused.
    for (const { session } of this.kept.splice(0)) session.quit();
  }

  /** Closes the connection that has been idle longest. False: all are in use. */
  shed(): boolean {
    const [oldest] = this.kept;
    oldest?.session.close();
    return oldest !== undefined;
  }

  /** Ends every connection and every wait. Safe to call twice. */
  close(): void {
    this.closed = true;
    for (const waiter of this.waiting) waiter.stop();
    for (const session of this.sessions) session.close();
  }

  private proven(reply: string): string {
    this.isProven = true;
    return reply;
  }

  private async opened(signal: AbortSignal): Promise<SmtpSession> {
    const { route } = this.options;
    const address = await route.address(signal);
    if (this.closed) throw new SmtpError(toSmtpFailure(CALLED_OFF, "waiting"));
    const session = this.newSession(address);
    try {
      await session.open(signal);
      return session;
    } catch (error) {
      route.failed();
      throw error;
    }
  }

  private newSession(address: string): SmtpSession {
    const { server, timeouts, ehloName, onOpen, onEnd } = this.options;
    onOpen();
    const session = new SmtpSession({ ...server, address, ehloName, isSwapped: this.isSwapped }, timeouts, () => {
      this.sessions.delete(session);
      const at = this.kept.findIndex((each) => each.session === session);
      if (at !== -1) clearTimeout(this.kept.splice(at, 1)[0]?.timer);
      onEnd();
    });
    this.sessions.add(session);
    return session;
  }

  private turn(signal: AbortSignal): Promise<void> {
    const calledOff = () => new SmtpError(toSmtpFailure(CALLED_OFF, "waiting"));
    if (this.closed || signal.aborted) return Promise.reject(calledOff());
    if (this.turns < this.turnsMax) {
      this.turns += 1;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const leave = () => {
        clearTimeout(timer);
        this.waiting.delete(waiter);
        signal.removeEventListener("abort", stop);
      };
      const stop = () => {
        leave();
        reject(calledOff());
      };
      const go = () => {
        leave();
        resolve();
      };
      const waiter: Waiter = { go, stop };
      const timer = setTimeout(stop, this.options.timeouts.turnMs);
      this.waiting.add(waiter);
      signal.addEventListener("abort", stop, { once: true });
    });
  }

  private get turnsMax(): number {
    const { connectionsMax, unprovenMax } = this.options;
    return this.isProven ? connectionsMax : Math.min(connectionsMax, unprovenMax);
  }

  /** Ends the turn when its connection is usable again, or closed. */
  private async endTurn(session: SmtpSession | null): Promise<void> {
    if (session?.isUnclear) await session.reset().catch(() => {});
    if (session !== null && !session.isOver) this.keep(session);
    this.turns -= 1;
    for (const waiter of this.waiting) {
      if (this.turns >= this.turnsMax) return;
      this.turns += 1;
      waiter.go();
    }
  }

  private keep(session: SmtpSession): void {
    if (this.closed) return session.close();
    const timer = setTimeout(() => {
      // Must not get another message while it is closing.
      const at = this.kept.findIndex((each) => each.session === session);
      this.kept.splice(at, 1);
      session.quit();
    }, this.options.timeouts.idleMs);
    timer.unref();
    this.kept.push({ session, timer });
  }

  private takeKept(): SmtpSession | null {
    const last = this.kept.pop();
    clearTimeout(last?.timer);
    return last?.session ?? null;
  }
}

/** The connection of one turn. */
interface Line {
  session: SmtpSession | null;
}

interface Kept {
  readonly session: SmtpSession;
  readonly timer: ReturnType<typeof setTimeout>;
}

interface Waiter {
  readonly go: () => void;
  readonly stop: () => void;
}

/** Sends the message; null if the server had closed the connection. */
async function sendUnlessStale(session: SmtpSession, mail: MailMessage, signal: AbortSignal): Promise<string | null> {
  try {
    return await session.send(mail, signal);
  } catch (error) {
    if (error instanceof SmtpError && error.isStale) return null;
    throw error;
  }
}
