import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { OperatorSessions } from "../../src/http/operator-sessions.ts";
import { type Answer, Front, OPERATOR_TOKEN } from "../http/support/front.ts";

/*
 * A session replaces an operator's token in a browser: an attacker who gets one, or makes another's browser use it, has
 * the whole service.
 */

const HOUR_MS = 3_600_000;
const KEY = new Uint8Array(32).fill(7);

const time = { skippedMs: 0 };
const clock = {
  nowMs: () => Date.now() + time.skippedMs,
  monotonicMs: () => performance.now() + time.skippedMs,
  setTimer: (delayMs: number, run: () => void) => {
    const timer = setTimeout(run, delayMs);
    return { cancel: () => clearTimeout(timer) };
  },
};

let front: Front;
beforeAll(async () => {
  front = await Front.start({ clock });
});
afterAll(() => front.stop(), 90_000);

function signIn(token: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  const init = { method: "POST", headers: { "content-type": "application/json", ...headers } };
  return front.fetch("/dash/api/session", { ...init, body: JSON.stringify({ token }) });
}

/** The cookie as the browser sends it back. */
function getCookie(answer: Answer): string {
  return answer.headers.get("set-cookie")?.split(";")[0] ?? "";
}

async function session(token = OPERATOR_TOKEN): Promise<string> {
  const answer = await signIn(token);
  expect(answer.status).toBe(204);
  return getCookie(answer);
}

async function operator(name: string, role: "read" | "write") {
  const { body } = await front.operate("POST", "/operators", { name, role });
  return { id: String(body["operator_id"]), token: String(body["token"]) };
}

/** A call with a session, as the dashboard makes it unless the headers say otherwise. */
function call(cookie: string, method = "GET", headers: Readonly<Record<string, string>> = {}, path = "/plans/free") {
  const body = method === "PUT" ? { body: JSON.stringify({ requests_per_minute: 100 }) } : {};
  const all = { cookie, "content-type": "application/json", ...headers };
  return front.fetch(`/dash/api${method === "GET" ? "/session" : path}`, { method, headers: all, ...body });
}

const OURS = { "x-waybill-dashboard": "1" };

describe("a session", () => {
  test("is a cookie that no script reads and no other site sends, for the dashboard alone", async () => {
    const { status, headers, text } = await signIn(OPERATOR_TOKEN);
    expect([status, text]).toEqual([204, ""]);
    const [value = "", ...attributes] = (headers.get("set-cookie") ?? "").split("; ");
    expect(attributes.toSorted()).toEqual(["HttpOnly", "Max-Age=43200", "Path=/dash", "SameSite=Strict"]);
    expect(value).toMatch(/^waybill_session=v1\.root\.\d+\.[\w-]{43}$/);
    expect(value).not.toContain(OPERATOR_TOKEN);
    expect(headers.get("cache-control")).toBe("no-store");
  });

  test.each([
    ["the page came by TLS", { origin: "https://dash.example.com", "sec-fetch-site": "same-origin" }],
    ["a proxy says so", { "x-forwarded-proto": "https" }],
  ])("travels by TLS alone where %s", async (_, headers) => {
    expect((await signIn(OPERATOR_TOKEN, headers)).headers.get("set-cookie")).toEndWith("; Secure");
  });

  test.each([
    ["is", false],
    ["is not, for operators have a listener of their own", true],
  ])("travels by TLS alone where it %s at the service's https address", async (_, isAdminApart) => {
    const other = await Front.start({ publicUrl: "https://send.example.com", isAdminApart });
    const { url } = isAdminApart ? await other.server.listenApart({ host: "127.0.0.1", port: 0 }) : other;
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify({ token: OPERATOR_TOKEN });
    const answer = await fetch(`${url}/dash/api/session`, { method: "POST", headers, body });
    await other.stop();
    expect([answer.status, answer.headers.get("set-cookie")?.endsWith("; Secure")]).toEqual([204, !isAdminApart]);
  });

  test("says whose it is, and does what its operator may do", async () => {
    const ann = await operator("ann", "write");
    const bob = await operator("bob", "read");
    const [anns, bobs] = [await session(ann.token), await session(bob.token)];
    expect((await call(anns)).body).toEqual({ name: "ann", role: "write" });
    expect((await call(bobs)).body).toEqual({ name: "bob", role: "read" });
    expect((await call(anns, "PUT", OURS)).status).toBe(200);
    expect((await call(bobs, "PUT", OURS)).status).toBe(403);
    const { body } = await front.operate("GET", "/audit?action=putPlan&operator=ann");
    expect(body["rows"]).toHaveLength(1);
  });

  test("ends after 12 hours, and at once when its operator is deleted", async () => {
    const { id, token } = await operator("cy", "write");
    const cookie = await session(token);
    const roots = await session();
    expect((await call(cookie)).status).toBe(200);
    await front.operate("DELETE", `/operators/${id}`);
    expect((await call(cookie)).status).toBe(401);
    time.skippedMs += 12 * HOUR_MS - 60_000;
    expect((await call(roots)).status).toBe(200);
    time.skippedMs += 60_001;
    expect((await call(roots)).status).toBe(401);
  });

  test("is taken back on request, by who may only read, too", async () => {
    const { token } = await operator("dee", "read");
    const cookie = await session(token);
    const { status, headers } = await call(cookie, "DELETE", OURS, "/session");
    expect([status, headers.get("set-cookie")]).toEqual([
      204,
      "waybill_session=; Path=/dash; HttpOnly; SameSite=Strict; Max-Age=0",
    ]);
  });

  test("of a wrong token does not begin, and the address that guesses has to wait", async () => {
    const waits: [number, boolean][] = [];
    for (let at = 0; at < 12; at += 1) {
      const { status, headers } = await signIn(`guess-${at}`);
      waits.push([status, headers.has("retry-after")]);
    }
    expect(waits).toEqual([...Array(10).fill([401, false]), [401, true], [401, true]]);
    expect((await signIn(OPERATOR_TOKEN)).status).toBe(204);
    time.skippedMs += 61_000;
    const refused = await signIn("guess");
    expect([refused.status, refused.headers.has("set-cookie"), refused.text.includes("guess")]).toEqual([
      401,
      false,
      false,
    ]);
  });
});

describe("a made or altered session opens nothing, and is no guess of a token", () => {
  const account = { operator: { id: "root", name: "root", role: "write" }, tokenHash: "00" } as const;

  test.each<readonly [string, (cookie: string) => string]>([
    ["later end", (cookie) => cookie.replace(/\.(\d+)\./, (_, end: string) => `.${Number(end) + HOUR_MS}.`)],
    ["another operator", (cookie) => cookie.replace(".root.", ".op_aaaaaaaaaaaaaaaa.")],
    ["a shorter tag", (cookie) => cookie.slice(0, -1)],
    ["another tag", (cookie) => `${cookie.slice(0, -3)}AAA`],
    ["no tag", (cookie) => cookie.replace(/\.[^.]+$/, ".")],
    ["the token itself", () => `waybill_session=${OPERATOR_TOKEN}`],
    ["a long text", () => `waybill_session=${"v".repeat(5_000)}`],
    ["another key", () => `waybill_session=${new OperatorSessions([new Uint8Array(32)]).begin(account, Date.now())}`],
    ["another token", () => `waybill_session=${new OperatorSessions([KEY]).begin(account, Date.now())}`],
  ])("%s", async (_, altered) => {
    const cookie = await session();
    const forged = altered(cookie);
    expect(forged).not.toBe(cookie);
    for (let at = 0; at < 15; at += 1) expect((await call(forged)).status).toBe(401);
  });
});

test("a session of a former master key is known as long as the key is given", () => {
  const account = { operator: { id: "root", name: "root", role: "write" }, tokenHash: "ab" } as const;
  const [former, next] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)];
  const cookie = `waybill_session=${new OperatorSessions([former]).begin(account, 0)}`;
  const request = new Request("http://127.0.0.1/dash", { headers: { cookie } });
  const find = () => account;
  expect(new OperatorSessions([next, former]).findOperator(request, 1, find)).toEqual(account);
  expect(new OperatorSessions([next]).findOperator(request, 1, find)).toBeNull();
});

describe("a page of another site cannot use the session", () => {
  const foreign: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
    ["from another site", { ...OURS, "sec-fetch-site": "cross-site" }],
    ["from a sister domain", { ...OURS, "sec-fetch-site": "same-site" }],
    ["that a person typed in", { ...OURS, "sec-fetch-site": "none" }],
    ["with a foreign origin", { ...OURS, origin: "https://evil.example" }],
    ["with the origin of a sandboxed frame", { ...OURS, origin: "null" }],
    ["with another port", { ...OURS, origin: "http://127.0.0.1:1" }],
    ["without our header", { "sec-fetch-site": "same-origin" }],
    ["without any header", {}],
  ];

  test.each(foreign)("to change something: a call %s", async (_, headers) => {
    const cookie = await session();
    for (const [method, path] of [
      ["PUT", "/plans/free"],
      ["POST", "/tenants"],
      ["DELETE", "/session"],
    ] as const) {
      const { status, headers: answered } = await call(cookie, method, headers, path);
      expect([method, status, answered.has("set-cookie")]).toEqual([method, 403, false]);
    }
  });

  test("to read something", async () => {
    const cookie = await session();
    for (const site of ["cross-site", "same-site"]) {
      expect((await call(cookie, "GET", { "sec-fetch-site": site })).status).toBe(403);
    }
    for (const site of ["same-origin", "none"]) {
      expect((await call(cookie, "GET", { "sec-fetch-site": site })).status).toBe(200);
    }
  });

  test("to sign somebody in", async () => {
    for (const headers of [{ "sec-fetch-site": "cross-site" }, { origin: "https://evil.example" }]) {
      const { status, headers: answered } = await signIn(OPERATOR_TOKEN, headers);
      expect([status, answered.has("set-cookie")]).toEqual([403, false]);
    }
    const form = { method: "POST", headers: { "content-type": "text/plain" }, body: `{"token":"${OPERATOR_TOKEN}"}` };
    expect((await front.fetch("/dash/api/session", form)).status).toBe(400);
  });

  test("while our own can", async () => {
    const cookie = await session();
    const ours = [
      { ...OURS, "sec-fetch-site": "same-origin", origin: "https://any-name-of-a-proxy.example" },
      { ...OURS, origin: front.url },
    ];
    for (const headers of ours) expect((await call(cookie, "PUT", headers)).status).toBe(200);
  });
});

test("a tenant's addresses know no session, and a token goes before it", async () => {
  const cookie = await session();
  expect((await front.fetch("/v1/jobs/x", { headers: { cookie } })).status).toBe(401);
  expect((await call(cookie, "GET", { authorization: "Bearer wrong" })).status).toBe(401);
});
