import { type Body, type CallOptions, Calls, type ConnectionOptions, type Query } from "./calls.ts";

export interface WaybillOperatorOptions extends ConnectionOptions {
  /** The operator token. */
  readonly token: string;
}

/** An operator's calls. Every call rejects with a `WaybillError`. Most take the tenant's id first. */
export class WaybillOperator {
  private readonly calls: Calls;

  constructor(options: WaybillOperatorOptions) {
    this.calls = new Calls(options, { authorization: `Bearer ${options.token}` });
  }

  readonly tenants = {
    create: (tenant: Body<"createTenant">, options?: CallOptions) =>
      this.calls.call("createTenant", { body: tenant }, options),
    list: (query: Query<"listTenants"> = {}, options?: CallOptions) =>
      this.calls.list("listTenants", { query }, ({ tenants }) => tenants, options),
    get: (id: string, options?: CallOptions) => this.calls.call("getTenant", { path: { id } }, options),
    update: (id: string, change: Body<"changeTenant">, options?: CallOptions) =>
      this.calls.call("changeTenant", { path: { id }, body: change }, options),
    /** Deliveries wait, sends are accepted. Without `channels`: on all of them. */
    pause: (id: string, body: Body<"pauseTenant"> = {}, options?: CallOptions) =>
      this.calls.call("pauseTenant", { path: { id }, body }, options),
    resume: (id: string, body: Body<"resumeTenant"> = {}, options?: CallOptions) =>
      this.calls.call("resumeTenant", { path: { id }, body }, options),
    /** New sends are refused; accepted jobs are still delivered. */
    hold: (id: string, body: Body<"holdTenant"> = {}, options?: CallOptions) =>
      this.calls.call("holdTenant", { path: { id }, body }, options),
    release: (id: string, body: Body<"releaseTenant"> = {}, options?: CallOptions) =>
      this.calls.call("releaseTenant", { path: { id }, body }, options),
    /** The bounce and complaint rates of its e-mail, and the level that follows from them. */
    reputation: (id: string, options?: CallOptions) => this.calls.call("getReputation", { path: { id } }, options),
    /** Null: as the platform does. */
    govern: (id: string, body: Body<"putReputationGovernor">, options?: CallOptions) =>
      this.calls.call("putReputationGovernor", { path: { id }, body }, options),
    /** Only what happens from now on counts. */
    releaseReputation: (id: string, options?: CallOptions) =>
      this.calls.call("releaseReputation", { path: { id } }, options),
    /** Ends the jobs that were accepted so far as failed. */
    purge: (id: string, body: Body<"purgeTenant"> = {}, options?: CallOptions) =>
      this.calls.call("purgeTenant", { path: { id }, body }, options),
    /** Deletes the tenant permanently. `query.confirm` repeats the id. Safe to repeat; the answer shows the progress. */
    delete: (id: string, query: Query<"deleteTenant">, options?: CallOptions) =>
      this.calls.call("deleteTenant", { path: { id }, query }, options),
    /** Erases a recipient from the tenant's queue and history. Repeat it until the answer is `complete`. */
    eraseRecipient: (id: string, body: Body<"eraseRecipient">, options?: CallOptions) =>
      this.calls.call("eraseRecipient", { path: { id }, body }, options),
  };

  /** Operators, who may call this API. */
  readonly operators = {
    /** The only answer that shows the token. */
    create: (operator: Body<"createOperator">, options?: CallOptions) =>
      this.calls.call("createOperator", { body: operator }, options),
    list: (options?: CallOptions) => this.calls.call("listOperators", {}, options),
    delete: (id: string, options?: CallOptions) => this.calls.call("deleteOperator", { path: { id } }, options),
  };

  /** The operator whose token it is. Sessions themselves are for browsers, which keep them as cookies. */
  readonly session = {
    get: (options?: CallOptions) => this.calls.call("getSession", {}, options),
    end: (options?: CallOptions) => this.calls.call("signOut", {}, options),
  };

  /** The state of the whole service. */
  readonly overview = {
    get: (options?: CallOptions) => this.calls.call("getOverview", {}, options),
    /** Server-sent events, each with an overview as its data, until the stream is cancelled. */
    follow: (options?: CallOptions) => this.calls.call("followOverview", {}, options),
  };

  readonly audit = {
    /** Operators' changes, newest first. */
    list: (query: Query<"listAudit"> = {}, options?: CallOptions) =>
      this.calls.list("listAudit", { query }, ({ rows }) => rows, options),
  };

  readonly jobs = {
    /** Newest first; also found by recipient, which is kept as a keyed hash. */
    list: (id: string, query: Query<"listJobs"> = {}, options?: CallOptions) =>
      this.calls.list("listJobs", { path: { id }, query }, ({ jobs }) => jobs, options),
    /** A job with its tries and events. */
    get: (id: string, jobId: string, options?: CallOptions) =>
      this.calls.call("getJobHistory", { path: { id, job_id: jobId } }, options),
    /** Searches all tenants: by `recipient`, or by `job_id`. */
    search: (query: Query<"searchJobs">, options?: CallOptions) =>
      this.calls.list("searchJobs", { query }, ({ jobs }) => jobs, options),
    /** The job's content; needs the role `write`. */
    content: (id: string, jobId: string, options?: CallOptions) =>
      this.calls.call("getJobContent", { path: { id, job_id: jobId } }, options),
    /** Tries a failed job again. */
    retry: (id: string, jobId: string, options?: CallOptions) =>
      this.calls.call("retryJob", { path: { id, job_id: jobId } }, options),
    /** Tries failed jobs again, at most 1,000 per call: continue with `next_cursor`. With `dry_run`: counts them. */
    retryMany: (id: string, body: Body<"retryJobs">, options?: CallOptions) =>
      this.calls.call("retryJobs", { path: { id }, body }, options),
  };

  readonly keys = {
    /** The only answer that shows the key. */
    create: (id: string, { name, expires_at, scopes, ...options }: CallOptions & Body<"createKey"> = {}) =>
      this.calls.call(
        "createKey",
        { path: { id }, body: { name: name ?? null, expires_at: expires_at ?? null, scopes: scopes ?? null } },
        options,
      ),
    list: (id: string, options?: CallOptions) => this.calls.call("listKeys", { path: { id } }, options),
    revoke: (id: string, keyId: string, options?: CallOptions) =>
      this.calls.call("revokeKey", { path: { id, key_id: keyId } }, options),
  };

  readonly templates = {
    list: (id: string, options?: CallOptions) => this.calls.call("listTemplates", { path: { id } }, options),
    get: (id: string, slug: string, options?: CallOptions) =>
      this.calls.call("getTemplate", { path: { id, slug } }, options),
    put: (id: string, slug: string, template: Body<"putTemplate">, options?: CallOptions) =>
      this.calls.call("putTemplate", { path: { id, slug }, body: template }, options),
    preview: (id: string, slug: string, body: Body<"previewTemplate"> = {}, options?: CallOptions) =>
      this.calls.call("previewTemplate", { path: { id, slug }, body }, options),
    test: (id: string, slug: string, body: Body<"testTemplate">, options?: CallOptions) =>
      this.calls.call("testTemplate", { path: { id, slug }, body }, options),
    delete: (id: string, slug: string, options?: CallOptions) =>
      this.calls.call("deleteTemplate", { path: { id, slug } }, options),
  };

  /** A tenant's own names for the chat provider's templates. */
  readonly aliases = {
    list: (id: string, options?: CallOptions) => this.calls.call("listAliases", { path: { id } }, options),
    get: (id: string, alias: string, options?: CallOptions) =>
      this.calls.call("getAlias", { path: { id, alias } }, options),
    put: (id: string, alias: string, means: Body<"putAlias">, options?: CallOptions) =>
      this.calls.call("putAlias", { path: { id, alias }, body: means }, options),
    delete: (id: string, alias: string, options?: CallOptions) =>
      this.calls.call("deleteAlias", { path: { id, alias } }, options),
  };

  /** Templates in a tenant's own account with the chat provider. */
  readonly chatTemplates = {
    /** The templates as of the last read. */
    list: (id: string, options?: CallOptions) => this.calls.call("listChatTemplates", { path: { id } }, options),
    /** Reads them from the provider. */
    sync: (id: string, options?: CallOptions) => this.calls.call("syncChatTemplates", { path: { id } }, options),
  };

  readonly domains = {
    list: (id: string, options?: CallOptions) => this.calls.call("listTenantDomains", { path: { id } }, options),
    get: (id: string, domain: string, options?: CallOptions) =>
      this.calls.call("getTenantDomain", { path: { id, domain } }, options),
    register: (id: string, body: Body<"registerDomain">, options?: CallOptions) =>
      this.calls.call("registerDomain", { path: { id }, body }, options),
    /** Checks its DNS records again. */
    verify: (id: string, domain: string, options?: CallOptions) =>
      this.calls.call("verifyTenantDomain", { path: { id, domain } }, options),
    delete: (id: string, domain: string, options?: CallOptions) =>
      this.calls.call("deleteDomain", { path: { id, domain } }, options),
  };

  /** The domain of the platform's own sender, `MAIL_FROM`. */
  readonly senderDomain = {
    get: (options?: CallOptions) => this.calls.call("getSenderDomain", {}, options),
    verify: (options?: CallOptions) => this.calls.call("verifySenderDomain", {}, options),
  };

  /** A tenant's own provider credentials. No answer contains their secrets. */
  readonly credentials = {
    list: (id: string, options?: CallOptions) => this.calls.call("listCredentials", { path: { id } }, options),
    getEmail: (id: string, options?: CallOptions) => this.calls.call("getEmailCredentials", { path: { id } }, options),
    getWhatsapp: (id: string, options?: CallOptions) =>
      this.calls.call("getWhatsappCredentials", { path: { id } }, options),
    getApple: (id: string, options?: CallOptions) => this.calls.call("getAppleCredentials", { path: { id } }, options),
    getGoogle: (id: string, options?: CallOptions) =>
      this.calls.call("getGoogleCredentials", { path: { id } }, options),
    deleteEmail: (id: string, options?: CallOptions) =>
      this.calls.call("deleteEmailCredentials", { path: { id } }, options),
    deleteWhatsapp: (id: string, options?: CallOptions) =>
      this.calls.call("deleteWhatsappCredentials", { path: { id } }, options),
    deleteApple: (id: string, options?: CallOptions) =>
      this.calls.call("deleteAppleCredentials", { path: { id } }, options),
    deleteGoogle: (id: string, options?: CallOptions) =>
      this.calls.call("deleteGoogleCredentials", { path: { id } }, options),
    putEmail: (id: string, body: Body<"putEmailCredentials">, options?: CallOptions) =>
      this.calls.call("putEmailCredentials", { path: { id }, body }, options),
    putWhatsapp: (id: string, body: Body<"putWhatsappCredentials">, options?: CallOptions) =>
      this.calls.call("putWhatsappCredentials", { path: { id }, body }, options),
    putApple: (id: string, body: Body<"putAppleCredentials">, options?: CallOptions) =>
      this.calls.call("putAppleCredentials", { path: { id }, body }, options),
    putGoogle: (id: string, body: Body<"putGoogleCredentials">, options?: CallOptions) =>
      this.calls.call("putGoogleCredentials", { path: { id }, body }, options),
  };

  /** The webhook that reports which devices have a tenant's passes. */
  readonly walletWebhook = {
    put: (id: string, body: Body<"putWalletWebhook">, options?: CallOptions) =>
      this.calls.call("putWalletWebhook", { path: { id }, body }, options),
  };

  /** Tokens, which pay for passes. */
  readonly tokens = {
    add: (id: string, body: Body<"addTokens">, options?: CallOptions) =>
      this.calls.call("addTokens", { path: { id }, body }, options),
    list: (id: string, query: Query<"listTokenMovements"> = {}, options?: CallOptions) =>
      this.calls.list("listTokenMovements", { path: { id }, query }, ({ movements }) => movements, options),
  };

  /** Tenants' billable usage. */
  readonly usage = {
    get: (id: string, query: Query<"getTenantUsage"> = {}, options?: CallOptions) =>
      this.calls.call("getTenantUsage", { path: { id }, query }, options),
    list: (query: Query<"listUsage"> = {}, options?: CallOptions) =>
      this.calls.list("listUsage", { query }, ({ usage }) => usage, options),
  };

  /** Tenants' event webhooks. */
  readonly webhooks = {
    list: (query: Query<"listTenantWebhooks"> = {}, options?: CallOptions) =>
      this.calls.list("listTenantWebhooks", { query }, ({ webhooks }) => webhooks, options),
    /** Enables one that was disabled; one that waits for a repeat is called at once. */
    enable: (id: string, webhookId: string, options?: CallOptions) =>
      this.calls.call("enableTenantWebhook", { path: { id, webhook_id: webhookId } }, options),
    /** Delivers events again. */
    replay: (id: string, webhookId: string, body: Body<"replayTenantWebhook">, options?: CallOptions) =>
      this.calls.call("replayTenantWebhook", { path: { id, webhook_id: webhookId }, body }, options),
    /** Calls it now with a `webhook.test` that stands for no event. */
    test: (id: string, webhookId: string, options?: CallOptions) =>
      this.calls.call("testTenantWebhook", { path: { id, webhook_id: webhookId } }, options),
    attempts: (id: string, webhookId: string, query: Query<"listTenantWebhookAttempts"> = {}, options?: CallOptions) =>
      this.calls.list(
        "listTenantWebhookAttempts",
        { path: { id, webhook_id: webhookId }, query },
        ({ attempts }) => attempts,
        options,
      ),
  };

  /** Failed and bounced jobs of all tenants, grouped by cause. */
  failures(query: Query<"listFailures"> = {}, options?: CallOptions) {
    return this.calls.call("listFailures", { query }, options);
  }

  /** Messages of all tenants by outcome, over time. */
  rates(query: Query<"getRates"> = {}, options?: CallOptions) {
    return this.calls.call("getRates", { query }, options);
  }

  readonly suppressions = {
    list: (id: string, query: Query<"listSuppressions"> = {}, options?: CallOptions) =>
      this.calls.list("listSuppressions", { path: { id }, query }, ({ suppressions }) => suppressions, options),
    /** As `delete`. Rejects with the status 404 if there is none. */
    get: (id: string, address: string, { topic, ...options }: CallOptions & { readonly topic?: string } = {}) =>
      this.calls.call(
        "getSuppression",
        { path: { id, address }, query: topic === undefined ? {} : { topic } },
        options,
      ),
    put: (id: string, address: string, body: Body<"putSuppression"> = {}, options?: CallOptions) =>
      this.calls.call("putSuppression", { path: { id, address }, body }, options),
    /** `topic`: the suppression for this topic alone; without it the one for all messages. */
    delete: (id: string, address: string, { topic, ...options }: CallOptions & { readonly topic?: string } = {}) =>
      this.calls.call(
        "deleteSuppression",
        { path: { id, address }, query: topic === undefined ? {} : { topic } },
        options,
      ),
  };

  readonly plans = {
    list: (options?: CallOptions) => this.calls.call("listPlans", {}, options),
    put: (name: string, plan: Body<"putPlan">, options?: CallOptions) =>
      this.calls.call("putPlan", { path: { name }, body: plan }, options),
  };

  readonly events = {
    /** All events of up to 366 days as one file. */
    export: (query: Query<"exportEvents">, options?: CallOptions) =>
      this.calls.call("exportEvents", { query }, options),
  };

  readonly mailReports = {
    /** Reports a bounce or complaint as it arrived by mail. */
    take: (message: Body<"takeMailReport">, options?: CallOptions) =>
      this.calls.call("takeMailReport", { body: message }, options),
  };

  readonly incomingMessages = {
    /** Chat messages that people wrote, newest first. */
    list: (query: Query<"listIncomingMessages"> = {}, options?: CallOptions) =>
      this.calls.list("listIncomingMessages", { query }, ({ messages }) => messages, options),
  };

  /** Messages that reached the sandboxes of the providers. */
  readonly sandbox = {
    messages: (query: Query<"listSandboxMessages"> = {}, options?: CallOptions) =>
      this.calls.call("listSandboxMessages", { query }, options),
    deviceComplaints: (query: Query<"listDeviceComplaints"> = {}, options?: CallOptions) =>
      this.calls.call("listDeviceComplaints", { query }, options),
  };
}
