import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { LinkTokens } from "../../src/channels/email/links/link-tokens.ts";
import { PassFileLinks } from "../../src/channels/wallet/pass-file-links.ts";
import { eventually } from "../support/eventually.ts";
import { Attacks, shown } from "./support/attacks.ts";
import { altered, equip, type Identifiers } from "./support/identifiers.ts";
import type { Seen } from "./support/probe.ts";
import { startTarget, type Target } from "./support/target.ts";

/* The links in messages: their targets, the recipients that they unsubscribe, and the counts that they change. */

setDefaultTimeout(90_000);
const attacks = new Attacks("links");

let target: Target;
let victims: Identifiers;
let own: Identifiers;
let made = 0;

beforeAll(async () => {
  target = await startTarget({ SPAM_FILTER: "off" });
  [victims, own] = [await equip(target, target.victim), await equip(target, target.attacker)];
});
afterAll(() => target?.stop());

const get = (path: string, headers: Readonly<Record<string, string>> = {}) =>
  target.probe({ method: "GET", path, headers });

/** Tokens that an attacker can derive from one that came by mail, or from two. */
function forgeries(token: string, others: readonly string[]): readonly string[] {
  const bytes = Buffer.from(token, "base64url");
  const flipped = [0, 15, 16, 40, bytes.length - 1].map((at) => {
    const copy = Buffer.from(bytes);
    copy[at] = (copy[at] ?? 0) ^ 1;
    return copy.toString("base64url");
  });
  const spliced = others.flatMap((other) => {
    const foreign = Buffer.from(other, "base64url");
    return [
      Buffer.concat([bytes.subarray(0, 16), foreign.subarray(16)]),
      Buffer.concat([foreign.subarray(0, 16), bytes.subarray(16)]),
      Buffer.concat([bytes.subarray(0, 32), foreign.subarray(32)]),
    ].map((made_) => made_.toString("base64url"));
  });
  return [
    altered(token),
    ...flipped,
    ...spliced,
    token.slice(0, -1),
    token.slice(0, 20),
    token.slice(1),
    `${token}A`,
    `${token}=`,
    `${token}==`,
    token.toUpperCase(),
    token.toLowerCase(),
    bytes.toString("base64").replace(/[+/]/, "+"),
    bytes.toString("hex"),
    [...token].toReversed().join(""),
    token + token,
    `${token}.gif`,
    `${token}%00`,
    `${token}%0d%0aLocation:%20https://evil.example`,
    `${token};x`,
    `%20${token}`,
    "AAAA".repeat(30),
    "A".repeat(9_000),
    "eyJhbGciOiJub25lIn0.eyJ1cmwiOiJodHRwczovL2V2aWwuZXhhbXBsZSJ9.",
    btoa(JSON.stringify({ url: "https://evil.example" })),
    "https://evil.example",
    encodeURIComponent("https://evil.example"),
    "",
  ].filter((forged) => forged !== token);
}

/** Links of another installation to the victim's objects, each of its own kind. */
function foreignTokens(tenantId = "victim"): Readonly<Record<"open" | "click" | "unsubscribe" | "file", string>> {
  const masterKeys = [randomBytes(32)];
  const signer = new LinkTokens(masterKeys);
  const of = { tenantId, jobId: victims.jobId };
  return {
    open: signer.sign({ purpose: "open", ...of }),
    click: signer.sign({ purpose: "click", ...of, url: "https://evil.example/" }),
    unsubscribe: signer.sign({ purpose: "unsubscribe", ...of, recipient: "reader-of-victim@example.com" }),
    file: new PassFileLinks(masterKeys, () => "").createLink(tenantId, [victims.passId]).token,
  };
}

/** Other spellings of a token with the same bytes: they differ in unused bits of its last character. */
function otherSpellings(token: string): readonly string[] {
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const bytes = Buffer.from(token, "base64url");
  return [...letters]
    .map((letter) => token.slice(0, -1) + letter)
    .filter((other) => other !== token && Buffer.from(other, "base64url").equals(bytes));
}

function leadsSomewhere({ status, headers }: Seen): string | null {
  const to = headers.get("location") ?? headers.get("refresh");
  if (to !== null) return `it leads to ${to}`;
  return status === 404 ? null : `answered ${status}`;
}

test("a click leads only where one of our messages leads", async () => {
  const forged = forgeries(victims.clickToken, [own.clickToken, victims.openToken]);
  const others = [victims.openToken, victims.unsubscribeToken, victims.passFileToken, foreignTokens().click];
  const spelt = otherSpellings(victims.clickToken);
  await attacks.runEach([...forged, ...others, ...spelt], async (token) => leadsSomewhere(await get(`/t/c/${token}`)));
});

test("nothing that is added to a real link changes where it leads", async () => {
  const extras = [
    "?url=https://evil.example",
    "?u=//evil.example",
    "?redirect=https://evil.example",
    "?https://evil.example",
    "?next=%0d%0a",
  ];
  const hosts = [{ host: "evil.example" }, { "x-forwarded-host": "evil.example" }, { referer: "https://evil.example" }];
  const table = [
    ...extras.map((more) => ({ name: more, more, headers: {} })),
    ...hosts.map((headers) => ({ name: JSON.stringify(headers), more: "", headers })),
  ];
  const expected = (await get(`/t/c/${victims.clickToken}`)).headers.get("location");
  expect(expected).toBe("https://shop.example/victim");
  await attacks.run(
    table,
    ({ name }) => name,
    async ({ more, headers }) => {
      const to = (await get(`/t/c/${victims.clickToken}${more}`, headers)).headers.get("location");
      return to === expected || to === null ? null : `it leads to ${to}`;
    },
  );
});

test("no link in a message makes ours lead to a script, a file or another header", async () => {
  const links = [
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "java&#10;script:alert(1)",
    "java&Tab;script:alert(1)",
    "&#1;javascript:alert(1)",
    " javascript:alert(1)",
    "vbscript:msgbox(1)",
    "data:text/html,<script>alert(1)</script>",
    "file:///etc/passwd",
    "//evil.example",
    "\\\\evil.example",
    "/relative",
    "https:evil.example",
    "http:///evil.example",
    "https://a.example/&#13;&#10;Set-Cookie: a=b",
    "https://a.example/%0d%0aSet-Cookie:a=b",
    "https://a.example/\r\nSet-Cookie: a=b",
    "https://a.example/\u2028Set-Cookie: a=b",
    "https://a.example/\u560a\u560dSet-Cookie:a=b",
    "https://user:password@a.example/",
    "https://a.example/{{.x}}",
    "{{.x}}",
    "{{.x}}://a.example",
    "https://{{.y}}/",
  ];
  await attacks.runEach(links, async (link) => {
    const to_address = `reader-${(made += 1)}@example.com`;
    const data = { x: "javascript:alert(1)//\r\nSet-Cookie: a=b", y: "a.example\r\nSet-Cookie: a=b" };
    const html = `<p>Hello <a href="${link}">here</a></p>`;
    const accepted = await target.call(target.attacker, "POST", "/v1/send/email", {
      to_address,
      subject: "x",
      html,
      data,
    });
    if (accepted.status === 422) return null;
    await target.ended(target.attacker, accepted);
    const { body } = await target.operator("GET", `/sandbox/messages?to=${to_address}`);
    const source: string = body.messages[0]?.source ?? "";
    const tokens = source.replaceAll("=\r\n", "").matchAll(/\/t\/c\/([A-Za-z0-9_-]{20,})/g);
    for (const [, token] of tokens) {
      const { status, headers } = await get(`/t/c/${token}`);
      const to = headers.get("location") ?? "";
      if (status !== 404 && !/^https?:\/\/[^\s\p{C}]+$/iu.test(to)) return `it leads to ${shown(to)}`;
      if (headers.has("set-cookie")) return "it sets a cookie";
    }
    return null;
  });
});

const suppressed = async (tenant: string) =>
  JSON.stringify((await target.operator("GET", `/tenants/${tenant}/suppressions`)).body);

test("nobody is unsubscribed by a forged link, or by a program that looks ahead", async () => {
  const before = await suppressed("victim");
  const forged = forgeries(victims.unsubscribeToken, [own.unsubscribeToken, victims.clickToken]);
  const others = [victims.openToken, victims.clickToken, victims.passFileToken, foreignTokens().unsubscribe];
  const tokens = [...forged, ...others, ...otherSpellings(victims.unsubscribeToken), `/${victims.unsubscribeToken}`];
  const json = { "content-type": "application/json" };
  const form = { "content-type": "application/x-www-form-urlencoded" };
  const override = { "x-http-method-override": "POST", "x-forwarded-method": "POST" };
  const looks = [
    { method: "GET", query: "", headers: {} },
    { method: "HEAD", query: "", headers: {} },
    { method: "OPTIONS", query: "", headers: {} },
    { method: "PUT", query: "", headers: {} },
    { method: "DELETE", query: "", headers: {} },
    { method: "GET", query: "?List-Unsubscribe=One-Click", headers: {} },
    { method: "GET", query: "?_method=POST", headers: override },
  ].map((look) => ({ ...look, name: `${look.method} ${look.query}`, token: victims.unsubscribeToken }));
  const posts = tokens.flatMap((token) =>
    [json, form].map((headers) => ({ name: `POST ${shown(token)}`, method: "POST", query: "", headers, token })),
  );
  await attacks.run(
    [...looks, ...posts],
    ({ name }) => name,
    async ({ method, query, headers, token }) => {
      const body = "List-Unsubscribe=One-Click";
      const request = { method, path: `/u/${token}${query}`, headers };
      const { status } = await target.probe(method === "POST" ? { ...request, body } : request);
      if (method === "POST" && status !== 404 && status !== 405) return `answered ${status}`;
      return (await suppressed("victim")) === before ? null : "somebody was unsubscribed";
    },
  );
});

test("a tenant's own link unsubscribes from that tenant alone", async () => {
  const before = await suppressed("victim");
  const body = JSON.stringify({ address: "reader-of-victim@example.com", tenant: "victim", tenant_id: "victim" });
  await attacks.run(
    [own.unsubscribeToken],
    () => "another tenant's link",
    async (token) => {
      const headers = { "content-type": "application/json", cookie: "tenant=victim" };
      const { status } = await target.probe({ method: "POST", path: `/u/${token}?tenant=victim`, headers, body });
      if (status !== 200) return `answered ${status}`;
      return (await suppressed("victim")) === before ? null : "it unsubscribed from the victim";
    },
  );
  expect(await suppressed("mallory")).toContain("reader-of-mallory@example.com");
});

test("a flood of opens and clicks counts as one of each", async () => {
  const events = async () => {
    const { body } = await target.call(target.victim, "GET", `/v1/jobs/${victims.jobId}/events`);
    return body.events.map(({ event_type }: { event_type: string }) => event_type);
  };
  await attacks.run(
    [300],
    (hits) => `${hits} hits`,
    async (hits) => {
      await Promise.all(Array.from({ length: hits }, () => get(`/t/o/${victims.openToken}.gif`)));
      await Promise.all(Array.from({ length: hits }, () => get(`/t/c/${victims.clickToken}`)));
      await eventually("the click is known", async () => (await events()).includes("clicked"));
      await eventually("the opening is known", async () => (await events()).includes("opened"));
      const counted = (await events()).filter((type: string) => type === "opened" || type === "clicked");
      return counted.length === 2 ? null : `they count as ${counted.join(", ")}`;
    },
  );
});

test("a pixel says nothing, whatever its token", async () => {
  const real = await get(`/t/o/${own.openToken}.gif`);
  const comparable = ({ status, text, headers }: Seen) =>
    JSON.stringify([status, text, [...headers].filter(([name]) => !/^(?:date|x-request-id)$/.test(name))]);
  const tokens = forgeries(own.openToken, [victims.openToken]).filter((token) => token !== "" && !token.includes("/"));
  await attacks.runEach(tokens, async (token) => {
    const seen = await get(`/t/o/${token}.gif`);
    return comparable(seen) === comparable(real) ? null : `answered ${comparable(seen)}`;
  });
});

test("the file of a pass is for whoever has its very link, and for nobody once its tenant is deleted", async () => {
  const forged = forgeries(victims.passFileToken, [own.passFileToken, victims.openToken]);
  const others = [victims.openToken, victims.clickToken, victims.unsubscribeToken, foreignTokens().file];
  const spelt = [...otherSpellings(victims.passFileToken), `/${victims.passFileToken}`, `./${victims.passId}`];
  await attacks.runEach([...forged, ...others, ...spelt], async (token) => {
    const { status, headers } = await get(`/p/${token}`);
    return status === 404 && headers.get("content-type") !== "application/vnd.apple.pkpass"
      ? null
      : `answered ${status}`;
  });
  expect((await get(`/p/${own.passFileToken}`)).status).toBe(200);
  expect((await target.operator("DELETE", "/tenants/mallory?confirm=mallory&purge=true")).status).toBe(202);
  await eventually("every process knows", async () => (await get(`/u/${own.unsubscribeToken}`)).status === 404);
  expect((await get(`/p/${own.passFileToken}`)).status).toBe(404);
  expect((await target.probe({ method: "POST", path: `/u/${own.unsubscribeToken}`, headers: {} })).status).toBe(404);
});
