import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { createHash, createHmac } from "node:crypto";
import { gzipSync } from "node:zlib";
import { eventually } from "../support/eventually.ts";
import { status, webhookBody } from "../support/whatsapp-webhook.ts";
import { Attacks, shown } from "./support/attacks.ts";
import { type Seen, unclean } from "./support/probe.ts";
import { startTarget, type Target } from "./support/target.ts";

/*
 * Forged calls in the chat provider's name: unsigned, wrongly signed, replayed, or signed and about another tenant's
 * job.
 */

setDefaultTimeout(90_000);
const attacks = new Attacks("webhooks");

let target: Target;
let provider: Bun.Server<undefined>;
/** The provider's ids of the messages, by the template that they were sent with. */
const wamids = new Map<string, string>();
let phoneNumberId = "";
const SECRET = "a webhook secret of this very test";

beforeAll(async () => {
  provider = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { template }: { template: { name: string } } = JSON.parse(await request.text());
      phoneNumberId = new URL(request.url).pathname.split("/").at(-2) ?? "";
      const wamid = `wamid.${template.name}`;
      wamids.set(template.name, wamid);
      return Response.json({ messaging_product: "whatsapp", contacts: [], messages: [{ id: wamid }] });
    },
  });
  target = await startTarget({ WHATSAPP_API_URL: provider.url.origin, WEBHOOK_SECRET: SECRET });
});
afterAll(async () => {
  await target?.stop();
  await provider?.stop(true);
});

const hmac = (body: string | Uint8Array, secret = SECRET, algorithm = "sha256") =>
  createHmac(algorithm, secret).update(body).digest("hex");

function call(body: string | Uint8Array<ArrayBuffer>, headers: Readonly<Record<string, string>>): Promise<Seen> {
  return target.probe({ method: "POST", path: "/webhook/whatsapp", headers, body });
}

function signedCall(body: string): Promise<Seen> {
  return call(body, { "x-hub-signature-256": `sha256=${hmac(body)}` });
}

/** A chat message of the victim's that the provider has taken. */
async function sentMessage(template_id: string): Promise<{ jobId: string; wamid: string }> {
  const message = { phone_number: "5491122334455", template_id };
  const accepted = await target.call(target.victim, "POST", "/v1/send/whatsapp", message);
  expect((await target.ended(target.victim, accepted)).status).toBe("success");
  return { jobId: accepted.body.job_id, wamid: wamids.get(template_id) ?? "" };
}

async function fetchEvents(jobId: string): Promise<readonly string[]> {
  const { body } = await target.call(target.victim, "GET", `/v1/jobs/${jobId}/events`);
  return body.events.map(({ event_type }: { event_type: string }) => event_type);
}

/** A body of the victim's number with these statuses. */
function fromNumber(statuses: readonly object[], number = phoneNumberId): string {
  const body = webhookBody({ statuses });
  for (const { changes } of body.entry) for (const { value } of changes) value.metadata.phone_number_id = number;
  return JSON.stringify(body);
}

test("a call is accepted only with the provider's own signature over its exact bytes", async () => {
  const { jobId, wamid } = await sentMessage("signed");
  const body = fromNumber([status(wamid, "delivered", { name: "Ñandú" })]);
  const right = hmac(body);
  const headers: readonly (readonly [name: string, value: string | null])[] = [
    ["none", null],
    ["empty", ""],
    ["the word alone", "sha256="],
    ["the digest alone", right],
    ["another word", `sha1=${hmac(body, SECRET, "sha1")}`],
    ["SHA-1 under the word SHA-256", `sha256=${hmac(body, SECRET, "sha1")}`],
    ["SHA-512", `sha512=${hmac(body, SECRET, "sha512")}`],
    ["the word in capitals", `SHA256=${right}`],
    ["capital digits", `sha256=${right.toUpperCase()}`],
    ["a blank in it", `sha256= ${right}`],
    ["one digit less", `sha256=${right.slice(0, -1)}`],
    ["one digit more", `sha256=${right}0`],
    ["one digit changed", `sha256=${right.slice(0, -1)}${right.endsWith("0") ? "1" : "0"}`],
    ["no digits", `sha256=${"z".repeat(64)}`],
    ["zeros", `sha256=${"0".repeat(64)}`],
    ["base64", `sha256=${Buffer.from(right, "hex").toString("base64")}`],
    ["two of them", `sha256=${"0".repeat(64)}, sha256=${right}`],
    ["two of them, the right one first", `sha256=${right}, sha256=${right}`],
    ["a list of values", `sha256=${right};v=1`],
    ["quotes", `"sha256=${right}"`],
    ["a plain hash of the body", `sha256=${createHash("sha256").update(body).digest("hex")}`],
    [
      "a hash of secret and body",
      `sha256=${createHash("sha256")
        .update(SECRET + body)
        .digest("hex")}`,
    ],
    ["an empty secret", `sha256=${hmac(body, "")}`],
    ["another secret", `sha256=${hmac(body, `${SECRET}x`)}`],
    ["the secret itself", SECRET],
    ["10 kB", `sha256=${"a".repeat(7_000)}`],
  ];
  await attacks.run(
    headers,
    ([name]) => name,
    async ([, value]) => {
      const seen = await call(body, value === null ? {} : { "x-hub-signature-256": value });
      return unclean(seen, (code) => code === 401 || code === 403);
    },
  );
  const older = { "x-hub-signature": `sha1=${hmac(body, SECRET, "sha1")}`, "x-signature-256": `sha256=${right}` };
  await attacks.run(
    [older],
    () => "the older header",
    async (given) => unclean(await call(body, given)),
  );
  expect(await fetchEvents(jobId)).toEqual(["sent"]);
  expect((await signedCall(body)).status).toBe(200);
  expect(await fetchEvents(jobId)).toEqual(["sent", "delivered"]);
});

test("a signature is valid for no other bytes", async () => {
  const { jobId, wamid } = await sentMessage("bytes");
  const body = fromNumber([status(wamid, "delivered", { name: "Ñandú/" })]);
  const bytes = Buffer.from(body);
  const others: readonly (readonly [name: string, body: string | Uint8Array<ArrayBuffer>])[] = [
    ["one more blank", `${body} `],
    ["a line end", `${body}\n`],
    ["blanks between members", JSON.stringify(JSON.parse(body), null, 1)],
    ["escapes for letters", body.replace("Ñ", "\\u00d1")],
    ["escaped slashes", body.replaceAll("/", "\\/")],
    ["another order", JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(body)).toReversed()))],
    ["a byte order mark", `\ufeff${body}`],
    ["UTF-16", new Uint8Array(Buffer.from(body, "utf16le"))],
    ["Latin-1", new Uint8Array(Buffer.from(body, "latin1"))],
    ["another status", body.replace("delivered", "read")],
    ["another job", body.replace(wamid, "wamid.other")],
    ["one member twice", body.replace('{"object"', '{"object":"x","object"')],
    ["the end cut off", body.slice(0, -1)],
    ["nothing", ""],
    ["compressed", new Uint8Array(gzipSync(bytes))],
    ["twice", body + body],
  ];
  const headers = { "x-hub-signature-256": `sha256=${hmac(body)}` };
  await attacks.run(
    others,
    ([name]) => name,
    async ([, other]) => unclean(await call(other, headers), (code) => code === 401),
  );
  const coded = { "content-encoding": "gzip", ...headers };
  await attacks.run(
    [gzipSync(bytes)],
    () => "compressed, and said to be",
    async (packed) => unclean(await call(new Uint8Array(packed), coded)),
  );
  expect(await fetchEvents(jobId)).toEqual(["sent"]);
});

test("a call that is replayed, late or out of order adds nothing and takes nothing back", async () => {
  const { jobId, wamid } = await sentMessage("replayed");
  const at = (word: string, timestamp: string) => fromNumber([status(wamid, word, { timestamp })]);
  const now = String(Math.floor(Date.now() / 1000));
  const first = [at("delivered", now), at("read", now)];
  for (const body of first) expect((await signedCall(body)).status).toBe(200);
  expect(await fetchEvents(jobId)).toEqual(["sent", "delivered", "read"]);
  const late = [
    "0",
    "-1",
    "1",
    String(Number(now) - 864_000),
    String(Number(now) + 864_000),
    "1e99",
    "x",
    "9".repeat(400),
  ];
  const replays = [
    ...first,
    ...late.flatMap((timestamp) => ["sent", "delivered", "read"].map((word) => at(word, timestamp))),
  ];
  await attacks.run(
    replays,
    (body) => body.slice(-160),
    async (body) => {
      const seen = await signedCall(body);
      if (seen.status >= 500) return `answered ${seen.status}`;
      const events = await fetchEvents(jobId);
      if (events.join() !== "sent,delivered,read") return `its events are ${events.join()}`;
      const job = (await target.call(target.victim, "GET", `/v1/jobs/${jobId}`)).body;
      return job.status === "success" ? null : `it is ${job.status}`;
    },
  );
});

test("a signed call changes only jobs of the number that sent them, and of no other channel", async () => {
  const { jobId, wamid } = await sentMessage("numbered");
  const slow = await target.call(target.victim, "POST", "/v1/send/email", {
    to_address: "ann@down.test",
    template_id: "welcome",
  });
  const mail: string = slow.body.job_id;
  await eventually("it is in flight", async () => {
    const { body } = await target.call(target.victim, "GET", `/v1/jobs/${mail}`);
    return body.status === "running";
  });
  const state = async () => {
    const [chat, { body }] = [await fetchEvents(jobId), await target.call(target.victim, "GET", `/v1/jobs/${mail}`)];
    return `the chat job ${chat.join()} and the e-mail ${body.status} ${(await fetchEvents(mail)).join()}`;
  };
  const opaque = (id: string) => ({ biz_opaque_callback_data: id });
  const forged: readonly (readonly [name: string, body: string])[] = [
    ["another number's status of the message", fromNumber([status(wamid, "failed")], "666")],
    ...["delivered", "read", "failed", "sent"].flatMap((word): [string, string][] => [
      [`an e-mail ${word}`, fromNumber([status("wamid.none", word, opaque(`victim/${mail}`))])],
      [
        `an e-mail ${word}, by another number`,
        fromNumber([status("wamid.none", word, opaque(`victim/${mail}`))], "666"),
      ],
      [
        `the chat job ${word}, by another number`,
        fromNumber([status("wamid.none", word, opaque(`victim/${jobId}`))], "666"),
      ],
      [
        `the chat job ${word}, under another tenant`,
        fromNumber([status("wamid.none", word, opaque(`mallory/${jobId}`))]),
      ],
    ]),
    ...[
      "",
      "/",
      "victim/",
      `/${jobId}`,
      "../../",
      "victim/{s00}",
      `victim/${jobId}/x`,
      "__proto__/x",
      "x".repeat(5_000),
    ].map((data): [string, string] => [
      `the data ${shown(data)}`,
      fromNumber([status("wamid.none", "failed", opaque(data))]),
    ]),
  ];
  await attacks.run(
    forged,
    ([name]) => name,
    async ([, body]) => {
      const before = await state();
      const seen = await signedCall(body);
      if (seen.status >= 500) return `answered ${seen.status}`;
      const after = await state();
      return after === before ? null : `${after} instead of ${before}`;
    },
  );
});

test("the challenge is answered to those who know the secret, and as a text", async () => {
  const path = (query: Readonly<Record<string, string>>) =>
    `/webhook/whatsapp?${new URLSearchParams(query).toString()}`;
  const wrong: readonly Readonly<Record<string, string>>[] = [
    {},
    { "hub.mode": "subscribe" },
    { "hub.mode": "subscribe", "hub.challenge": "1" },
    { "hub.mode": "subscribe", "hub.verify_token": "", "hub.challenge": "1" },
    { "hub.mode": "subscribe", "hub.verify_token": SECRET.slice(0, -1), "hub.challenge": "1" },
    { "hub.mode": "subscribe", "hub.verify_token": SECRET.toUpperCase(), "hub.challenge": "1" },
    { "hub.mode": "subscribe", "hub.verify_token": `${SECRET} `, "hub.challenge": "1" },
    { "hub.mode": "unsubscribe", "hub.verify_token": SECRET, "hub.challenge": "1" },
    { "hub.mode": "subscribe", "hub.verify_token[]": SECRET, "hub.challenge": "1" },
    { hub_mode: "subscribe", hub_verify_token: SECRET, hub_challenge: "1" },
  ];
  await attacks.run(
    wrong,
    (query) => path(query),
    async (query) => unclean(await target.probe({ method: "GET", path: path(query) }), (code) => code === 403),
  );
  const scripts = ["<script>alert(1)</script>", "1\r\nSet-Cookie: a=b", "\u0000", "x".repeat(5_000)];
  await attacks.runEach(scripts, async (challenge) => {
    const query = { "hub.mode": "subscribe", "hub.verify_token": SECRET, "hub.challenge": challenge };
    const { headers } = await target.probe({ method: "GET", path: path(query) });
    if (headers.get("set-cookie") !== null) return "it sets a cookie";
    if (headers.get("x-content-type-options") !== "nosniff") return "its type may be guessed";
    return /^(?:text\/plain|application\/json)/.test(headers.get("content-type") ?? "") ? null : "it is a page";
  });
});
