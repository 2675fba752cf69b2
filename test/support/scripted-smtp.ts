import { type AddressInfo, createServer, type Socket } from "node:net";

/** The server's act at a step: its reply, or `silence`, or `drop`, which closes the connection. */
export type Act = string;

/**
 * By command (`EHLO`, `MAIL`, `RCPT`, `DATA`, …), `greeting` and `.`, the end of a message; all others are answered
 * with 250.
 */
export type Script = Readonly<Record<string, Act | ((nth: number) => Act)>>;

export interface ScriptedSmtp {
  readonly url: string;
  /** Connections open now, and the most at one time. */
  readonly open: number;
  readonly openMax: number;
  readonly connections: number;
  /** How often each step was reached. */
  readonly reached: ReadonlyMap<string, number>;
  /** Its behaviour from now on, also on open connections. */
  script: Script;
  /** Also ends its connections. */
  stop(): Promise<void>;
}

const REPLIES: Readonly<Record<string, string>> = { greeting: "220 here", DATA: "354 go", QUIT: "221 bye" };

/** A mail server that follows a script, step by step. `place`: the address that it listens at; default: a free port. */
export async function startScriptedSmtp(
  script: Script = {},
  place: { readonly host: string; readonly port: number } = { host: "127.0.0.1", port: 0 },
): Promise<ScriptedSmtp> {
  const sockets = new Set<Socket>();
  const reached = new Map<string, number>();
  const state = { script, openMax: 0, connections: 0 };

  /** Returns the act. */
  const at = (step: string, socket: Socket): Act => {
    const nth = (reached.get(step) ?? 0) + 1;
    reached.set(step, nth);
    const said = state.script[step] ?? REPLIES[step] ?? "250 ok";
    const act = typeof said === "function" ? said(nth) : said;
    if (act === "drop") socket.destroy();
    else if (act !== "silence") socket.write(`${act}\r\n`);
    if (step === "QUIT") socket.end();
    return act;
  };

  const server = createServer((socket) => {
    sockets.add(socket);
    state.connections += 1;
    state.openMax = Math.max(state.openMax, sockets.size);
    socket.on("error", () => {});
    socket.once("close", () => sockets.delete(socket));
    let rest = "";
    let isMessage = false;
    at("greeting", socket);
    socket.on("data", (chunk) => {
      const lines = (rest + chunk.toString("latin1")).split("\r\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (isMessage && line !== ".") continue;
        const step = isMessage ? "." : (line.split(/[ :]/)[0] ?? "").toUpperCase();
        isMessage = at(step, socket).startsWith("354");
      }
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(place.port, place.host, resolve);
  });
  // A server that listens on TCP has an address of this form.
  const { port } = server.address() as AddressInfo;
  return {
    url: `smtp://${place.host.includes(":") ? `[${place.host}]` : place.host}:${port}`,
    reached,
    get open() {
      return sockets.size;
    },
    get openMax() {
      return state.openMax;
    },
    get connections() {
      return state.connections;
    },
    get script() {
      return state.script;
    },
    set script(next: Script) {
      state.script = next;
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
