import { generateKeyPairSync } from "node:crypto";
import { buildNotification } from "../../channels/email/mail-log/returned-mail.ts";
import { AppleAuthority, PASS_TYPE, TEAM } from "../../channels/wallet/apple-authority.ts";
import { callbackSigner } from "./callback-keys.ts";
import { type Identifiers, ISSUER } from "./identifiers.ts";

/** The arguments of one operation of the document. */
export interface Arguments {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** The type of a body that is not JSON. */
  readonly contentType?: string;
  /**
   * The reason why the answer may distinguish another tenant's name from an unused one: tenants choose it out of names
   * that they share.
   */
  readonly sharedName?: string;
}

/** Names that must be new where a call creates an object. */
export interface Fresh {
  readonly word: string;
  readonly verifyToken: string;
  readonly operatorToken: string;
  /** A file of the dashboard, whose name changes with its content. */
  readonly dashboardFile: string;
}

/** A file of the dashboard that `url` serves. */
export async function findDashboardFile(url: string): Promise<string> {
  const page = await fetch(`${url}/dash`);
  return /\/dash\/assets\/([^"]+)/.exec(await page.text())?.[1] ?? "";
}

type Call = (ids: Identifiers, fresh: Fresh) => Arguments;

const today = new Date().toISOString().slice(0, 10);
const days = { from: today, to: today };
/** A caller's own messages, sent meanwhile, leave these results unchanged. */
const past = { from: "2025-01-01", to: "2025-01-01" };
const none: Call = () => ({});
const ofTenant: Call = ({ tenantId }) => ({ path: { id: tenantId } });
const ofJob: Call = ({ jobId }) => ({ path: { id: jobId } });
const ofTenantJob: Call = ({ tenantId, jobId }) => ({ path: { id: tenantId, job_id: jobId } });
const ofFailedJob: Call = ({ tenantId, failedJobId }) => ({ path: { id: tenantId, job_id: failedJobId } });
const ofWebhook: Call = ({ webhookId }) => ({ path: { id: webhookId } });
const ofTenantWebhook: Call = ({ tenantId, webhookId }) => ({ path: { id: tenantId, webhook_id: webhookId } });
const ofPass: Call = ({ passId }) => ({ path: { id: passId } });
const ofDomain: Call = ({ domain }) => ({ path: { domain } });
const ofTemplate: Call = ({ tenantId, template }) => ({ path: { id: tenantId, slug: template } });
const ofAlias: Call = ({ tenantId, alias }) => ({ path: { id: tenantId, alias } });
const ofTenantDomain: Call = ({ tenantId, domain }) => ({ path: { id: tenantId, domain } });
const ofSuppression: Call = ({ tenantId, suppressed }) => ({ path: { id: tenantId, address: suppressed } });
const ofOwnTemplate: Call = ({ template }) => ({ path: { slug: template } });
const ofOwnAlias: Call = ({ alias }) => ({ path: { alias } });
const ofOwnSuppression: Call = ({ suppressed }) => ({ path: { address: suppressed } });
const ofPassKit: Call = ({ device, passType, serial }) => ({ path: { device, passType, serial } });

const signer = await (await AppleAuthority.make()).signer();
const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const service_account = {
  client_email: "passes@example.iam.gserviceaccount.com",
  private_key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
};
const RETURNED = { recipient: "nobody@example.com", status: "5.1.1", diagnostic: "550 5.1.1 no such user" };

function googleClass(id: string) {
  const eventName = { defaultValue: { language: "en", value: "The final" } };
  return { class_type: "eventTicket", class_data: { id, issuerName: "Club", eventName } };
}

/** Every operation of the document, by its id. Calls that remove objects for good are last. */
export const CALLS: Readonly<Record<string, Call>> = {
  sendEmail: ({ template, idempotencyKey }) => ({
    headers: { "idempotency-key": idempotencyKey },
    body: { to_address: "ann@example.com", template_id: template },
  }),
  sendWhatsapp: ({ alias }) => ({ body: { phone_number: "5491122334455", template_id: alias } }),
  sendEmailBatch: ({ template }) => ({
    body: { defaults: { template_id: template }, messages: [{ to_address: "ann@example.com" }] },
  }),
  sendWhatsappBatch: ({ alias }) => ({
    body: { messages: [{ phone_number: "5491122334455", template_id: alias }] },
  }),
  sendWallet: ({ walletTemplate }, { word }) => ({
    body: { template_id: walletTemplate, pass_data: { serial_number: `s-${word}` } },
  }),
  createPass: ({ classId }, { word }) => ({
    body: {
      pass_type: "google",
      pass_data: { class_id: classId, class_type: "eventTicket", object_id: `${ISSUER}.${word}`, object_data: {} },
    },
    sharedName: "a class of the platform's issuer",
  }),
  updatePass: ({ passId }) => ({
    path: { id: passId },
    body: { pass_data: { back_fields: [{ key: "k", value: "v" }] } },
  }),
  linkPasses: ({ passId }) => ({ body: { pass_ids: [passId] } }),
  downloadPass: ofPass,
  getPassStatus: ofPass,
  // Filtered by an unused tag: the caller's own jobs would be other ones from call to call.
  listOwnJobs: ({ alias }) => ({ query: { tag: `campaign:${alias}`, from: today, to: today } }),
  getJob: ofJob,
  getJobEvents: ofJob,
  explainJob: ofJob,
  rescheduleJob: ({ movedJobId }) => ({
    path: { id: movedJobId },
    body: { scheduled_at: new Date(Date.now() + 3_600_000).toISOString() },
  }),
  cancelJob: ({ canceledJobId }) => ({ path: { id: canceledJobId } }),
  listEvents: ({ cursor }) => ({ query: { ...days, cursor } }),
  // The names of channels: templates would differ by the names that the caller itself gave.
  getMetrics: () => ({ query: { ...past, group_by: "channel" } }),
  createGoogleClass: ({ classId }, { word }) => ({
    body: googleClass(word === "" ? classId : `${ISSUER}.${word}`),
    sharedName: "a class of the platform's issuer",
  }),
  changeGoogleClass: ({ classId }) => ({
    path: { id: classId },
    body: { class_type: "eventTicket", class_data: { issuerName: "Mallory" } },
  }),
  getGoogleClass: ({ classId }) => ({ path: { id: classId }, query: { class_type: "eventTicket" } }),
  createWebhook: () => ({ body: { url: "https://hooks.example/told" } }),
  listWebhooks: none,
  getWebhook: ofWebhook,
  changeWebhook: (ids, fresh) => ({ ...ofWebhook(ids, fresh), body: { batch_max: 10 } }),
  testWebhook: ofWebhook,
  replayWebhookEvents: (ids, fresh) => ({ ...ofWebhook(ids, fresh), body: { after_event_id: 1 } }),
  enableWebhook: ofWebhook,
  rotateWebhookSecret: ofWebhook,
  listWebhookAttempts: ofWebhook,
  listDomains: none,
  getDomain: ofDomain,
  verifyDomain: ofDomain,

  listOwnKeys: none,
  createOwnKey: () => ({ body: { name: "front end", expires_at: "2126-01-01T00:00:00Z", scopes: ["send"] } }),
  listOwnTemplates: none,
  getOwnTemplate: ofOwnTemplate,
  putOwnTemplate: (ids, fresh) => ({
    ...ofOwnTemplate(ids, fresh),
    body: { channel: "email", subject: "Changed", html: "<p>Changed</p>" },
  }),
  previewOwnTemplate: (ids, fresh) => ({ ...ofOwnTemplate(ids, fresh), body: { data: { name: "Ann" } } }),
  testOwnTemplate: (ids, fresh) => ({ ...ofOwnTemplate(ids, fresh), body: { to_address: "ann@example.com" } }),
  listOwnChatTemplates: none,
  syncOwnChatTemplates: none,
  listOwnAliases: none,
  getOwnAlias: ofOwnAlias,
  putOwnAlias: (ids, fresh) => ({
    ...ofOwnAlias(ids, fresh),
    body: { meta_name: "changed" },
  }),
  listOwnSuppressions: none,
  putOwnSuppression: (ids, fresh) => ({
    ...ofOwnSuppression(ids, fresh),
    body: { reason: "manual" },
  }),
  // Operators' calls create these again, before any call needs them.
  getOwnSuppression: ofOwnSuppression,
  deleteOwnSuppression: ofOwnSuppression,
  deleteOwnAlias: ofOwnAlias,
  deleteOwnTemplate: ofOwnTemplate,
  revokeOwnKey: ({ ownKeyId }) => ({ path: { key_id: ownKeyId } }),

  signIn: (_ids, { operatorToken }) => ({ body: { token: operatorToken } }),
  getSession: none,
  signOut: none,
  getSenderDomain: none,
  verifySenderDomain: none,
  listTenants: none,
  createTenant: () => ({ body: { name: "Another" } }),
  getTenant: ofTenant,
  changeTenant: ({ tenantId }) => ({ path: { id: tenantId }, body: { name: "Renamed" } }),
  // One channel: later calls send on the others.
  pauseTenant: ({ tenantId }) => ({ path: { id: tenantId }, body: { channels: ["wallet"] } }),
  resumeTenant: ({ tenantId }) => ({ path: { id: tenantId }, body: {} }),
  holdTenant: ({ tenantId }) => ({ path: { id: tenantId }, body: { channels: ["wallet"] } }),
  releaseTenant: ({ tenantId }) => ({ path: { id: tenantId }, body: {} }),
  purgeTenant: ({ tenantId }) => ({ path: { id: tenantId }, body: { channels: ["wallet"] } }),
  getReputation: ofTenant,
  putReputationGovernor: ({ tenantId }) => ({ path: { id: tenantId }, body: { governor: "on" } }),
  releaseReputation: ofTenant,
  listKeys: ofTenant,
  createKey: ({ tenantId }) => ({ path: { id: tenantId }, body: { name: "shop", expires_at: "2126-01-01T00:00:00Z" } }),
  listTemplates: ofTenant,
  putTemplate: (ids, fresh) => ({
    ...ofTemplate(ids, fresh),
    body: { channel: "email", subject: "Changed", html: "<p>Changed</p>" },
  }),
  getTemplate: ofTemplate,
  previewTemplate: (ids, fresh) => ({ ...ofTemplate(ids, fresh), body: { data: { name: "Ann" } } }),
  testTemplate: (ids, fresh) => ({ ...ofTemplate(ids, fresh), body: { to_address: "ann@example.com" } }),
  listChatTemplates: ofTenant,
  syncChatTemplates: ofTenant,
  listAliases: ofTenant,
  putAlias: (ids, fresh) => ({ ...ofAlias(ids, fresh), body: { meta_name: "changed" } }),
  getAlias: ofAlias,
  listTenantDomains: ofTenant,
  getTenantDomain: ofTenantDomain,
  verifyTenantDomain: ofTenantDomain,
  registerDomain: ({ tenantId, domain }, { word }) => ({
    path: { id: tenantId },
    body: { domain: `${word}${domain}` },
  }),
  listTokenMovements: ofTenant,
  getTenantUsage: ofTenant,
  listUsage: none,
  addTokens: ({ tenantId }) => ({ path: { id: tenantId }, body: { amount: 1_000_000, reason: "a gift" } }),
  listJobs: ofTenant,
  searchJobs: () => ({ query: { recipient: "ann@example.com" } }),
  getJobHistory: ofTenantJob,
  getJobContent: ofFailedJob,
  retryJob: ofFailedJob,
  // No job was accepted then.
  retryJobs: ({ tenantId }) => ({
    path: { id: tenantId },
    body: { filter: { channel: "email", to: "2001-01-01" } },
  }),
  listSuppressions: ofTenant,
  eraseRecipient: ({ tenantId }) => ({ path: { id: tenantId }, body: { recipient: "gone@example.com" } }),
  putSuppression: (ids, fresh) => ({ ...ofSuppression(ids, fresh), body: { reason: "manual" } }),
  putEmailCredentials: ({ tenantId }) => ({ path: { id: tenantId }, body: { from_address: "me@evil.example" } }),
  putWhatsappCredentials: ({ tenantId }) => ({
    path: { id: tenantId },
    body: { phone_number_id: "666", access_token: "stolen" },
  }),
  putAppleCredentials: ({ tenantId }) => ({
    path: { id: tenantId },
    body: {
      certificate_pem: signer.certificatePem,
      private_key_pem: signer.privateKeyPem,
      wwdr_pem: signer.wwdrPem,
      pass_type_id: PASS_TYPE,
      team_id: TEAM,
    },
  }),
  putGoogleCredentials: ({ tenantId }) => ({ path: { id: tenantId }, body: { service_account, issuer_id: "77" } }),
  listCredentials: ofTenant,
  getEmailCredentials: ofTenant,
  getWhatsappCredentials: ofTenant,
  getAppleCredentials: ofTenant,
  getGoogleCredentials: ofTenant,
  putWalletWebhook: ({ tenantId }) => ({
    path: { id: tenantId },
    body: { wallet_webhook_url: "http://127.0.0.1:9/hook" },
  }),
  listTenantWebhooks: none,
  enableTenantWebhook: ofTenantWebhook,
  replayTenantWebhook: ({ tenantId, webhookId }) => ({
    path: { id: tenantId, webhook_id: webhookId },
    body: { from: "2026-11-01T00:00:00Z" },
  }),
  testTenantWebhook: ofTenantWebhook,
  listTenantWebhookAttempts: ofTenantWebhook,
  listFailures: none,
  getRates: none,
  listPlans: none,
  // A plan without tenants, so that its limit does not refuse other calls.
  putPlan: () => ({ path: { name: "spare" }, body: { requests_per_minute: 1_000 } }),
  listOperators: none,
  createOperator: (_ids, { word }) => ({ body: { name: `operator ${word}`, role: "read" } }),
  getOverview: none,
  followOverview: none,
  listAudit: ({ tenantId }) => ({ query: { tenant: tenantId } }),
  listIncomingMessages: none,
  listSandboxMessages: none,
  listDeviceComplaints: none,
  takeMailReport: () => ({
    contentType: "message/rfc822",
    body: buildNotification("Message-ID: <none@example.com>\r\n\r\n", RETURNED),
  }),
  exportEvents: ({ tenantId }) => ({ query: { ...days, tenant: tenantId } }),

  answerWhatsappChallenge: (_ids, { verifyToken }) => ({
    query: { "hub.mode": "subscribe", "hub.verify_token": verifyToken, "hub.challenge": "7" },
  }),
  takeWhatsappWebhook: () => ({ body: { object: "whatsapp_business_account", entry: [] } }),
  takeGoogleCallback: ({ classId }, { word }) => ({
    body: callbackSigner.sign({
      classId,
      objectId: `${ISSUER}.${word === "" ? "pass" : word}`,
      eventType: "save",
      expTimeMillis: Date.now() + 3_600_000,
      nonce: crypto.randomUUID(),
    }),
  }),
  trackOpen: ({ openToken }) => ({ path: { token: openToken } }),
  trackClick: ({ clickToken }) => ({ path: { token: clickToken } }),
  getPassFile: ({ passFileToken }) => ({ path: { token: passFileToken } }),
  askUnsubscribe: ({ unsubscribeToken }) => ({ path: { token: unsubscribeToken } }),
  unsubscribe: ({ unsubscribeToken }) => ({ path: { token: unsubscribeToken } }),
  registerDevice: (ids, fresh) => ({ ...ofPassKit(ids, fresh), body: { pushToken: "00ff" } }),
  listUpdatedPasses: ({ device, passType }) => ({ path: { device, passType } }),
  getLatestPass: ({ passType, serial }) => ({ path: { passType, serial } }),
  personalizePass: ({ passType, serial }) => ({
    path: { passType, serial },
    body: { personalizationToken: "token", requiredPersonalizationInfo: { fullName: "Ann" } },
  }),
  logDeviceComplaint: () => ({ body: { logs: ["a complaint"] } }),

  health: none,
  securityTxt: none,
  ready: none,
  metrics: none,
  openapi: none,
  docs: none,
  docsStart: none,
  docsScript: none,
  docsStyle: none,
  docsIcon: none,
  dashboard: none,
  dashboardFile: (_ids, { dashboardFile }) => ({ path: { file: dashboardFile } }),

  deleteEmailCredentials: ofTenant,
  deleteWhatsappCredentials: ofTenant,
  deleteAppleCredentials: ofTenant,
  deleteGoogleCredentials: ofTenant,
  unregisterDevice: ofPassKit,
  getSuppression: ofSuppression,
  deleteSuppression: ofSuppression,
  deleteAlias: ofAlias,
  deleteWebhook: ofWebhook,
  deleteTemplate: ofTemplate,
  deleteDomain: ofTenantDomain,
  deleteOperator: ({ operatorId }) => ({ path: { id: operatorId } }),
  revokeKey: ({ tenantId, keyId }) => ({ path: { id: tenantId, key_id: keyId } }),
  deleteTenant: ({ tenantId }) => ({ path: { id: tenantId }, query: { confirm: tenantId, purge: "true" } }),
};
