import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { LinkTokens } from "../../../../src/channels/email/links/link-tokens.ts";
import { UnavailableError } from "../../../../src/domain/errors.ts";
import { JobIds } from "../../../../src/domain/ids.ts";
import { systemClock } from "../../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../../src/runtime/system-random.ts";
import { Front, linkTokens } from "../../../http/support/front.ts";

const tenantId = "acme";
const jobId = new JobIds(systemClock, systemRandom).next();
const url = "https://shop.example/?a=1&b=2";
const open = linkTokens.sign({ purpose: "open", tenantId, jobId });
const click = linkTokens.sign({ purpose: "click", tenantId, jobId, url });
const out = linkTokens.sign({ purpose: "unsubscribe", tenantId, jobId, recipient: "ann@example.com" });
const foreign = new LinkTokens([new Uint8Array(32).fill(6)]);

let front: Front;
beforeAll(async () => {
  front = await Front.start();
});
beforeEach(() => {
  front.engagements.length = 0;
  front.queue.failure = null;
});
afterAll(() => front.stop(), 90_000);

const get = (path: string, headers: Record<string, string> = {}, method = "GET") =>
  fetch(front.url + path, { method, headers, redirect: "manual" });

/** A token with one character in its middle changed. */
const altered = (token: string) => `${token.slice(0, 20)}${token[20] === "A" ? "B" : "A"}${token.slice(21)}`;
const LOOK_AHEADS: readonly Record<string, string>[] = [
  { "sec-purpose": "prefetch;prerender" },
  { purpose: "prefetch" },
  { "x-purpose": "preview" },
  { "x-moz": "prefetch" },
];

describe("the tracking pixel", () => {
  test("is noted as an open, and is the same picture for every token, whole or not", async () => {
    const pictures = new Set<string>();
    const { length } = open;
    for (const token of [
      open,
      altered(open),
      click,
      "x",
      "%zz",
      "",
      "A".repeat(9_000),
      foreign.sign({ purpose: "open", tenantId, jobId }),
    ]) {
      const response = await get(`/t/o/${token}.gif`);
      expect([token.slice(0, length), response.status]).toEqual([token.slice(0, length), 200]);
      expect(response.headers.get("content-type")).toBe("image/gif");
      expect(response.headers.get("cache-control")).toContain("no-store");
      expect(response.headers.get("x-request-id")).not.toBeNull();
      pictures.add(Buffer.from(await response.arrayBuffer()).toString("hex"));
    }
    expect([...pictures]).toEqual([expect.stringMatching(/^474946383961010001/)]);
    expect(front.engagements).toEqual([{ type: "opened", tenantId, jobId, url: null, by: null }]);
  });

  test("notes nothing for a HEAD or a program that looks ahead, and answers them the same", async () => {
    for (const headers of LOOK_AHEADS) expect((await get(`/t/o/${open}.gif`, headers)).status).toBe(200);
    const head = await get(`/t/o/${open}.gif`, {}, "HEAD");
    expect([head.status, head.headers.get("content-type")]).toEqual([200, "image/gif"]);
    expect(front.engagements).toEqual([]);
  });
});

test("a known machine that opens or clicks is noted as one, and is answered like anybody", async () => {
  const scanner = { "user-agent": "Barracuda Sentinel (EE)" };
  expect((await get(`/t/o/${open}.gif`, scanner)).status).toBe(200);
  expect((await get(`/t/c/${click}`, scanner)).headers.get("location")).toBe(url);
  await get(`/t/o/${open}.gif`, { "user-agent": "Mozilla/5.0 (via ggpht.com GoogleImageProxy)" });
  const by = { name: "Barracuda", isMachine: true };
  expect(front.engagements).toEqual([
    { type: "opened", tenantId, jobId, url: null, by },
    { type: "clicked", tenantId, jobId, url, by },
    { type: "opened", tenantId, jobId, url: null, by: { name: "Gmail", isMachine: false } },
  ]);
});

describe("a tracked link", () => {
  test("leads to the address that it carries, and is noted as a click", async () => {
    const response = await get(`/t/c/${click}`);
    expect([response.status, response.headers.get("location")]).toEqual([302, url]);
    expect(response.headers.get("referrer-policy")).toBe("no-referrer");
    expect(response.headers.get("cache-control")).toContain("no-store");
    expect(front.engagements).toEqual([{ type: "clicked", tenantId, jobId, url, by: null }]);
  });

  test("leads nowhere when it was altered, is for something else, or was signed by somebody else", async () => {
    const evil = { purpose: "click", tenantId, jobId, url: "https://evil.example/" } as const;
    const tokens = [
      altered(click),
      open,
      out,
      "x",
      "%2e%2e",
      encodeURIComponent("https://evil.example/"),
      foreign.sign(evil),
    ];
    for (const token of tokens) {
      const response = await get(`/t/c/${token}?url=https://evil.example/`);
      expect([token, response.status, response.headers.get("location")]).toEqual([token, 404, null]);
    }
    const script = linkTokens.sign({ purpose: "click", tenantId, jobId, url: "javascript:alert(1)" });
    expect((await get(`/t/c/${script}`)).status).toBe(404);
    expect(front.engagements).toEqual([]);
  });

  test("notes nothing for a HEAD or a program that looks ahead, and answers them the same", async () => {
    for (const headers of LOOK_AHEADS) {
      const response = await get(`/t/c/${click}`, headers);
      expect([response.status, response.headers.get("location")]).toEqual([302, url]);
    }
    expect((await get(`/t/c/${click}`, {}, "HEAD")).headers.get("location")).toBe(url);
    expect(front.engagements).toEqual([]);
  });
});

describe("the unsubscribe page", () => {
  const isOut = () => front.registry.suppressionReason(tenantId, "ann@example.com");
  beforeEach(async () => {
    await front.registry.deleteSuppression(tenantId, "ann@example.com");
    front.queue.suppressed.clear();
  });

  test("is a page that asks, without script, and asking changes nothing", async () => {
    const page = await get(`/u/${out}`);
    const text = await page.text();
    expect(page.status).toBe(200);
    expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
    const policy = page.headers.get("content-security-policy") ?? "";
    expect(policy).toStartWith("default-src 'none'; style-src 'sha256-");
    expect(policy).toContain("form-action 'self'; base-uri 'none'; frame-ancestors 'none'");
    expect(text).toContain('<form method="post" action="?choice=all">');
    expect(text).toContain("<strong>Acme</strong>");
    expect(text).not.toMatch(/<script|https?:|ann@/);
    expect((await get(`/u/${out}`, {}, "HEAD")).status).toBe(200);
    expect(await isOut()).toBeNull();
  });

  test("takes a form, multipart or no body at all, as often as it comes, and never redirects", async () => {
    const form = new URLSearchParams({ "List-Unsubscribe": "One-Click" });
    const multipart = new FormData();
    multipart.set("List-Unsubscribe", "One-Click");
    for (const body of [form, multipart, null, form]) {
      const response = await fetch(`${front.url}/u/${out}`, { method: "POST", body, redirect: "manual" });
      expect(response.status).toBe(200);
      expect(await response.text()).toContain("You are unsubscribed");
      expect(await isOut()).toBe("unsubscribed");
      expect([...front.queue.suppressed]).toEqual(["acme ann@example.com"]);
    }
  });

  test("answers 500 while the suppression cannot be stored, and 200 once it can", async () => {
    const post = () => fetch(`${front.url}/u/${out}`, { method: "POST" });
    front.queue.failure = new UnavailableError("redis is away");
    expect((await post()).status).toBe(500);
    front.queue.failure = null;
    expect((await post()).status).toBe(200);
    expect([...front.queue.suppressed]).toEqual(["acme ann@example.com"]);
  });

  test("is 404 for tokens that are altered, foreign, for another purpose, or of a deleted tenant", async () => {
    const stranger = { purpose: "unsubscribe", tenantId: "gone", jobId, recipient: "ann@example.com" } as const;
    const tokens = [altered(out), open, click, "x", "%zz", linkTokens.sign(stranger)];
    for (const token of [...tokens, foreign.sign({ ...stranger, tenantId })]) {
      for (const method of ["GET", "POST"]) {
        expect([token, method, (await get(`/u/${token}`, {}, method)).status]).toEqual([token, method, 404]);
      }
    }
    expect(await isOut()).toBeNull();
  });

  test("shows a tenant's name as text, whatever it holds", async () => {
    await front.registry.createTenant({ id: "evil", name: `<script>alert("1")</script>` });
    const token = linkTokens.sign({ purpose: "unsubscribe", tenantId: "evil", jobId, recipient: "a@x.example" });
    const text = await (await get(`/u/${token}`)).text();
    expect(text).not.toContain("<script");
    expect(text).toContain("&#60;script&#62;");
  });
});

test("public links need no key and count in no rate window", async () => {
  const counted = front.queue.counted;
  const headers = { "x-api-key": "wrong" };
  expect((await get(`/t/c/${click}`, headers)).status).toBe(302);
  expect((await get(`/u/${out}`, headers)).headers.get("ratelimit-limit")).toBeNull();
  expect(front.queue.counted).toBe(counted);
  expect((await get(`/t/c/${click}`, {}, "POST")).status).toBe(405);
});
