import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { Attacks } from "./support/attacks.ts";
import { CALLS, findDashboardFile } from "./support/endpoint-calls.ts";
import {
  altered,
  confidential,
  equip,
  hiddenTemplateName,
  type Identifiers,
  ISSUER,
  inventedKey,
  inventedLike,
} from "./support/identifiers.ts";
import {
  buildArguments,
  buildRequest,
  fetchOperations,
  type Operation,
  type Security,
  signRequest,
  withCredentials,
  withHeaders,
} from "./support/operations.ts";
import type { Request, Seen } from "./support/probe.ts";
import { startTarget, type Target } from "./support/target.ts";

/*
 * Every operation of the product's own document, called by callers without a right to it. An operation without
 * instructions for its call fails the first test, so that no new one is forgotten.
 */

setDefaultTimeout(90_000);
const attacks = new Attacks("every endpoint");

let target: Target;
let operations: readonly Operation[] = [];
/** Identifiers of the victim, of the attacker, and unknown ones. */
let victims: Identifiers;
let own: Identifiers;
let invented: Identifiers;
let revokedKey = "";
let before: readonly string[] = [];

beforeAll(async () => {
  target = await startTarget();
  operations = await fetchOperations(target.url);
  [victims, own] = [await equip(target, target.victim), await equip(target, target.attacker)];
  invented = inventedLike(victims);
  const key = await target.operator("POST", "/tenants/victim/keys");
  await target.operator("DELETE", `/tenants/victim/keys/${key.body.key_id}`);
  revokedKey = key.body.api_key;
  before = await victimsState();
});

afterAll(() => target?.stop());

const secured = (security: Security) => operations.filter((operation) => operation.security === security);
const formatName = ({ operation, how }: { readonly operation: Operation; readonly how: string }) =>
  `${operation.method} ${operation.path} ${how}`;
const fresh = {
  word: "",
  verifyToken: "an-invented-verify-token",
  operatorToken: "an-invented-operator-token",
  dashboardFile: "app-1a2b3c4d.js",
};

/** The call with the given identifiers, without credentials. Secrets that the tenant gave to others are unknown. */
function buildCall(operation: Operation, ids: Identifiers, word = ""): Request {
  const { device, passToken, openToken, clickToken, unsubscribeToken } = invented;
  const known = { ...ids, device, passToken, openToken, clickToken, unsubscribeToken };
  return buildRequest(operation, buildArguments(operation, known, { ...fresh, word }));
}

/** Returns the victim's own view of its data, and operators' view of it. */
async function victimsState(): Promise<readonly string[]> {
  const { jobId, passId, googlePassId, classId, domain } = victims;
  const paths = [
    `/v1/jobs/${jobId}`,
    `/v1/jobs/${jobId}/events`,
    `/v1/passes/${passId}/status`,
    `/v1/passes/${googlePassId}/status`,
    `/v1/google/classes/${classId}?class_type=eventTicket`,
    `/v1/domains/${domain}`,
  ];
  const operators = ["", "/keys", "/templates", "/aliases", "/domains", "/suppressions", "/tokens"];
  const seen = [
    ...(await Promise.all(paths.map((path) => target.call(target.victim, "GET", path)))),
    ...(await Promise.all(operators.map((path) => target.operator("GET", `/tenants/victim${path}`)))),
  ];
  // The victim's own calls are noted with its keys.
  const unchanging = (name: string, value: unknown) => (name === "last_used_at" ? undefined : value);
  return seen.map(({ status, body }) => `${status} ${JSON.stringify(body, unchanging)}`);
}

/**
 * Returns a string of the victim's that an answer must never hold; the tenant's id, and strings that the caller itself
 * sent, do not count.
 */
function leakIn({ text, headers }: Seen, { path, body = "" }: Request): string | null {
  const { tenantId: _id, passType: _type, cursor: _cursor, ...names } = victims;
  const secrets = [
    ...Object.values(names),
    hiddenTemplateName(victims.tenantId),
    confidential(victims.tenantId),
    "reader-of-victim",
    target.victim.apiKey,
    target.operatorToken,
    target.webhookSecret,
  ];
  const answer = `${text}\n${JSON.stringify(Object.fromEntries(headers))}`;
  const said = `${decodeURIComponent(path)} ${String(body)}`;
  const leaked = secrets.find((secret) => answer.includes(secret) && !said.includes(secret));
  return leaked === undefined ? null : `the answer holds ${leaked}`;
}

/** The answer without the parts that differ from request to request. */
function comparable({ status, headers, text }: Seen, ids: Identifiers): string {
  const skipped = /^(?:date|x-request-id|ratelimit|content-length)/;
  const kept = [...headers].filter(([name]) => !skipped.test(name)).map((header) => header.join(": "));
  const names = Object.entries(ids).toSorted(([, one], [, other]) => other.length - one.length);
  const plain = names.reduce((answer, [name, id]) => answer.replaceAll(id, `<${name}>`), text);
  const steady = plain.replace(UUID, "<uuid>").replace(NEW_KEY, "<key>").replace(MADE_NOW, "<made now>");
  return JSON.stringify([status, kept.toSorted(), steady]);
}

/** A key that the call made, and its id. */
const NEW_KEY = /\b(?:key|wb)_[0-9A-Za-z]{16,32}\b/g;
/** The parts that are new in every answer: a secret that was made for it, the time, and the first event id. */
const MADE_NOW = /whsec_[A-Za-z0-9+/=]+|(?<="last_event_id":)\d+|\d{4}-\d\d-\d\dT[\d:.]+Z/g;
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g;

test("there is an attack for every operation, and none for an unknown one", () => {
  expect(operations.map(({ id }) => id).toSorted()).toEqual(Object.keys(CALLS).toSorted());
});

test("nobody gets in without a key, or with one that is malformed, invented, revoked or shown in the wrong place", async () => {
  const { apiKey } = target.victim;
  const keys: readonly (readonly [string, Readonly<Record<string, string>>, string?])[] = [
    ["with an empty key", { "x-api-key": "" }],
    ["with a short key", { "x-api-key": "x" }],
    ["with the key's prefix", { "x-api-key": apiKey.slice(0, 7) }],
    ["with a key that lacks its end", { "x-api-key": apiKey.slice(0, -1) }],
    ["with a key and more", { "x-api-key": `${apiKey}x` }],
    ["with two keys", { "x-api-key": `${apiKey}, ${apiKey}` }],
    ["with the key in upper case", { "x-api-key": apiKey.toUpperCase() }],
    ["with a key of 100 kB", { "x-api-key": "w".repeat(7_000) }],
    ["with a key of other alphabets", { "x-api-key": "wb_\u00e9\u00e9" }],
    ["with SQL for a key", { "x-api-key": "' OR '1'='1" }],
    ["with an invented key", { "x-api-key": inventedKey() }],
    ["with a revoked key", { "x-api-key": revokedKey }],
    ["with the operator token for a key", { "x-api-key": target.operatorToken }],
    ["with an invented key as a bearer token", { authorization: `Bearer ${inventedKey()}` }],
    ["with a revoked key as a bearer token", { authorization: `Bearer ${revokedKey}` }],
    ["with the operator token as a bearer token", { authorization: `Bearer ${target.operatorToken}` }],
    ["with the key as a password", { authorization: `Basic ${btoa(`:${apiKey}`)}` }],
    ["with the key as a cookie", { cookie: `x-api-key=${apiKey}; api_key=${apiKey}` }],
    ["with the key in the query", {}, `api_key=${apiKey}&X-API-Key=${apiKey}`],
  ];
  const table = secured("apiKey").flatMap((operation) =>
    keys.map(([how, headers, query]) => ({ operation, how, headers, query })),
  );
  const bare = new Map<string, string>();
  for (const operation of secured("apiKey")) {
    bare.set(operation.id, comparable(await target.probe(buildCall(operation, victims)), victims));
  }
  await attacks.run(table, formatName, async ({ operation, headers, query }) => {
    const call = withHeaders(buildCall(operation, victims), headers);
    const path = query === undefined ? call.path : `${call.path}${call.path.includes("?") ? "&" : "?"}${query}`;
    const seen = await target.probe({ ...call, path });
    if (seen.status !== 401) return `answered ${seen.status}`;
    if (comparable(seen, victims) !== bare.get(operation.id)) return `tells more than 401 without a key: ${seen.text}`;
    return leakIn(seen, call);
  });
});

test("a tenant gets the same answer about another's things as about unknown ones", async () => {
  const table = secured("apiKey").map((operation) => ({ operation, how: "with the victim's identifiers" }));
  const keyed = { "x-api-key": target.attacker.apiKey };
  await attacks.run(table, formatName, async ({ operation }) => {
    const ask = (ids: Identifiers, word: string) => target.probe(withHeaders(buildCall(operation, ids, word), keyed));
    const isShared = buildArguments(operation, victims, fresh).sharedName !== undefined;
    for (let triesLeft = 3; ; triesLeft -= 1) {
      const theirs = await ask(victims, isShared ? "" : "one");
      const leak = leakIn(theirs, buildCall(operation, victims));
      if (leak !== null || isShared) return leak;
      const nobodys = await ask(invented, "two");
      const [found, expected] = [comparable(theirs, victims), comparable(nobodys, invented)];
      if (found === expected) return null;
      // The progress of the caller's own messages and webhooks makes a difference once; a leak makes one every time.
      if (theirs.status !== nobodys.status || triesLeft === 0) return `${found} instead of ${expected}`;
    }
  });
});

test("an identifier of one kind opens nothing in place of another kind", async () => {
  const keyed = { "x-api-key": target.attacker.apiKey };
  const reads = secured("apiKey").filter(({ path, method }) => path.includes("{") && method === "GET");
  const table = reads.flatMap((operation) =>
    Object.entries(victims).map(([kind, id]) => ({ operation, how: `with a ${kind}`, id })),
  );
  await attacks.run(table, formatName, async ({ operation, id }) => {
    const path = operation.path.replace(/\{\w+\}/, encodeURIComponent(id));
    const call = withHeaders({ method: "GET", path }, keyed);
    const seen = await target.probe(call);
    if (seen.status !== 404 && seen.status !== 400) return `answered ${seen.status} ${seen.text}`;
    return leakIn(seen, call);
  });
});

test("operators' calls are refused to tenants, to strangers and to wrong tokens alike", async () => {
  const { operatorToken: token, attacker } = target;
  const credentials: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
    ["without a token", {}],
    ["with a tenant's key", { "x-api-key": attacker.apiKey }],
    ["with a tenant's key as the token", { authorization: `Bearer ${attacker.apiKey}` }],
    ["with the token as a key", { "x-api-key": token }],
    ["with the token as a password", { authorization: `Basic ${btoa(`operator:${token}`)}` }],
    ["with the token as a cookie", { cookie: `operator-token=${token}; authorization=Bearer ${token}` }],
    ["with a token that lacks its end", { authorization: `Bearer ${token.slice(0, -1)}` }],
    ["with a token and more", { authorization: `Bearer ${token} x` }],
    ["with the token in upper case", { authorization: `Bearer ${token.toUpperCase()}` }],
    ["with a method in a header", { "x-http-method-override": "GET", "x-original-url": "/health" }],
  ];
  const table = secured("operator").flatMap((operation) =>
    credentials.map(([how, headers]) => ({ operation, how, headers })),
  );
  await attacks.run(table, formatName, async ({ operation, headers }) => {
    const call = withHeaders(buildCall(operation, victims, "stranger."), headers);
    const seen = await target.probe(call);
    return seen.status === 401 ? leakIn(seen, call) : `answered ${seen.status} ${seen.text}`;
  });
});

test("a pass's devices are told nothing without its own token", async () => {
  const credentials: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
    ["without a token", {}],
    ["with an invented token", { authorization: `ApplePass ${invented.passToken}` }],
    ["with another tenant's token", { authorization: `ApplePass ${own.passToken}` }],
    ["with the token as a bearer token", { authorization: `Bearer ${victims.passToken}` }],
    ["with a token that lacks its end", { authorization: `ApplePass ${victims.passToken.slice(0, -1)}` }],
    ["with an API key", { authorization: `ApplePass ${target.victim.apiKey}`, "x-api-key": target.victim.apiKey }],
  ];
  const table = secured("applePass").flatMap((operation) =>
    credentials.map(([how, headers]) => ({ operation, how, headers })),
  );
  await attacks.run(table, formatName, async ({ operation, headers }) => {
    const call = withHeaders(buildCall(operation, victims), headers);
    const [theirs, nobodys] = [
      await target.probe(call),
      await target.probe(withHeaders(buildCall(operation, invented), headers)),
    ];
    if (theirs.status !== 401) return `answered ${theirs.status}`;
    if (comparable(theirs, victims) !== comparable(nobodys, invented)) return "tells that the pass exists";
    return leakIn(theirs, call);
  });
});

test("public endpoints reveal nothing about the victim, and accept no unsigned or wrongly signed call", async () => {
  const table = [...secured("none"), ...secured("webhookSignature")].flatMap((operation) => {
    const signed = { "x-hub-signature-256": signRequest(buildCall(operation, victims), "another secret entirely") };
    return [
      { operation, how: "as a stranger", headers: {} },
      { operation, how: "as the attacker", headers: { "x-api-key": target.attacker.apiKey, ...signed } },
    ];
  });
  await attacks.run(table, formatName, async ({ operation, headers }) => {
    const call = withHeaders(buildCall(operation, victims), headers);
    const seen = await target.probe(call);
    const isGuarded = operation.security === "webhookSignature" || operation.id === "answerWhatsappChallenge";
    if (isGuarded && seen.status < 400) return `answered ${seen.status}`;
    return leakIn(seen, call);
  });
});

test("a foreign identifier inside a call about the caller's own things reaches nothing of the other's", async () => {
  const { classId, objectId, serial, googlePassId, passId } = victims;
  const mine = (more: object) => ({ class_id: own.classId, class_type: "eventTicket", ...more });
  const google = (object_id: string, more: object) => ({
    pass_type: "google",
    pass_data: mine({ object_id, object_data: {}, ...more }),
  });
  const ofPass = `/v1/passes/${own.googlePassId}`;
  const fresh_ = (name: string) => `${ISSUER}.mallory-${name}`;
  const data = { issuerName: "Mallory", eventName: { defaultValue: { language: "en", value: "Mallory's" } } };
  const calls: readonly (readonly [method: string, path: string, body: unknown])[] = [
    ["PUT", `/v1/google/classes/${own.classId}`, { class_type: "eventTicket", class_data: { ...data, id: classId } }],
    ["PUT", `/v1/google/classes/${classId}`, { class_type: "eventTicket", class_data: { ...data, id: own.classId } }],
    ["POST", "/v1/google/classes", { class_type: "eventTicket", class_data: { ...data, id: classId } }],
    ["POST", "/v1/google/classes", { class_type: "generic", class_data: { id: classId } }],
    ["PUT", ofPass, { pass_data: { classId } }],
    ["PUT", ofPass, { pass_data: { class_id: classId } }],
    ["PUT", ofPass, { pass_data: { id: objectId } }],
    ["PUT", ofPass, { pass_data: { object_id: objectId } }],
    ["PUT", ofPass, { pass_data: { object_data: { id: objectId, classId } } }],
    ["PUT", ofPass, { pass_data: { linkedObjectIds: [objectId] } }],
    ["PUT", ofPass, { pass_data: { pass_id: googlePassId, passId, tenant_id: "victim" } }],
    ["PUT", `/v1/passes/${own.passId}`, { pass_data: { serial_number: serial } }],
    ["PUT", `/v1/passes/${own.passId}`, { pass_data: { associatedStoreIdentifiers: [1] }, pass_id: passId }],
    ["POST", "/v1/passes/create", google(objectId, {})],
    ["POST", "/v1/passes/create", google(fresh_("one"), { object_data: { id: objectId } })],
    ["POST", "/v1/passes/create", google(fresh_("two"), { object_data: { classId } })],
    ["POST", "/v1/passes/create", google(fresh_("three"), { class_id: classId })],
    ["POST", "/v1/send/wallet", google(fresh_("four"), { class_id: classId, class_type: "generic" })],
    ["POST", "/v1/passes/create", google(fresh_("five"), { object_data: { linkedObjectIds: [objectId] } })],
  ];
  const arrivals = async () => {
    const lists = [classId, objectId].map((id) => target.operator("GET", `/sandbox/messages?to=${id}`));
    return JSON.stringify((await Promise.all(lists)).map(({ body }) => body.messages));
  };
  const atGoogle = await arrivals();
  expect(atGoogle).toContain("POST eventTicket");
  await attacks.run(
    calls,
    ([method, path, body]) => `${method} ${path} ${JSON.stringify(body)}`,
    async ([method, path, body]) => {
      const seen = await target.call(target.attacker, method, path, body);
      if (seen.status === 202) await target.ended(target.attacker, seen);
      const { body: download } = await target.call(target.attacker, "GET", `/v1/passes/${own.googlePassId}/status`);
      if (JSON.stringify(download).includes("victim")) return "it shows the victim's";
      return (await arrivals()) === atGoogle ? null : "the provider was asked to change the victim's";
    },
  );
});

test("after all attacks the victim's data is unchanged", async () => {
  await attacks.run(
    [0],
    () => "the victim's things",
    async () => {
      const after = await victimsState();
      const changed = after.find((state, at) => state !== before[at]);
      return changed === undefined ? null : changed;
    },
  );
});

test("each call works for its owner, so the attacks above were well-formed", async () => {
  const secrets = {
    apiKey: target.victim.apiKey,
    operatorToken: target.operatorToken,
    passToken: victims.passToken,
    webhookSecret: target.webhookSecret,
  };
  const { operatorToken } = secrets;
  const dashboardFile = await findDashboardFile(target.url);
  const failures: string[] = [];
  // Apple names no credentials for the form of a pass, so the victim has no pass with one: `personalized-pass.test.ts`
  // fills one in.
  const withCaller = operations.filter(({ id }) => id !== "personalizePass");
  for (const [at, operation] of withCaller.entries()) {
    const names = { word: `fresh-${at}.`, verifyToken: target.webhookSecret, operatorToken, dashboardFile };
    // The key was used already, with another body.
    const ids = { ...victims, idempotencyKey: `another-${at}`, domain: victims.domain };
    const request = buildRequest(operation, buildArguments(operation, ids, names));
    const { status, text } = await target.probe(withCredentials(operation, request, secrets));
    // The victim has no account at the chat provider whose templates could be read.
    if (status === 409 && text.includes("name no business_account_id")) continue;
    if (!operation.successes.includes(status)) failures.push(`${operation.id}: ${status} ${text.slice(0, 200)}`);
  }
  expect(failures).toEqual([]);
  expect(altered(victims.clickToken)).not.toBe(victims.clickToken);
});
