import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { unzipSync } from "fflate";
import { walletLimits } from "../../../src/channels/wallet/limits.ts";
import { PassFileLinks } from "../../../src/channels/wallet/pass-file-links.ts";
import { WalletFront } from "../../http/support/wallet-front.ts";
import { must } from "../../support/must.ts";

setDefaultTimeout(60_000);
const links = new PassFileLinks([new Uint8Array(32).fill(9)], () => "https://api.test");
let world: WalletFront;

beforeAll(async () => {
  world = await WalletFront.start(undefined, (wallet) => ({ ...wallet, fileLinks: links }));
});
afterAll(() => world?.stop());

async function aPass(type: "apple" | "google" = "apple"): Promise<string> {
  const name = crypto.randomUUID();
  const apple = { serial_number: name, organization_name: "Acme", description: "A pass" };
  const google = { class_id: "33.c", object_id: `33.${name}`, object_data: {} };
  const pass_data = type === "apple" ? apple : google;
  expect((await world.front.post("/v1/passes/create", { pass_type: type, pass_data })).status).toBe(202);
  return (await world.deliverLast()).passId;
}
const link = (pass_ids: unknown, headers = {}) => world.front.post("/v1/passes/link", { pass_ids }, headers);
const fetched = (token: string) => fetch(`${world.front.url}/p/${token}`);

test("a link to one pass is that of messages, and leads to its file", async () => {
  const passId = await aPass();
  const { status, body } = await link([passId.toUpperCase()]);
  const { url, token } = links.createLink("acme", [passId]);
  expect([status, body]).toEqual([200, { download_url: url, download_token: token }]);
  const file = await fetched(token);
  expect([file.headers.get("content-type"), await file.text()]).toEqual(["application/vnd.apple.pkpass", "bundle 1"]);
});

test("a link to ten passes leads to all of them, and to those that are left once some are gone", async () => {
  const passIds: string[] = [];
  for (let at = 0; at < walletLimits.passesPerFileMax; at += 1) passIds.push(await aPass());
  const { status, body } = await link(passIds);
  expect(status).toBe(200);
  const token = String(body["download_token"]);
  expect(links.read(token)).toEqual({ tenantId: "acme", passIds });
  const names = async () => Object.keys(unzipSync(await (await fetched(token)).bytes()));
  expect(await names()).toEqual(passIds.map((passId) => `${passId}.pkpass`));
  const gone = links.createLink("acme", [crypto.randomUUID(), ...passIds.slice(0, 2)]).token;
  expect(Object.keys(unzipSync(await (await fetched(gone)).bytes()))).toHaveLength(2);
  expect((await fetched(links.createLink("acme", [crypto.randomUUID(), crypto.randomUUID()]).token)).status).toBe(404);
});

test("passes that together are too large for one file get no link, and no file once they have grown so", async () => {
  const passIds = [await aPass(), await aPass()];
  const { token } = links.createLink("acme", passIds);
  const half = walletLimits.passesFileBytesMax / 2;
  for (const passId of passIds) await world.registry.passes.putBundle(passId, 2, new Uint8Array(half + 1));
  const refused = await link(passIds);
  expect([refused.status, refused.body["error"]]).toEqual([
    400,
    "pass_ids together have more than 8388608 bytes: ask for fewer at a time",
  ]);
  const grown = await fetched(token);
  expect([grown.status, await grown.json()]).toEqual([
    409,
    { error: "the passes together have more than 8388608 bytes" },
  ]);
  // A single one has no such bound.
  expect((await link(passIds.slice(1))).status).toBe(200);
});

test("what gets no link is named", async () => {
  const [apple, google, nobodys] = [await aPass(), await aPass("google"), crypto.randomUUID()];
  await must(world.registry.registry.createTenant({ id: "other", name: "Other", tokens: 1 }));
  const theirs = { "X-API-Key": (await must(world.registry.registry.createKey("other"))).api_key };
  const list = "pass_ids must be a list of 1 to 10 ids of Apple passes, each once";
  const eleven = Array.from({ length: 11 }, () => crypto.randomUUID());
  for (const [given, status, error] of [
    [[apple, nobodys], 404, `there is no such pass: ${nobodys}`],
    [["nonsense"], 404, "there is no such pass: nonsense"],
    [[apple, google], 400, `pass_ids: ${google} is a pass of type google, which has no file: use its save_link`],
    [[apple, apple.toUpperCase()], 400, `pass_ids has ${apple} twice`],
    [[apple, apple], 400, list],
    [[], 400, list],
    [eleven, 400, list],
    ["x", 400, list],
  ] as const) {
    const answer = await link(given);
    expect([answer.status, answer.body["error"]]).toEqual([status, error]);
  }
  expect((await link([apple], theirs)).body["error"]).toBe(`there is no such pass: ${apple}`);
});

test("a token says as many passes as it was signed for, whatever is done to it", () => {
  const ids = Array.from({ length: 3 }, () => crypto.randomUUID());
  const bytes = Buffer.from(links.createLink("acme", ids).token, "base64url");
  for (let at = 0; at < bytes.length; at += 1) {
    const altered = Buffer.from(bytes);
    altered[at] = (altered[at] ?? 0) ^ 1;
    expect(links.read(altered.toString("base64url"))).toBeNull();
  }
  expect(links.read(bytes.toString("base64url"))).toEqual({ tenantId: "acme", passIds: ids });
  expect(links.createLink("acme", ids.toReversed()).token).not.toBe(links.createLink("acme", ids).token);
});
