import type { GoogleContent, GoogleIssuer, Unusable } from "../../../domain/channels/wallet.ts";
import type { Health } from "../../../domain/health.ts";
import type { Outcome } from "../../../domain/jobs/outcome.ts";
import type { Tenant } from "../../../domain/tenants/tenant.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../domain/texts/json.ts";
import type { GoogleClasses, GoogleClassOwners } from "../google-classes.ts";
import { walletLimits } from "../limits.ts";
import type { GooglePasses, GooglePassStatus, Pass, PassStore, SaveLinks } from "../passes.ts";
import type { GoogleTask } from "../payload.ts";
import { resolveGoogleIssuer, type WalletPlatform } from "../platform.ts";
import { ClassOwnership } from "./class-ownership.ts";
import { type Caller, GoogleApi, type GoogleApiOptions, NO_CREDENTIALS, unusable } from "./google-api.ts";
import { GoogleClassService } from "./google-class-service.ts";
import { GoogleObjects } from "./google-objects.ts";
import { LinkedObjects } from "./linked-objects.ts";
import { SaveLinkSigner } from "./save-link.ts";

export interface GoogleWalletOptions extends GoogleApiOptions {
  /** Without a trailing slash: `https://pay.google.com/gp/v/save`. */
  readonly saveUrlBase: string;
  readonly platform: WalletPlatform;
  readonly classOwners: GoogleClassOwners;
  /**
   * Returns the address at which Google reports saves and removals; null if it cannot reach us. Called when a class is
   * created, as the port may only be known by then.
   */
  callbackUrl(): string | null;
  /** Looks up an object's owner by its pass. */
  readonly passes: Pick<PassStore, "holder">;
}

/** Google's wallet, for the wallet channel and the API. Opens no connection on construction. */
export class GoogleWallet implements GooglePasses, SaveLinks {
  readonly classes: GoogleClasses;
  private readonly api: GoogleApi;
  private readonly objects: GoogleObjects;
  private readonly links: LinkedObjects;
  private readonly saveLinks: SaveLinkSigner;
  private readonly stopped = new AbortController();

  constructor(private readonly options: GoogleWalletOptions) {
    this.api = new GoogleApi(options);
    const ownership = new ClassOwnership(this.api, options.classOwners, options.platform);
    this.objects = new GoogleObjects({ ...options, api: this.api, ownership });
    this.links = new LinkedObjects(options.passes, options.platform);
    this.saveLinks = new SaveLinkSigner(options.saveUrlBase);
    const findCaller = (tenant: Tenant) => this.findCaller(tenant);
    this.classes = new GoogleClassService({ ...options, api: this.api, ownership, findCaller });
  }

  /**
   * Delivers a Google pass to its holders. Deliveries of one pass must not overlap; a delivery may be repeated.
   * Aborting `signal` ends it with the outcome `retry`. Rejects if the registry is unavailable.
   */
  async deliver(pass: Pass, payload: GoogleTask, tenant: Tenant, signal: AbortSignal): Promise<Outcome> {
    const content = requireGoogleContent(pass);
    const issuer = resolveGoogleIssuer(tenant, this.options.platform);
    if (issuer === null) return { kind: "failed", error: NO_CREDENTIALS.why };
    if (!isIssuedBy(issuer, pass)) return { kind: "failed", error: OTHER_ISSUER };
    const barred = await this.links.barred(tenant, content);
    if (barred?.why === "foreign") return { kind: "failed", error: foreignLink(barred.objectId) };
    if (barred !== null) return { kind: "retry", why: `the linked object ${barred.objectId} is not created yet` };
    const delivery = { pass, content, payload, tenant, caller: { issuer, urgency: "job", signal } } as const;
    return payload.action === "create" ? this.objects.create(delivery) : this.objects.update(delivery);
  }

  async status(tenant: Tenant, pass: Pass): Promise<GooglePassStatus | Unusable> {
    const path = [`${requireGoogleContent(pass).kind}Object`, pass.serial];
    const caller = this.findCaller(tenant);
    if (caller === null) return NO_CREDENTIALS;
    const answer = await this.api.call(caller, { method: "GET", path });
    if (answer.kind === "done") {
      const googleStatus = parseState(answer.body["state"]);
      if (googleStatus === null) return { why: "Google's wallet gave the pass a state that is not known" };
      const hasUsers = answer.body["hasUsers"] === true;
      const isInstalled = hasUsers || answer.body["hasLinkedDevice"] === true;
      const known = { googleStatus, hasUsers, isInstalled };
      return this.isCalledBack(answer.body) ? { ...known, isCalledBack: true } : known;
    }
    return answer.kind === "refused" && answer.cause === "missing" ? NOT_FOUND : unusable(answer);
  }

  async linkProblem(tenant: Tenant, content: GoogleContent): Promise<string | null> {
    const barred = await this.links.barred(tenant, content);
    return barred?.why === "foreign" ? foreignLink(barred.objectId) : null;
  }

  /** Whether Google responds. */
  health(): Health {
    return this.api.health();
  }

  buildLink(pass: Pass, tenant: Tenant): string | Unusable {
    const issuer = resolveGoogleIssuer(tenant, this.options.platform);
    if (issuer === null) return NO_CREDENTIALS;
    // The holder would see Google's refusal of the link.
    return isIssuedBy(issuer, pass)
      ? this.saveLinks.sign(pass, requireGoogleContent(pass), issuer)
      : { why: OTHER_ISSUER, isForGood: true };
  }

  /** Aborts the calls that API callers wait for. Safe to repeat. */
  close(): void {
    this.stopped.abort();
    this.api.close();
  }

  /** Whether the class reports saves: Google returns part of the class with an object. */
  private isCalledBack({ classReference }: JsonObject): boolean {
    const options = isJsonObject(classReference) ? classReference["callbackOptions"] : undefined;
    const url = isJsonObject(options) ? options["url"] : undefined;
    return typeof url === "string" && url === this.options.callbackUrl();
  }

  /** Returns null if there are no credentials. */
  private findCaller(tenant: Tenant): Caller | null {
    const issuer = resolveGoogleIssuer(tenant, this.options.platform);
    if (issuer === null) return null;
    const signal = AbortSignal.any([this.stopped.signal, AbortSignal.timeout(walletLimits.googleRequestTimeoutMs)]);
    return { issuer, urgency: "request", signal };
  }
}

/** Whether the pass belongs to the issuer; false after the tenant's issuer was replaced. */
function isIssuedBy({ issuerId }: GoogleIssuer, { serial }: Pass): boolean {
  return serial.startsWith(`${issuerId}.`);
}

const OTHER_ISSUER = "the pass belongs to another Google issuer than the one whose credentials are set";
const foreignLink = (objectId: string) => `the linked object ${objectId.slice(0, ID_CHARS_MAX)} is no pass of yours`;
const ID_CHARS_MAX = 250;
const NOT_FOUND: GooglePassStatus = { googleStatus: "not_found", hasUsers: false, isInstalled: false };
const STATES = ["ACTIVE", "COMPLETED", "EXPIRED", "INACTIVE"] as const;

/** Parses a state, which Google may return under its former lower-case name. Null if it is unknown. */
function parseState(state: Json | undefined): (typeof STATES)[number] | null {
  return STATES.find((name) => typeof state === "string" && name === state.toUpperCase()) ?? null;
}

function requireGoogleContent({ passId, content }: Pass): GoogleContent {
  if (content.type !== "google") throw new Error(`the pass ${passId} is not one of Google's`);
  return content;
}
