import {
  type Body,
  type CallOptions,
  Calls,
  type ConnectionOptions,
  type Query,
  type SendOptions,
  WaybillError,
} from "./calls.ts";
import type { Job } from "./generated.ts";

export {
  type CallOptions,
  type ConnectionOptions,
  type ErrorCode,
  type Listing,
  type SendOptions,
  WaybillError,
} from "./calls.ts";
export type * from "./generated.ts";
export { WaybillOperator, type WaybillOperatorOptions } from "./operator.ts";
export { InvalidSecret, InvalidWebhook, type VerifyOptions, verifyWebhook } from "./webhooks.ts";

export interface WaybillOptions extends ConnectionOptions {
  /** The tenant's key. Keep it on servers: it allows sending in the tenant's name. */
  readonly apiKey: string;
}

/** A job that has ended. */
export type EndedJob = Exclude<Job, { status: "pending" | "running" }>;

const WAIT_MS = 60_000;
const POLL_MS = 250;
const POLL_MAX_MS = 4_000;

/** A tenant's calls. Every call rejects with a `WaybillError`. */
export class Waybill {
  private readonly calls: Calls;

  constructor(options: WaybillOptions) {
    this.calls = new Calls(options, { "x-api-key": options.apiKey });
  }

  readonly emails = {
    send: (email: Body<"sendEmail">, options?: SendOptions) => this.calls.call("sendEmail", { body: email }, options),
    /** Sends up to 1,000 at once. `errors` has the reason for each message that was not queued, by its index. */
    sendBatch: (batch: Body<"sendEmailBatch">, options?: SendOptions) =>
      this.calls.call("sendEmailBatch", { body: batch }, options),
  };

  readonly whatsapp = {
    send: (message: Body<"sendWhatsapp">, options?: SendOptions) =>
      this.calls.call("sendWhatsapp", { body: message }, options),
    /** As `emails.sendBatch`. */
    sendBatch: (batch: Body<"sendWhatsappBatch">, options?: SendOptions) =>
      this.calls.call("sendWhatsappBatch", { body: batch }, options),
  };

  readonly passes = {
    /** The job's result has the pass: `jobs.wait`. */
    create: (pass: Body<"createPass">, options?: SendOptions) => this.calls.call("createPass", { body: pass }, options),
    update: (id: string, change: Body<"updatePass">, options?: SendOptions) =>
      this.calls.call("updatePass", { path: { id }, body: change }, options),
    status: (id: string, options?: CallOptions) => this.calls.call("getPassStatus", { path: { id } }, options),
    /** A public link to the file of up to ten Apple passes. */
    link: (passIds: readonly string[], options?: CallOptions) =>
      this.calls.call("linkPasses", { body: { pass_ids: [...passIds] } }, options),
    /** The `.pkpass` file of an Apple pass. */
    download: async (id: string, options?: CallOptions) =>
      new Response(await this.calls.call("downloadPass", { path: { id } }, options)).arrayBuffer(),
  };

  /** Creates a pass by the call that is named after the channel, with the input and answer of `passes.create`. */
  readonly wallet = {
    send: (pass: Body<"sendWallet">, options?: SendOptions) => this.calls.call("sendWallet", { body: pass }, options),
  };

  readonly googleClasses = {
    create: (googleClass: Body<"createGoogleClass">, options?: CallOptions) =>
      this.calls.call("createGoogleClass", { body: googleClass }, options),
    update: (id: string, change: Body<"changeGoogleClass">, options?: CallOptions) =>
      this.calls.call("changeGoogleClass", { path: { id }, body: change }, options),
    get: (id: string, query: Query<"getGoogleClass">, options?: CallOptions) =>
      this.calls.call("getGoogleClass", { path: { id }, query }, options),
  };

  readonly jobs = {
    /** The tenant's jobs, newest first, page after page. */
    list: (query: Query<"listOwnJobs"> = {}, options?: CallOptions) =>
      this.calls.list("listOwnJobs", { query }, ({ jobs }) => jobs, options),
    /** Explains why the job waits, and how each of its tries ended. */
    explain: (id: string, options?: CallOptions) => this.calls.call("explainJob", { path: { id } }, options),
    get: (id: string, options?: CallOptions) => this.calls.call("getJob", { path: { id } }, options),
    /** The job's events, oldest first. */
    events: (id: string, options?: CallOptions) => this.calls.call("getJobEvents", { path: { id } }, options),
    /** Sends a scheduled job at another time: ISO 8601 with a zone, at most 30 days ahead. */
    reschedule: (id: string, scheduledAt: string, options?: CallOptions) =>
      this.calls.call("rescheduleJob", { path: { id }, body: { scheduled_at: scheduledAt } }, options),
    /** Ends a job that was not handed over. Rejects with the status 409 if it was, or may have been. */
    cancel: (id: string, options?: CallOptions) => this.calls.call("cancelJob", { path: { id } }, options),
    /** Waits for the job's end and returns the job, whatever its outcome. Rejects with the code `timeout` after a minute. */
    wait: (id: string, options?: CallOptions & { readonly withinMs?: number }) => this.ended(id, options),
  };

  readonly events = {
    /** The tenant's events of at most 31 days, newest first. */
    list: (query: Query<"listEvents">, options?: CallOptions) =>
      this.calls.list("listEvents", { query }, ({ events }) => events, options),
  };

  readonly webhooks = {
    /** The answer has the secret that calls are signed with, which is not shown again. */
    create: (webhook: Body<"createWebhook">, options?: CallOptions) =>
      this.calls.call("createWebhook", { body: webhook }, options),
    list: (options?: CallOptions) => this.calls.call("listWebhooks", {}, options),
    get: (id: string, options?: CallOptions) => this.calls.call("getWebhook", { path: { id } }, options),
    change: (id: string, change: Body<"changeWebhook">, options?: CallOptions) =>
      this.calls.call("changeWebhook", { path: { id }, body: change }, options),
    delete: (id: string, options?: CallOptions) => this.calls.call("deleteWebhook", { path: { id } }, options),
    /** Replaces the secret. For a day, the former one also signs. */
    rotateSecret: (id: string, options?: CallOptions) =>
      this.calls.call("rotateWebhookSecret", { path: { id } }, options),
    /** Calls it now, with a test message instead of an event. */
    test: (id: string, options?: CallOptions) => this.calls.call("testWebhook", { path: { id } }, options),
    /** Delivers the events of a time span, or after an event, again. */
    replay: (id: string, span: Body<"replayWebhookEvents">, options?: CallOptions) =>
      this.calls.call("replayWebhookEvents", { path: { id }, body: span }, options),
    enable: (id: string, options?: CallOptions) => this.calls.call("enableWebhook", { path: { id } }, options),
    /** Its latest calls, newest first. */
    attempts: (id: string, query: Query<"listWebhookAttempts"> = {}, options?: CallOptions) =>
      this.calls.list("listWebhookAttempts", { path: { id }, query }, ({ attempts }) => attempts, options),
  };

  /** Sums of the tenant's events, and rates. */
  metrics(query: Query<"getMetrics">, options?: CallOptions) {
    return this.calls.call("getMetrics", { query }, options);
  }

  readonly domains = {
    list: (options?: CallOptions) => this.calls.call("listDomains", {}, options),
    get: (domain: string, options?: CallOptions) => this.calls.call("getDomain", { path: { domain } }, options),
    /** Checks its DNS records again. */
    verify: (domain: string, options?: CallOptions) => this.calls.call("verifyDomain", { path: { domain } }, options),
  };

  readonly keys = {
    /** The only answer that shows the key. Without `scopes` it has the scopes of this client's key. */
    create: (key: Body<"createOwnKey"> = {}, options?: CallOptions) =>
      this.calls.call("createOwnKey", { body: key }, options),
    list: (options?: CallOptions) => this.calls.call("listOwnKeys", {}, options),
    revoke: (keyId: string, options?: CallOptions) =>
      this.calls.call("revokeOwnKey", { path: { key_id: keyId } }, options),
  };

  readonly templates = {
    list: (options?: CallOptions) => this.calls.call("listOwnTemplates", {}, options),
    get: (slug: string, options?: CallOptions) => this.calls.call("getOwnTemplate", { path: { slug } }, options),
    put: (slug: string, template: Body<"putOwnTemplate">, options?: CallOptions) =>
      this.calls.call("putOwnTemplate", { path: { slug }, body: template }, options),
    /** Renders the template with the values, without sending. */
    preview: (slug: string, body: Body<"previewOwnTemplate"> = {}, options?: CallOptions) =>
      this.calls.call("previewOwnTemplate", { path: { slug }, body }, options),
    /** Sends one message from the template. */
    test: (slug: string, body: Body<"testOwnTemplate">, options?: CallOptions) =>
      this.calls.call("testOwnTemplate", { path: { slug }, body }, options),
    delete: (slug: string, options?: CallOptions) => this.calls.call("deleteOwnTemplate", { path: { slug } }, options),
  };

  /** The tenant's own names for the chat provider's templates. */
  readonly aliases = {
    list: (options?: CallOptions) => this.calls.call("listOwnAliases", {}, options),
    get: (alias: string, options?: CallOptions) => this.calls.call("getOwnAlias", { path: { alias } }, options),
    put: (alias: string, means: Body<"putOwnAlias">, options?: CallOptions) =>
      this.calls.call("putOwnAlias", { path: { alias }, body: means }, options),
    delete: (alias: string, options?: CallOptions) => this.calls.call("deleteOwnAlias", { path: { alias } }, options),
  };

  /** Templates in the tenant's own account with the chat provider. */
  readonly chatTemplates = {
    /** The templates as of the last read. */
    list: (options?: CallOptions) => this.calls.call("listOwnChatTemplates", {}, options),
    /** Reads them from the provider. */
    sync: (options?: CallOptions) => this.calls.call("syncOwnChatTemplates", {}, options),
  };

  /** Recipients to whom the tenant's messages are not sent. */
  readonly suppressions = {
    list: (query: Query<"listOwnSuppressions"> = {}, options?: CallOptions) =>
      this.calls.list("listOwnSuppressions", { query }, ({ suppressions }) => suppressions, options),
    /** As `delete`: for this topic alone, or the one for all messages. Rejects with the status 404 if there is none. */
    get: (address: string, { topic, ...options }: CallOptions & { readonly topic?: string } = {}) =>
      this.calls.call("getOwnSuppression", { path: { address }, query: topic === undefined ? {} : { topic } }, options),
    put: (address: string, body: Body<"putOwnSuppression"> = {}, options?: CallOptions) =>
      this.calls.call("putOwnSuppression", { path: { address }, body }, options),
    /** `topic`: the suppression for this topic alone; without it the one for all messages. */
    delete: (address: string, { topic, ...options }: CallOptions & { readonly topic?: string } = {}) =>
      this.calls.call(
        "deleteOwnSuppression",
        { path: { address }, query: topic === undefined ? {} : { topic } },
        options,
      ),
  };

  private async ended(id: string, options: CallOptions & { readonly withinMs?: number } = {}): Promise<EndedJob> {
    const { withinMs = WAIT_MS, signal } = options;
    const late = AbortSignal.timeout(withinMs);
    const call = { signal: signal === undefined ? late : AbortSignal.any([late, signal]) };
    let status = "not known";
    const timedOut = (cause?: unknown) =>
      new WaybillError(`job ${id} is ${status} after ${withinMs} ms`, { code: "timeout" }, cause);
    try {
      for (let waitedMs = 0, pauseMs = POLL_MS; ; pauseMs = Math.min(POLL_MAX_MS, pauseMs * 2)) {
        const job = await this.jobs.get(id, call);
        if ("result" in job) return job;
        status = job.status;
        if (waitedMs >= withinMs) throw timedOut();
        await this.calls.sleep(Math.min(pauseMs, Math.max(1, withinMs - waitedMs)), call.signal);
        waitedMs += pauseMs;
      }
    } catch (error) {
      signal?.throwIfAborted();
      throw late.aborted ? timedOut(error) : error;
    }
  }
}
