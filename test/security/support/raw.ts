import net from "node:net";

/** Sends bytes over a connection of their own, and returns all bytes that came until the server closed it. */
export function exchange(port: number, ...bytes: readonly (string | Uint8Array)[]): Promise<string> {
  return new Promise((resolve) => {
    let received = "";
    const socket = net.connect(port, "127.0.0.1", () => {
      for (const each of bytes) socket.write(typeof each === "string" ? Buffer.from(each, "latin1") : each);
    });
    socket.setEncoding("latin1");
    socket.on("data", (text: string) => (received += text));
    // A server that resets the connection has refused, too.
    socket.on("error", () => {});
    socket.on("close", () => resolve(received));
  });
}

/** A connection that is held open, and the bytes sent on it so far. */
export function holdOpen(port: number, bytes: string): Promise<net.Socket> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, "127.0.0.1", () => socket.write(bytes, () => resolve(socket)));
    socket.once("error", reject);
    socket.pause();
  });
}

/** The statuses of all answers in a text. */
export function statusesIn(text: string): readonly number[] {
  return Array.from(text.matchAll(/^HTTP\/1\.1 (\d{3})/gm), ([, status]) => Number(status));
}

export function parsePort(url: string): number {
  return Number(new URL(url).port);
}

/** Lines of a request's head, and the end of it. */
export function head(...lines: readonly string[]): string {
  return `${lines.join("\r\n")}\r\n\r\n`;
}
