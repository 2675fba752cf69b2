import { Type } from "@sinclair/typebox";
import type { Done, Missing } from "../../../domain/store-result.ts";
import type { Tenant, TenantDirectory } from "../../../domain/tenants/tenant.ts";
import { ApiError } from "../../../http/api-error.ts";
import { type Endpoint, reply } from "../../../http/endpoint.ts";
import { managedEndpoints, type Self } from "../../../http/managed-endpoint.ts";
import { Timestamp } from "../../../http/schemas.ts";
import { noSuch, requireResult } from "../../../http/store-results.ts";
import type { TemplateDesk } from "./template-desk.ts";
import type { TemplateList } from "./template-list.ts";

interface TemplatePorts {
  readonly desk: Pick<TemplateDesk, "sync">;
  readonly store: {
    one(tenantId: string, accountId: string): Promise<Done<TemplateList | null> | Missing<"tenant">>;
  };
  readonly directory: Pick<TenantDirectory, "byId">;
}

const Word = Type.Union([Type.String(), Type.Null()]);
const Placeholders = Type.Array(Type.String());

const ChatTemplate = Type.Object(
  {
    name: Type.String(),
    language: Type.String(),
    status: Type.String({ description: "In the provider's words: `APPROVED`, `PENDING`, `PAUSED`, `REJECTED`, …" }),
    category: Word,
    parameter_format: Type.Union([Type.String(), Type.Null()], { description: "`POSITIONAL` or `NAMED`." }),
    header_format: Type.Union([Type.String(), Type.Null()], {
      description: "The provider's word for what is in the header: `TEXT`, `IMAGE`, …; null: there is none.",
    }),
    header_params: Type.Array(Type.String(), { description: "The placeholders of a header of text." }),
    body_params: Type.Union([Placeholders, Type.Null()], {
      description: "The placeholders of the body, each once; null: it is not understood.",
    }),
    filled_buttons: Type.Array(Type.Integer(), { description: "Places of the buttons that a message must fill." }),
  },
  { $id: "ChatTemplate" },
);

const ChatTemplates = Type.Object(
  {
    account_id: Type.Union([Type.String(), Type.Null()], {
      description: "The provider's id of the account; null: the credentials name none.",
    }),
    read_at: Type.Union([Timestamp, Type.Null()], { description: "Null: the list was never read." }),
    complete: Type.Boolean({ description: "Whether these are all." }),
    templates: Type.Array(ChatTemplate, { description: "By name; one entry a language." }),
  },
  { $id: "ChatTemplates" },
);

const EXAMPLE = {
  account_id: "102290129340398",
  read_at: "2026-11-28T07:00:00.000Z",
  complete: true,
  templates: [
    {
      name: "order_shipped",
      language: "es",
      status: "APPROVED",
      category: "UTILITY",
      parameter_format: "POSITIONAL",
      header_format: null,
      header_params: [],
      body_params: ["1", "2"],
      filled_buttons: [],
    },
  ],
};

const DONE = { 200: { description: "Done.", schema: ChatTemplates, examples: [EXAMPLE] } } as const;

/** `/dash/api/tenants/{id}/whatsapp/templates` and `/v1/whatsapp/templates`: the templates in a tenant's own account. */
export function templateEndpoints({ desk, store, directory }: TemplatePorts): readonly Endpoint[] {
  const requireTenant = async (tenantId: string, self: Self | null): Promise<Tenant> => {
    const tenant = self?.tenant ?? (await directory.byId(tenantId));
    if (tenant === null) throw noSuch("tenant");
    return tenant;
  };
  return [
    ...managedEndpoints({
      method: "GET",
      path: "whatsapp/templates",
      name: "chat_templates",
      operation: "listChatTemplates",
      summary: "List the chat templates of a tenant's own account, as they were read last",
      answers: DONE,
      handle: async ({ tenantId, self }) => {
        const { accountId = null } = (await requireTenant(tenantId, self)).whatsapp.sender ?? {};
        const list = accountId === null ? null : requireResult(await store.one(tenantId, accountId));
        return reply(200, shown(accountId, list));
      },
    }),
    ...managedEndpoints({
      method: "POST",
      path: "whatsapp/templates/sync",
      name: "sync_chat_templates",
      operation: "syncChatTemplates",
      summary: "Read the chat templates of a tenant's own account from the provider",
      description:
        "The list is kept, and what the provider's callbacks say of a template changes it. A send whose template does not fit is " +
        "answered 400 from then on. 409 where the tenant's credentials name no account, or the provider does not list its templates.",
      answers: DONE,
      fails: [409],
      handle: async ({ tenantId, self }) => {
        const { sender } = (await requireTenant(tenantId, self)).whatsapp;
        if (sender?.accountId === undefined) throw new ApiError(409, NO_ACCOUNT);
        const synced = await desk.sync(tenantId, sender, sender.accountId);
        if (synced.kind === "unread") throw new ApiError(409, synced.why);
        return reply(200, shown(sender.accountId, requireResult(synced)));
      },
    }),
  ];
}

const NO_ACCOUNT =
  "the tenant's own credentials name no business_account_id: an operator sets it with PUT " +
  "/dash/api/tenants/{id}/credentials/whatsapp (allow_custom must name whatsapp)";

function shown(account_id: string | null, list: TemplateList | null) {
  if (list === null) return { account_id, read_at: null, complete: false, templates: [] };
  const templates = Array.from(list.templates, ([name, versions]) => versions.map((version) => ({ name, ...version })));
  return {
    account_id,
    read_at: new Date(list.readAtMs).toISOString(),
    complete: list.isComplete,
    templates: templates
      .flat()
      .sort((a, b) => compared(a.name, b.name) || compared(a.language, b.language))
      .map(({ header_params, body_params, filled_buttons, ...version }) => ({
        ...version,
        header_params: [...header_params],
        body_params: body_params === null ? null : [...body_params],
        filled_buttons: [...filled_buttons],
      })),
  };
}

function compared(one: string, other: string): number {
  return Number(one > other) - Number(one < other);
}
