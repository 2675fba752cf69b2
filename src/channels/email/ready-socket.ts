import { Socket } from "node:net";
import type SMTPConnection from "nodemailer/lib/smtp-connection";

/** A connection to a mail server that is ready for messages: greeted, and encrypted and authenticated as required. */
export interface ReadySocket {
  readonly socket: Socket;
  /** The extensions of SMTP that the server offers (RFC 5321, 2.2), as far as they concern a message. */
  readonly offers: ReadonlySet<string>;
}

const LISTENERS = [
  ["data", "_onSocketData"],
  ["timeout", "_onSocketTimeout"],
  ["close", "_onSocketClose"],
  ["end", "_onSocketEnd"],
  ["error", "_onSocketError"],
] as const;

/**
 * Takes over the socket of nodemailer's connection once it is ready; nodemailer sees nothing of it from then on. Null if the
 * server has sent more than it was asked, because those bytes answer nothing. These members are internals of nodemailer, so its
 * version is pinned, and each is checked before use.
 */
export function takenOver(connection: SMTPConnection): ReadySocket | null {
  const socket: unknown = Reflect.get(connection, "_socket");
  const offers: unknown = Reflect.get(connection, "_supportedExtensions");
  const queue: unknown = Reflect.get(connection, "_responseQueue");
  const rest: unknown = Reflect.get(connection, "_remainder");
  if (!(socket instanceof Socket) || !isTexts(offers) || !isTexts(queue) || typeof rest !== "string") throw changed();
  if (queue.length > 0 || rest !== "") return null;
  for (const [event, name] of LISTENERS) {
    const listener: unknown = Reflect.get(connection, name);
    if (!isListener(listener) || socket.listenerCount(event) === 0) throw changed();
    socket.removeListener(event, listener);
  }
  socket.setTimeout(0);
  return { socket, offers: new Set(offers) };
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}

function isListener(value: unknown): value is () => void {
  return typeof value === "function";
}

function changed(): Error {
  return new Error("nodemailer's connection is not what it was");
}
