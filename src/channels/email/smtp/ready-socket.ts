import { Socket } from "node:net";
import type SMTPConnection from "nodemailer/lib/smtp-connection";

/** A connection to a mail server that is ready for messages: greeted, and encrypted and authenticated as required. */
export interface ReadySocket {
  readonly socket: Socket;
  /** The extensions of SMTP that the server offers (RFC 5321, 2.2), as far as they concern a message. */
  readonly offers: ReadonlySet<string>;
}

const KEEP_ALIVE_MS = 30_000;

const LISTENERS = [
  ["data", "_onSocketData"],
  ["timeout", "_onSocketTimeout"],
  ["close", "_onSocketClose"],
  ["end", "_onSocketEnd"],
  ["error", "_onSocketError"],
] as const;

/**
 * Takes over the socket of nodemailer's connection once it is ready; nodemailer no longer uses it from then on. Null if
 * the server has sent unrequested bytes. These members are internals of nodemailer, so its version is pinned, and each
 * is checked before use.
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
  // Detects within this time that a machine lost its connections in a restart, instead of after a long wait.
  socket.setKeepAlive(true, KEEP_ALIVE_MS);
  return { socket, offers: new Set(offers) };
}

/**
 * Limit for the server's bytes before it is ready: its greeting and extensions, twice if encrypted, take a few hundred
 * bytes.
 */
const UNTIL_READY_BYTES_MAX = 64 * 1024;

/**
 * Ends nodemailer's connection if the server sends more than that before it is ready. nodemailer adds each empty line
 * to a list, and processes the list in the event loop even after the connection is closed. Its internals are checked as
 * in `takenOver`.
 */
export function boundUntilReady(connection: SMTPConnection): void {
  const onData: unknown = Reflect.get(connection, "_onData");
  const onError: unknown = Reflect.get(connection, "_onError");
  if (!isListener(onData) || !isListener(onError) || !isTexts(Reflect.get(connection, "_responseQueue")))
    throw changed();
  let bytes = 0;
  Reflect.set(connection, "_onData", (chunk: Uint8Array) => {
    bytes += chunk.length;
    if (bytes <= UNTIL_READY_BYTES_MAX) {
      Reflect.apply(onData, connection, [chunk]);
      return;
    }
    Reflect.set(connection, "_responseQueue", []);
    Reflect.apply(onError, connection, [new Error("the server says too much"), "EPROTOCOL", false, "CONN"]);
  });
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
