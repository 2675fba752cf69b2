import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { findDashboardFile } from "../security/support/endpoint-calls.ts";
import { equip, type Identifiers, inventedKey, inventedLike } from "../security/support/identifiers.ts";
import { buildArguments, type Secrets, withCredentials } from "../security/support/operations.ts";
import type { Seen } from "../security/support/probe.ts";
import { startTarget, type Target } from "../security/support/target.ts";
import { signed, webhookBody } from "../support/whatsapp-webhook.ts";
import { DocumentSchemas } from "./support/document-schemas.ts";
import { type Documented, readDocument } from "./support/documented.ts";
import { differences } from "./support/documented-answer.ts";
import { type Case, DocumentedRequests, LARGE_BODY } from "./support/documented-requests.ts";
import { SchemaValues } from "./support/schema-values.ts";

/*
 * Calls every operation in the running service's document, with requests derived from its schemas and with forbidden
 * ones, and checks every answer against the document: its status, its type, its headers and its body, which must not
 * have a member that the document does not name.
 */

/** The same seed creates the same requests. */
const SEED = 20_261_122;
const GENERATED = 4;
const HOW_CHARS_MAX = 10_000;

/** A finding that is no fault, or a known one: its case, and the reason, or the right behaviour. */
type Excuse = readonly [finding: RegExp, why: string];

/** To be fixed, in the document or in the code; then its line goes, or the last test fails. */
const KNOWN: readonly Excuse[] = [];

/** Intended behaviour. */
const MEANT: readonly Excuse[] = [
  [/^signIn with \{"token":"wbo_a1b2c3"\}: unexpectedly 401/, "the token of the example is nobody's"],
  [/^create(?:Own)?Key its body is the text "": unexpectedly 201/, "it may be left out"],
  [
    /^takeWhatsappWebhook its body(?! is (?:the text|too large)).*: unexpectedly 200/,
    "what it does not understand would only be sent again",
  ],
  [/^takeGoogleCallback .*: unexpectedly 40[01]/, "nobody but Google signs it"],
  [/^takeGoogleCallback its body's type .*: unexpectedly 200/, "what was signed counts, whatever it is called"],
  [
    /^(?:registerDevice|logDeviceComplaint) its body's type .*: unexpectedly 200/,
    "Apple does not say what devices send",
  ],
  [
    /^(?:listUpdatedPasses|answerWhatsappChallenge|unsubscribe) an unknown parameter: unexpectedly 200/,
    "its caller may add some",
  ],
  [/^listUpdatedPasses an unknown passType: unexpectedly 204/, "nothing changed"],
  [
    /^\w+(?:Device|Passes) an unknown device: unexpectedly 20[01]/,
    "devices name themselves, and repeat what they said",
  ],
  [/^sendEmail with .*: unexpectedly 422 .*violations/, "what is in HTML is no matter of schemas"],
  [/^sendWhatsapp with .*: unexpectedly 422 .*24 hours/, "nobody has written to the number"],
  [
    /^sendWhatsapp with .*: unexpectedly 400 .*"buttons\[\d\]\.index is \d as another entry's/,
    "no schema says that one member differs in each entry",
  ],
  [
    /^send(?:Email|Whatsapp) with .*: unexpectedly 400 .*"pass\.pass_data\./,
    "passes have rules that no schema can tell",
  ],
  [
    /^put(?:Own)?Template with .*"wallet".*: unexpectedly 400 .*"pass_data\./,
    "passes have rules that no schema can tell",
  ],
  [
    /^send\w+Batch with .*"unknown_member".*: unexpectedly 202/,
    "what is wrong with a message is an error of its index",
  ],
  [
    /^sendWhatsapp with .*"unknown_member".*: unexpectedly 400 .*"(?:\w+ is for messages |send either \w+ or \w+, not both)/,
    "what is beside its unknown member is for another kind of message",
  ],
  [/^sync(?:Own)?ChatTemplates .*: unexpectedly 409 .*business_account_id/, "the credentials name no account"],
  [/^sendWhatsapp its body .*: its param is "(?:"|cards\[0\])/, "what is beside the member is wrong already"],
  [/^searchJobs \?: unexpectedly 400 .*one of recipient/, "one of two parameters is needed"],
  [/^(?:create|change)Webhook with .*: unexpectedly 400 .*"url /, "where an address leads is no matter of schemas"],
  [
    /^replay(?:WebhookEvents|TenantWebhook) with .*: unexpectedly 400 .*"(?:either from|to goes|from must)/,
    "either time or an event",
  ],
  [/^trackOpen .*: unexpectedly 200/, "no reader sees a broken picture"],
  [/^addTokens with .*: unexpectedly 409 .*balance/, "it has not got so many"],
  [
    /^(?:sendWallet|(?:create|update)Pass) with .*: unexpectedly 400 .*"pass_data\.\w+ is not a known field/,
    "what is beside its unknown member is for passes of another type",
  ],
  [/^rescheduleJob with .*: unexpectedly 409/, "the example's time is past, and sends the job"],
  [/^linkPasses with .*: unexpectedly 404/, "the example's passes are nobody's"],
  [/^personalizePass .*: unexpectedly 401/, "the pass asks its holder for nothing"],
  [/^updatePass with .*: unexpectedly 400 .*for passes of type google/, "the example is for another pass"],
];

/** Members and parameters with rules that no schema can express: they keep the values of a valid call. */
const FIXED: Readonly<Record<string, readonly string[]>> = {
  sendEmail: [
    "to_address",
    "template_id",
    "cc",
    "bcc",
    "reply_to",
    "headers",
    "attachments",
    "topic",
    "pass",
    "scheduled_at",
    "fallback",
  ],
  sendWhatsapp: [
    "template_id",
    "text",
    "media",
    "location",
    "contacts",
    "reaction",
    "interactive",
    "reply_to",
    "header",
    "pass",
    "scheduled_at",
    "fallback",
  ],
  sendWallet: ["template_id", "pass_type", "pass_data", "scheduled_at"],
  createPass: ["template_id", "pass_type", "pass_data", "scheduled_at"],
  rescheduleJob: ["scheduled_at"],
  updatePass: ["pass_data", "notify_message"],
  linkPasses: ["pass_ids"],
  createGoogleClass: ["class_type", "class_data"],
  changeGoogleClass: ["class_type", "class_data"],
  getGoogleClass: ["class_type"],
  listOwnJobs: ["from", "to"],
  listJobs: ["from", "to"],
  listFailures: ["from", "to"],
  getRates: ["from", "to"],
  listEvents: ["from", "to", "cursor"],
  getMetrics: ["metrics", "from", "to", "timezone"],
  exportEvents: ["from", "to", "tenant"],
  listTenants: ["cursor"],
  listTokenMovements: ["cursor"],
  listSuppressions: ["cursor", "address"],
  listOwnSuppressions: ["cursor", "address"],
  putSuppression: ["topic"],
  putOwnSuppression: ["topic"],
  getSuppression: ["topic"],
  getOwnSuppression: ["topic"],
  deleteSuppression: ["topic"],
  deleteOwnSuppression: ["topic"],
  putTemplate: ["topic"],
  putOwnTemplate: ["topic"],
  listIncomingMessages: ["cursor"],
  listWebhookAttempts: ["cursor"],
  listTenantWebhooks: ["cursor"],
  listTenantWebhookAttempts: ["cursor"],
  listAudit: ["cursor", "from", "to"],
  getTenantUsage: ["from", "to"],
  listUsage: ["cursor"],
  createOperator: ["name"],
  signIn: ["token"],
  createKey: ["expires_at"],
  createOwnKey: ["expires_at"],
  createTenant: ["plan"],
  changeTenant: ["id", "plan"],
  pauseTenant: ["channels"],
  resumeTenant: ["channels"],
  holdTenant: ["channels"],
  releaseTenant: ["channels"],
  purgeTenant: ["channels"],
  retryJobs: ["filter"],
  registerDomain: ["domain"],
  testTemplate: ["to_address"],
  testOwnTemplate: ["to_address"],
  searchJobs: ["recipient", "job_id", "from", "to"],
  eraseRecipient: ["recipient"],
  deleteTenant: ["confirm", "purge"],
  putEmailCredentials: ["from_address", "smtp_url", "warm_up_from"],
  putAppleCredentials: ["certificate_pem", "private_key_pem", "wwdr_pem", "passphrase", "pass_type_id", "team_id"],
  putGoogleCredentials: ["service_account"],
  putWalletWebhook: ["wallet_webhook_url"],
  answerWhatsappChallenge: ["hub.mode", "hub.verify_token"],
};

/** Names in the path that the caller chooses for new objects: none of them is unknown. */
const MADE: Readonly<Record<string, readonly string[]>> = {
  putTemplate: ["slug"],
  putAlias: ["alias"],
  putSuppression: ["address"],
  putPlan: ["name"],
  putOwnTemplate: ["slug"],
  putOwnAlias: ["alias"],
  putOwnSuppression: ["address"],
};

/** Members with the tenant's own content, or a provider's, which we do not interpret. */
const OTHERS = [
  "data",
  "object_data",
  "class_data",
  "semantics",
  "extra",
  "localizations",
  "user_info",
  "service_account",
  "headers",
];
/** Members in which null has a meaning of its own: it removes what is there. */
const REMOVED_BY_NULL = ["pass_data", "class_data", "defaults"];
/**
 * Where the document says that an object may have members that it does not name. In a chat message: values by name, and
 * the provider's own objects; in a fallback: the members of a send on its channel.
 */
const OPEN = new RegExp(
  `\\.(?:${OTHERS.join("|")})\\b|^send\\w+\\.fallback\\[\\]\\.send$|^sendWhatsapp.*\\.(?:params|(?:components|parameters|contacts)\\[\\](?:\\.name)?|action)$|^updatePass\\.pass_data(?:$|\\.\\w+$|\\.(?:textModulesData|loyaltyPoints|secondaryLoyaltyPoints|\\w+\\.defaultValue)\\b)`,
);

setDefaultTimeout(300_000);

let target: Target;
let schemas: DocumentSchemas;
let operations: readonly Documented[] = [];
let ids: Identifiers;
let invented: Identifiers;
let secrets: Secrets;
let dashboardFile = "";
let calls = 0;
const excused = new Set<Excuse>();

beforeAll(async () => {
  target = await startTarget();
  const document = await readDocument(target.url);
  operations = document.operations;
  dashboardFile = await findDashboardFile(target.url);
  schemas = new DocumentSchemas(document.schemas);
  ids = await equip(target, target.victim);
  invented = inventedLike(ids);
  const { operatorToken, webhookSecret } = target;
  secrets = { apiKey: target.victim.apiKey, operatorToken, webhookSecret, passToken: ids.passToken };
  const message = {
    id: "wamid.in",
    from: "5491122334455",
    timestamp: "1795247400",
    type: "text",
    text: { body: "Hi" },
  };
  const { body, signature } = signed(JSON.stringify(webhookBody({ messages: [message] })), webhookSecret);
  const headers = { "x-hub-signature-256": signature, "content-type": "application/json" };
  await target.probe({ method: "POST", path: "/webhook/whatsapp", headers, body });
});

afterAll(() => target?.stop());

/** A valid call, with new names for the objects that it creates. */
function buildCall(operation: Documented, given: Identifiers = ids) {
  calls += 1;
  const { webhookSecret: verifyToken, operatorToken } = target;
  const fresh = { word: `fresh-${calls}.`, verifyToken, operatorToken, dashboardFile };
  return buildArguments(operation, { ...given, idempotencyKey: `order-${calls}` }, fresh);
}

function requestsTo(operation: Documented): DocumentedRequests {
  const values = new SchemaValues(schemas, SEED);
  return new DocumentedRequests(values, operation, () => buildCall(operation), FIXED[operation.id] ?? []);
}

type Expected = (status: number, operation: Documented, text: string) => boolean;
const isRefused: Expected = (status) => status >= 400 && status < 500;
const isSuccess: Expected = (status, { successes }) => successes.includes(status);
const isEither: Expected = (...seen) => isRefused(...seen) || isSuccess(...seen);

/** Sends them one after the other; fails with all differences from the document, and with unexpected answers. */
async function expectAnswers(
  cases: readonly Case[],
  expected: Expected,
  given: Secrets | null = secrets,
  more: (one: Case, seen: Seen) => string | null = () => null,
): Promise<void> {
  expect(cases.length).toBeGreaterThan(0);
  const findings: string[] = [];
  for (const one of cases) {
    const { operation, how, request } = one;
    const seen = await target.probe(given === null ? request : withCredentials(operation, request, given));
    const also = more(one, seen);
    const problems = [...differences(schemas, operation, seen), ...(also === null ? [] : [also])];
    if (!expected(seen.status, operation, seen.text))
      problems.push(`unexpectedly ${seen.status} ${seen.text.slice(0, 200)}`);
    findings.push(
      ...problems
        .map((problem) => `${operation.id} ${how.slice(0, HOW_CHARS_MAX)}: ${problem}`)
        .filter((text) => !isExcused(text)),
    );
  }
  expect({ seed: SEED, findings }).toEqual({ seed: SEED, findings: [] });
}

function isExcused(finding: string): boolean {
  const found = [...KNOWN, ...MEANT].filter(([pattern]) => pattern.test(finding));
  for (const one of found) excused.add(one);
  return found.length > 0;
}

const hasNone = (bodies: Documented["bodies"]) => Object.keys(bodies).length === 0;
const secured = () => operations.filter(({ security }) => security !== "none");
const asCalled = (operation: Documented) => requestsTo(operation).case("as it is called", {});

test("a call without credentials, or with wrong ones, is refused as the document says", async () => {
  const wrong = {
    apiKey: inventedKey(),
    operatorToken: "wrong",
    webhookSecret: "wrong",
    passToken: invented.passToken,
  };
  await expectAnswers(secured().map(asCalled), isRefused, null);
  // After ten wrong tokens operators have to wait, and the answer says for how long.
  await expectAnswers([...secured(), ...secured()].map(asCalled), isRefused, wrong);
});

test("a tenant without channels, without tokens, or over its limit is answered as the document says", async () => {
  await target.operator("PUT", "/plans/tight", { requests_per_minute: 1 });
  const ofTenants = operations.filter(({ security }) => security === "apiKey");
  const tenants = [
    { id: "silent", plan: "unlimited", channels: [] },
    { id: "poor", plan: "unlimited" },
    { id: "limited", plan: "tight" },
  ];
  for (const tenant of tenants) {
    await target.operator("POST", "/tenants", { ...tenant, name: tenant.id });
    const { body } = await target.operator("POST", `/tenants/${tenant.id}/keys`);
    await target.call({ id: tenant.id, apiKey: body.api_key }, "GET", "/v1/domains");
    await expectAnswers(ofTenants.map(asCalled), isEither, { ...secrets, apiKey: body.api_key });
  }
});

test("a request that the document forbids is refused", async () => {
  // Bodies of 10 MiB to one call of each kind: the same code reads them all.
  const kinds = new Set<string>();
  const cases = operations
    .flatMap((operation) => requestsTo(operation).bad())
    .filter(({ operation, how }) => !how.startsWith("its body .") || !isCheckedAsTheTenantsOwn(operation));
  const different = cases.filter(({ operation: { method, path, security }, how }) => {
    const kind = `${method} ${security} ${path.split("/").slice(0, 3).join("/")}`;
    return how !== LARGE_BODY || (!kinds.has(kind) && kinds.add(kind));
  });
  await expectAnswers(
    different.filter((one) => !isOfBatchedMessage(one)),
    isRefused,
  );
});

test("a program that asks for problems is told the member of a tenant's body that is wrong", async () => {
  const ofTenants = operations.filter(({ security }) => security === "apiKey");
  const cases = ofTenants.flatMap((operation) => requestsTo(operation).bad());
  const members = new Map(
    cases
      .filter((one) => !isOfBatchedMessage(one))
      .map((one) => [`${one.operation.id} ${extractMember(one) ?? ""}`, askingForProblem(one)]),
  );
  await expectAnswers([...members.values()], isRefused, secrets, unnamedMember);
});

function extractMember({ how }: Case): string | undefined {
  return /^its body \.(\w+)/.exec(how)?.[1];
}

function askingForProblem({ request, ...one }: Case): Case {
  return { ...one, request: { ...request, headers: { ...request.headers, accept: "application/problem+json" } } };
}

/** Returns the problem if an error does not name the invalid member or parameter. */
function unnamedMember(one: Case, { status, text }: Seen): string | null {
  const member = extractMember(one);
  if (member === undefined || status !== 400) return null;
  const { param = "" } = JSON.parse(text);
  return param.split(/[.[]/)[0] === member ? null : `its param is "${param}": ${text.slice(0, 200)}`;
}

/**
 * Whether tenants make the same call with the same body: one declaration serves both, and the same code checks the
 * members. Theirs leave fewer rows of the audit log.
 */
function isCheckedAsTheTenantsOwn({ id, bodies }: Documented): boolean {
  const own = operations.find((one) => one.id === id.replace(/^[a-z]+/, "$&Own"));
  return own !== undefined && Bun.deepEquals(listSchemas(own.bodies), listSchemas(bodies));
}

const listSchemas = (bodies: Documented["bodies"]) =>
  Object.entries(bodies).map(([type, { schema }]) => [type, schema]);

/** An invalid message of a batch is an error of its index; the single call's requests cover its possible faults. */
function isOfBatchedMessage({ operation, how }: Case): boolean {
  return operation.id.endsWith("Batch") && /^its body \.(?:defaults|messages \[0\])/.test(how);
}

test("a path that names nothing is refused", async () => {
  const cases = operations.flatMap((operation) =>
    requestsTo(operation).unknown(buildCall(operation, invented), MADE[operation.id] ?? []),
  );
  await expectAnswers(cases, isRefused);
});

/** Rules between members, which no schema can express, may refuse a generated body before its unknown member does. */
const BEYOND_SCHEMAS = /must be a date with time and zone/;

/** A call of tenants or of operators. */
const isOurs = ({ security }: Documented) => security === "apiKey" || security === "operator";

test("a parameter or member that a call of tenants or operators does not know is refused by its name, at every depth", async () => {
  const all = operations.filter(isOurs).map((operation) => [operation.id, requestsTo(operation)] as const);
  const open = all.flatMap(([id, requests]) => requests.openObjects().map((at) => `${id}${at}`));
  expect(open.filter((at) => !OPEN.test(at))).toEqual([]);
  await expectAnswers(
    all.map(([, requests]) => requests.unknownParameter()),
    (status, _operation, text) => status === 400 && text.includes("unknown_parameter"),
  );
  await expectAnswers(
    all.flatMap(([, requests]) => requests.unknownMembers(OTHERS)),
    (status, _operation, text) => status === 400 && (text.includes("unknown_member") || BEYOND_SCHEMAS.test(text)),
  );
});

test("a body of a call that takes none is refused unless it says nothing", async () => {
  const bare = operations.filter(isOurs).filter(({ method, bodies }) => method !== "GET" && hasNone(bodies));
  const sent = (body: string) => bare.map((operation) => requestsTo(operation).case(`with ${body}`, { body }));
  expect(bare.map(({ id }) => id)).toContain("verifyDomain");
  for (const body of ['{"unknown_member":1}', "{", "[]"]) await expectAnswers(sent(body), (status) => status === 400);
});

test("a key that lacks the scope of a call is refused, and one that has it alone is not", async () => {
  const ofTenants = operations.filter(({ security }) => security === "apiKey");
  const formatScope = ({ id, description }: Documented) => `${id} ${/scope `(\w+)`/.exec(description)?.[1]}`;
  await target.operator("POST", "/tenants", { id: "scoped", name: "scoped", plan: "unlimited" });
  for (const scope of ["send", "read", "manage"]) {
    const { body } = await target.operator("POST", "/tenants/scoped/keys", { scopes: [scope] });
    await expectAnswers(
      // A call with an invented path or body is refused for its scope first.
      ofTenants.map(asCalled),
      (status, operation, text) => {
        const isLacking = status === 403 && text.includes("this API key lacks");
        return isLacking !== formatScope(operation).endsWith(` ${scope}`);
      },
      { ...secrets, apiKey: body.api_key },
    );
  }
});

test("a request that the document allows succeeds, and with null for what a call of tenants or operators may leave out", async () => {
  const inside = [...OTHERS, ...REMOVED_BY_NULL];
  const allowed = operations.flatMap((operation) => {
    const requests = requestsTo(operation);
    return [...requests.good(GENERATED), ...(isOurs(operation) ? requests.nulls(inside) : [])];
  });
  await expectAnswers(allowed, isSuccess);
});

test("a repeated request is answered as the document says", async () => {
  const cases = operations.flatMap((operation) => requestsTo(operation).good(0));
  await expectAnswers(
    cases.flatMap((one) => [one, one]),
    isEither,
  );
});

test("a public call that has no parameters refuses or ignores one", async () => {
  const all = operations.filter((operation) => !isOurs(operation)).map(requestsTo);
  await expectAnswers(
    all.filter(({ hasQuery }) => !hasQuery).map((requests) => requests.unknownParameter()),
    isEither,
  );
});

test("a finding that is fixed is no longer listed as known", () => {
  const left = KNOWN.filter((one) => !excused.has(one)).map(([finding, why]) => `${finding}: ${why}`);
  expect(left).toEqual([]);
});
