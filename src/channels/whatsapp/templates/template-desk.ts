import type { WhatsappSender } from "../../../domain/channels/whatsapp.ts";
import type { Clock } from "../../../domain/clock.ts";
import { remember } from "../../../domain/remember.ts";
import type { Done, Full, Missing } from "../../../domain/store-result.ts";
import type { Telemetry } from "../../../domain/telemetry.ts";
import type { Tenant } from "../../../domain/tenants/tenant.ts";
import { chatLimits } from "../limits.ts";
import { complaintAboutTemplate, type SentTemplate } from "./template-fit.ts";
import type { TemplateList, TemplateVersion } from "./template-list.ts";
import type { TemplateReader } from "./template-reader.ts";
import type { TemplateRepository } from "./template-repository.ts";

export interface TemplateDeskPorts {
  /** Null if the provider's address is not configured. */
  readonly reader: Pick<TemplateReader, "all" | "named"> | null;
  readonly store: Pick<TemplateRepository, "put" | "correct">;
  readonly clock: Pick<Clock, "nowMs" | "monotonicMs">;
  readonly telemetry: Telemetry;
}

export type Synced =
  | Done<TemplateList>
  | Full
  | Missing<"tenant">
  /** `why`: the reason, in words for the tenant. */
  | { readonly kind: "unread"; readonly why: string };

interface Answer {
  readonly atMs: number;
  /** Null if the provider did not answer. */
  readonly versions: Promise<readonly TemplateVersion[] | null>;
}

const ANSWERS_MAX = 10_000;
const TENANTS_MAX = 10_000;

/**
 * Reads and checks the templates of tenants' own accounts.
 *
 * T1. A message is refused only on the strength of an answer from the last minute: the stored list raises a doubt, and
 *     if it is older, that one template is requested from the provider. If the provider does not answer, the message is
 *     accepted.
 * T2. Messages whose template is in order cause no request. Requests for the others are bounded by tenant and shared.
 */
export class TemplateDesk {
  private readonly syncs = new Map<string, Promise<Synced>>();
  /** By tenant and template: an account's list is read with the tenant's own token. */
  private readonly answers = new Map<string, Answer>();
  private readonly asked = new Map<string, { readonly sinceMs: number; readonly questions: number }>();

  constructor(private readonly ports: TemplateDeskPorts) {}

  /** Reads the whole list and stores it. Rejects with `UnavailableError` while the registry is unavailable. */
  sync(tenantId: string, sender: WhatsappSender, accountId: string): Promise<Synced> {
    const key = JSON.stringify([tenantId, accountId, sender.accessToken]);
    const running = this.syncs.get(key);
    if (running !== undefined) return running;
    const sync = this.readAll(tenantId, sender, accountId).finally(() => this.syncs.delete(key));
    this.syncs.set(key, sync);
    return sync;
  }

  private async readAll(tenantId: string, sender: WhatsappSender, accountId: string): Promise<Synced> {
    const readAtMs = this.ports.clock.nowMs();
    const reading = (await this.ports.reader?.all(sender, accountId)) ?? NOWHERE;
    if (reading.kind === "unknown") return { kind: "unread", why: reading.why };
    const { templates, isComplete } = reading;
    return this.ports.store.put(tenantId, { accountId, readAtMs, isComplete, templates });
  }

  /**
   * Returns a function that resolves to the reason against the message, or null; null if the stored list raises no
   * doubt.
   */
  doubt(tenant: Tenant, sent: SentTemplate): (() => Promise<string | null>) | null {
    const { sender, templates: list } = tenant.whatsapp;
    if (sender?.accountId === undefined || list === null) return null;
    const { accountId } = sender;
    const known = list.templates.get(sent.name) ?? [];
    const complaint = complaintAboutTemplate(sent, known);
    if (complaint === null) return null;
    const isFresh = Math.abs(this.ports.clock.nowMs() - list.readAtMs) < chatLimits.templateFreshMs;
    const isCertain = isFresh && list.isComplete;
    return async () => {
      if (isCertain) return this.judged(complaint);
      const versions = await this.look({ tenantId: tenant.tenantId, sender, accountId, name: sent.name, known });
      return this.judged(versions === null ? undefined : complaintAboutTemplate(sent, versions));
    };
  }

  private judged(complaint: string | null | undefined): string | null {
    const result = complaint === undefined ? "unknown" : complaint === null ? "taken" : "refused";
    this.ports.telemetry.count("chat_template_doubts", { result });
    return complaint ?? null;
  }

  private look(question: Question): Promise<readonly TemplateVersion[] | null> {
    const { tenantId, accountId, name } = question;
    const key = JSON.stringify([tenantId, accountId, name]);
    const atMs = this.ports.clock.monotonicMs();
    const known = this.answers.get(key);
    if (known !== undefined && atMs - known.atMs < chatLimits.templateFreshMs) return known.versions;
    if (!this.mayAsk(tenantId, atMs)) return Promise.resolve(null);
    const versions = this.ask(question);
    remember(this.answers, { key, value: { atMs, versions }, max: ANSWERS_MAX });
    return versions;
  }

  private mayAsk(tenantId: string, nowMs: number): boolean {
    const last = this.asked.get(tenantId);
    const isOver = last === undefined || nowMs - last.sinceMs >= chatLimits.templateFreshMs;
    const { sinceMs, questions } = isOver ? { sinceMs: nowMs, questions: 0 } : last;
    if (questions >= chatLimits.templateLookUpsMax) return false;
    remember(this.asked, { key: tenantId, value: { sinceMs, questions: questions + 1 }, max: TENANTS_MAX });
    return true;
  }

  /** Never rejects. */
  private async ask({
    tenantId,
    sender,
    accountId,
    name,
    known,
  }: Question): Promise<readonly TemplateVersion[] | null> {
    const { reader, store, telemetry } = this.ports;
    const reading = (await reader?.named(sender, accountId, name)) ?? NOWHERE;
    if (reading.kind === "unknown" || !reading.isComplete) return null;
    const versions = reading.templates.get(name) ?? [];
    if (Bun.deepEquals(versions, known)) return versions;
    // Corrects the stored list; if that fails, the next answer corrects it.
    store.correct(tenantId, accountId, name, versions).catch((error: unknown) => {
      telemetry.log("warn", "a tenant's list of chat templates could not be corrected", {
        tenant: tenantId,
        error: String(error),
      });
    });
    return versions;
  }
}

interface Question {
  readonly tenantId: string;
  readonly sender: WhatsappSender;
  readonly accountId: string;
  readonly name: string;
  readonly known: readonly TemplateVersion[];
}

const NOWHERE = { kind: "unknown", why: "it is not known where WhatsApp is" } as const;
