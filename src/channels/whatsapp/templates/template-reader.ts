import type { WhatsappSender } from "../../../domain/channels/whatsapp.ts";
import { boundedText } from "../../../domain/texts/bounded-text.ts";
import { isJsonArray, isJsonObject, type Json } from "../../../domain/texts/json.ts";
import { formatGraphError } from "../chat-error-text.ts";
import { errorIn, graphRoot, parseObject } from "../graph-client.ts";
import { chatLimits } from "../limits.ts";
import { type TemplatesByName, type TemplateVersion, withTemplates } from "./template-list.ts";

/** The provider's templates, or the reason why they could not be read, in words for the tenant. */
export type TemplateReading =
  | { readonly kind: "read"; readonly templates: TemplatesByName; readonly isComplete: boolean }
  | { readonly kind: "unknown"; readonly why: string };

interface TemplateReaderOptions {
  /** Without a trailing slash. If it ends with a version, that version is called. */
  readonly baseUrl: string;
  /** `v25.0` */
  readonly version: string;
}

const FIELDS = "name,language,status,category,parameter_format,components";
const PAGE = 100;
/** Pages of a search by name, which may match more templates than that one. */
const NAMED_PAGES_MAX = 2;
const UNREACHED = "WhatsApp did not answer: try again";

/** Reads an account's templates (Graph API, "WhatsApp Business Account > Message Templates"). Its calls never reject. */
export class TemplateReader {
  private readonly root: string;

  constructor({ baseUrl, version }: TemplateReaderOptions) {
    this.root = graphRoot(baseUrl, version);
  }

  /** Reads all templates, within bounds. */
  all(sender: WhatsappSender, accountId: string): Promise<TemplateReading> {
    const { templatePagesMax: pagesMax, templateSyncMsMax: ms } = chatLimits;
    return this.read({ sender, accountId, name: null, pagesMax }, AbortSignal.timeout(ms));
  }

  /** Reads the templates that may have this name. */
  named(sender: WhatsappSender, accountId: string, name: string): Promise<TemplateReading> {
    const signal = AbortSignal.timeout(chatLimits.templateLookUpMsMax);
    return this.read({ sender, accountId, name, pagesMax: NAMED_PAGES_MAX }, signal);
  }

  private async read({ sender, accountId, name, pagesMax }: Search, signal: AbortSignal): Promise<TemplateReading> {
    const templates = new Map<string, readonly TemplateVersion[]>();
    let after: string | null = null;
    for (let page = 0; page < pagesMax; page += 1) {
      const query = new URLSearchParams({ fields: FIELDS, limit: String(PAGE) });
      if (name !== null) query.set("name", name);
      if (after !== null) query.set("after", after);
      const read = await this.page(`${this.root}/${accountId}/message_templates?${query.toString()}`, sender, signal);
      if (typeof read === "string") return { kind: "unknown", why: read };
      withTemplates(templates, read.data);
      if (templates.size > chatLimits.templatesMax) break;
      if (read.after === null || read.after === after) return { kind: "read", templates, isComplete: true };
      after = read.after;
    }
    return { kind: "read", templates, isComplete: false };
  }

  /** Reads one page, or returns the reason why it cannot. */
  private async page(url: string, sender: WhatsappSender, signal: AbortSignal): Promise<Page | string> {
    let text: string | null;
    let response: Response;
    try {
      response = await fetch(url, {
        headers: { authorization: `Bearer ${sender.accessToken}` },
        // No other host may receive the token.
        redirect: "manual",
        signal,
      });
      text = await boundedText(response, chatLimits.templatePageBytesMax);
    } catch {
      return UNREACHED;
    }
    const answer = parseObject(text);
    const data = answer?.["data"];
    if (response.ok && isJsonArray(data)) return { data, after: cursorIn(answer?.["paging"]) };
    return `WhatsApp did not list the templates: ${formatGraphError(errorIn(response.status, answer), sender)}`;
  }
}

interface Search {
  readonly sender: WhatsappSender;
  readonly accountId: string;
  readonly name: string | null;
  readonly pagesMax: number;
}

interface Page {
  readonly data: readonly Json[];
  /** Null: it is the last one. */
  readonly after: string | null;
}

/** Extracts the cursor alone: the address of the next page contains the token, and may lead elsewhere. */
function cursorIn(paging: Json | undefined): string | null {
  if (!isJsonObject(paging) || paging["next"] === undefined || !isJsonObject(paging["cursors"])) return null;
  const { after } = paging["cursors"];
  return typeof after === "string" && after !== "" && after.length <= chatLimits.chatMessageIdCharsMax ? after : null;
}
