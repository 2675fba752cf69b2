import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { limits } from "../../src/domain/limits.ts";
import { NetworkGuard } from "../../src/runtime/network-guard.ts";
import { WebhookClient } from "../../src/runtime/webhook-client.ts";
import { freePort } from "../support/free-port.ts";

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly host: string;
  readonly headers: Headers;
  readonly text: string;
}

const seen: Seen[] = [];
let folder = "";
let ca = "";
let plain: Bun.Server<undefined>;
let secure: Bun.Server<undefined>;
let reply: (request: Request) => Response | Promise<Response>;

/** Names resolve as the test says, and loopback may be reached. */
let looks = 0;
const resolveAddresses = async (host: string) =>
  host === "rebound.test" && looks++ > 0 ? ["10.0.0.1"] : ["127.0.0.1"];
const guard = new NetworkGuard({ allow: ["127.0.0.0/8"], publicAllowed: false, resolveHost: resolveAddresses });

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "waybill-webhook-"));
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const made = Bun.spawn(
    // biome-ignore format: a command line
    ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
      "-subj", "/CN=hook.test", "-addext", "subjectAltName=DNS:hook.test", "-keyout", key, "-out", cert],
    { stdout: "ignore", stderr: "ignore" },
  );
  if ((await made.exited) !== 0) throw new Error("openssl made no certificate");
  ca = await readFile(cert, "utf8");
  const fetch = async (request: Request) => {
    const { method, url, headers } = request;
    seen.push({ method, url, host: headers.get("host") ?? "", headers, text: await request.text() });
    return reply(request);
  };
  plain = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch });
  secure = Bun.serve({ port: 0, hostname: "127.0.0.1", tls: { key: await readFile(key, "utf8"), cert: ca }, fetch });
}, 90_000);
beforeEach(() => {
  seen.length = 0;
  reply = () => new Response("thanks");
});
afterAll(async () => {
  await plain?.stop(true);
  await secure?.stop(true);
  await rm(folder, { recursive: true, force: true });
});

const never = () => new AbortController().signal;
const post = (url: string, signal = never(), over = guard) =>
  new WebhookClient({ guard: over, ca }).post(url, '{"a":"é"}', signal);

describe("a call to a tenant's address", () => {
  test("posts the JSON text once, and reports no problem for a 2xx", async () => {
    expect(await post(`http://hook.test:${plain.port}/devices?k=1`)).toBeNull();
    const authority = `hook.test:${plain.port}`;
    const arrived = { method: "POST", url: `http://${authority}/devices?k=1`, host: authority, text: '{"a":"é"}' };
    expect(seen).toMatchObject([arrived]);
    expect(seen[0]?.headers.get("content-type")).toBe("application/json");
  });

  test("goes over TLS under the name, to the address that was looked at", async () => {
    expect(await post(`https://hook.test:${secure.port}/x`)).toBeNull();
    expect(seen.map(({ host }) => host)).toEqual([`hook.test:${secure.port}`]);
  });

  test("sends nothing to a receiver whose certificate is untrusted or for another name", async () => {
    expect(await post(`https://other.test:${secure.port}/x`)).toContain("the call failed");
    const untrusting = new WebhookClient({ guard });
    expect(await untrusting.post(`https://hook.test:${secure.port}/x`, "{}", never())).toContain("the call failed");
    expect(seen).toEqual([]);
  });

  test.each([301, 302, 307, 308])("follows no redirect: %d", async (status) => {
    reply = () => new Response(null, { status, headers: { location: `http://hook.test:${plain.port}/inside` } });
    expect(await post(`http://hook.test:${plain.port}/`)).toBe(`the receiver answered ${status}`);
    expect(seen).toHaveLength(1);
  });

  test("reports only the status of a refusal", async () => {
    reply = () => new Response("secret of the receiver", { status: 500, statusText: "secret" });
    expect(await post(`http://hook.test:${plain.port}/`)).toBe("the receiver answered 500");
  });

  test("asks the guard each time, and obeys it", async () => {
    looks = 0;
    expect(await post(`http://rebound.test:${plain.port}/`)).toBeNull();
    expect(await post(`http://rebound.test:${plain.port}/`)).toContain("must not be connected to");
    expect(seen).toHaveLength(1);
  });

  test.each([
    ["http://127.0.0.1:PORT/", "must not be connected to"],
    ["http://0x7f.1:PORT/", "must not be connected to"],
    ["http://2130706433:PORT/", "must not be connected to"],
    ["http://[::ffff:127.0.0.1]:PORT/", "must not be connected to"],
    ["http://8.8.8.8/", "must begin with https"],
    ["https://8.8.8.8:25/", "must use port"],
    ["https://user:secret@8.8.8.8/", "no user name"],
    ["ftp://8.8.8.8/", "must begin with https"],
  ])("of a stranger never leaves for %s", async (url, why) => {
    const open = new NetworkGuard({ allow: [], publicAllowed: true });
    expect(await post(url.replace("PORT", String(plain.port)), never(), open)).toContain(why);
    expect(seen).toEqual([]);
  });

  test("uses no proxy from the environment", async () => {
    const names = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"];
    const port = await freePort();
    const before = names.map((name) => [name, process.env[name]] as const);
    for (const name of names) process.env[name] = `http://127.0.0.1:${port}`;
    expect(await post(`http://hook.test:${plain.port}/`)).toBeNull();
    expect(await post(`https://hook.test:${secure.port}/`)).toBeNull();
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  });

  test("reports that nobody listens", async () => {
    expect(await post(`http://hook.test:${await freePort()}/`)).toContain("the call failed");
  });

  test("ends with its signal when the receiver never answers, when it drips, and before it began", async () => {
    const hanging = await listening((socket) => void socket);
    const dripping = await listening((socket) => {
      const timer = setInterval(() => socket.write("HTTP/1.1 100 Continue\r\n\r\n"), 20);
      socket.on("close", () => clearInterval(timer));
    });
    for (const server of [hanging, dripping]) {
      const url = `http://hook.test:${getPort(server)}/`;
      expect(await post(url, AbortSignal.timeout(100))).toBe("there was no answer in time");
      expect(await post(url, AbortSignal.abort())).toBe("there was no answer in time");
      server.close();
    }
    const deaf = new NetworkGuard({ allow: [], publicAllowed: true, resolveHost: () => new Promise(() => undefined) });
    expect(await post("https://hook.test/", AbortSignal.timeout(50), deaf)).toBe("there was no answer in time");
  }, 10_000);

  test("reads only the status of an endless answer", async () => {
    let written = 0;
    const server = await listening((socket) => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n");
      const chunk = Buffer.alloc(64 * 1024, "x");
      const more = () => {
        while (!socket.destroyed && written < 1e9 && socket.write(chunk)) written += chunk.length;
      };
      socket.on("drain", more);
      more();
    });
    expect(await post(`http://hook.test:${getPort(server)}/`)).toBeNull();
    expect(written).toBeLessThan(64 * 1024 * 1024);
    server.close();
  });

  test.each([
    [2, "HTTP/1.1 204 No Content\r\n\r\n", null],
    [1_000, "", "it announced an answer (1xx) again and again, and gave none"],
  ])(
    "%i answers before the answer are taken only as far as anybody has use for them",
    async (hints, last, why) => {
      const server = await listening((socket) => {
        socket.write("HTTP/1.1 103 Early Hints\r\n\r\n".repeat(hints) + last);
      });
      expect(await post(`http://hook.test:${getPort(server)}/`, AbortSignal.timeout(60_000))).toBe(why);
      server.close();
    },
    90_000,
  );

  test.each([
    ["what it says", "no such invoice", "no such invoice"],
    ["of much the beginning", "x".repeat(100_000), "x".repeat(512)],
    ["of bytes what is text", new Uint8Array([97, 0, 255, 98]), "a\ufffdb"],
    ["nothing", null, ""],
  ])("keeps of a refusal %s", async (_what, body, text) => {
    reply = () => new Response(body, { status: 422 });
    const call = { url: `http://hook.test:${plain.port}/`, json: "{}" };
    expect(await new WebhookClient({ guard, ca }).call(call, never())).toMatchObject({ status: 422, text });
    reply = () => new Response(body);
    expect(await new WebhookClient({ guard, ca }).call(call, never())).not.toHaveProperty("text");
  });

  test("waits a second for what a refusal says, though its receiver says it slowly", async () => {
    const server = await listening((socket) => {
      socket.write("HTTP/1.1 500 No\r\nContent-Length: 100\r\n\r\nslow");
    });
    const call = { url: `http://hook.test:${getPort(server)}/`, json: "{}" };
    expect(await new WebhookClient({ guard, ca }).call(call, never())).toMatchObject({ status: 500, text: "slow" });
    server.close();
  });

  test("refuses an address that is too long", async () => {
    expect(await post(`http://hook.test:${plain.port}/${"x".repeat(limits.webhookUrlCharsMax)}`)).toContain("longer");
  });
});

function listening(onConnection: (socket: Socket) => void): Promise<Server> {
  return new Promise((resolve) => {
    const server = createServer((socket) => {
      socket.on("error", () => undefined);
      onConnection(socket);
    });
    server.listen(0, "127.0.0.1", () => resolve(server));
  });
}

function getPort(server: Server): number {
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("the server listens nowhere");
  return address.port;
}
